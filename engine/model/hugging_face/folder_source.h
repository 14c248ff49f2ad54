// A model in a Hugging Face folder: config.json, safetensors files, and what belongs to the text beside them
// (vocabulary_files.h, vocabulary_defaults.h). The configuration is translated once, at opening; weights are
// read when somebody asks for their rows, so that nothing large is held twice.
//
// A weight that no family's translation takes is a tensor of its own name, and refused where unknown tensors
// of any file are.
//
// Ownership: owns the open files. Immutable; any thread.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "engine/model/hugging_face/folder_config.h"
#include "engine/model/hugging_face/tensor_recipe.h"
#include "engine/model/model_source.h"
#include "engine/model/safetensors_files.h"

namespace octavo::model {

class FolderSource final : public ModelSource {
 public:
  // Errors: as SafetensorsFiles; kUnsupported for a model_type that is not translated, for a kind of
  // quantisation that is not read, and for what a family's translation refuses, each by its name.
  static Result<FolderSource> open(const std::filesystem::path& folder);

  std::string_view format() const override { return "safetensors"; }
  const std::filesystem::path& path() const override { return files_->folder(); }
  std::uint64_t file_bytes() const override { return files_->file_bytes(); }
  std::size_t num_files() const override { return files_->num_files(); }
  const Metadata& metadata() const override { return metadata_; }

  std::span<const SourceTensor> tensors() const override { return tensors_; }
  const SourceTensor* find_tensor(std::string_view name) const override;
  std::span<const std::byte> bytes_of(const SourceTensor& tensor) const override;
  const RowReader* reader_of(const SourceTensor& tensor) const override;
  std::string stored_name(std::string_view name) const override;

  Result<tokenizer::Vocabulary> read_vocabulary() const override;
  bool has_chat_template() const override;
  SamplingAdvice sampling_advice() const override;
  std::string notice() const override;

  Result<void> verify_unchanged() const override { return files_->verify_unchanged(); }

 private:
  FolderSource(std::unique_ptr<SafetensorsFiles> files, Metadata metadata)
      : files_(std::move(files)), metadata_(std::move(metadata)) {}
  Result<void> make_tensors(const std::vector<TensorRecipe>& recipes, const WeightFormat* format);
  void count_unpacked(const MadeTensor& made, std::uint64_t stored_bytes);
  void add_untaken(const std::vector<std::string>& ignored);
  std::size_t index_of(const SourceTensor& tensor) const {
    return static_cast<std::size_t>(&tensor - tensors_.data());
  }

  std::unique_ptr<SafetensorsFiles> files_;
  Metadata metadata_;
  std::unique_ptr<WeightFormat> format_;  // weights may look into it
  std::vector<SourceTensor> tensors_;
  std::vector<MadeTensor> made_;  // of the first of tensors_
  std::map<std::string, std::size_t, std::less<>> by_name_;
  std::map<std::string, std::string, std::less<>> stored_names_;
  std::map<const SafetensorsTensor*, bool> taken_;
  // Tensors of packed weights that no kernel multiplies with as they are packed, so that they become floats.
  std::size_t num_unpacked_ = 0;
  std::uint64_t packed_bytes_ = 0, unpacked_bytes_ = 0;  // of these: in the files, in memory
};

// Whether a folder is meant to be one.
bool is_model_folder(const std::filesystem::path& folder);

}  // namespace octavo::model
