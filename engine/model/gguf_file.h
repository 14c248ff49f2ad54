// A GGUF model on disk: one file, or the several files of a split one (name-00001-of-00003.gguf), seen as one
// list of tensors. Which files belong together follows from the opened name alone; what they say about it
// must agree.
//
// Ownership: owns the open files and their mappings; spans and views live as long as this object, also when
// it is moved. Immutable; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "engine/base/result.h"
#include "engine/model/file_mapping.h"
#include "engine/model/gguf_header.h"
#include "engine/model/model_source.h"

namespace octavo::model {

class GgufFile final : public ModelSource {
 public:
  static Result<GgufFile> open(const std::filesystem::path& path);

  std::string_view format() const override { return "GGUF"; }
  const std::filesystem::path& path() const override { return path_; }
  std::uint64_t file_bytes() const override;
  std::size_t num_files() const override { return shards_.size(); }

  // Keys: those of the first file, which alone holds them in a split model.
  const GgufHeader& header() const { return shards_.front().header; }
  const Metadata& metadata() const override { return header(); }

  std::span<const GgufTensor> tensors() const override { return tensors_; }
  const GgufTensor* find_tensor(std::string_view name) const override;
  std::span<const std::byte> bytes_of(const GgufTensor& tensor) const override;

  Result<tokenizer::Vocabulary> read_vocabulary() const override;
  bool has_chat_template() const override { return header().contains("tokenizer.chat_template"); }
  SamplingAdvice sampling_advice() const override;

  Result<void> verify_unchanged() const override;

 private:
  struct Shard {
    std::unique_ptr<FileMapping> file;
    GgufHeader header;
  };
  GgufFile() = default;
  Result<void> add_file(const std::filesystem::path& path);
  Result<void> check_split(std::uint32_t num_files) const;
  Result<void> index_tensors();

  std::filesystem::path path_;
  std::vector<Shard> shards_;
  std::vector<GgufTensor> tensors_;
  std::vector<std::uint32_t> by_name_;  // indices into tensors_, sorted by name
};

// The names of all files of the model that `path` belongs to, in order: itself alone unless its name ends in
// -NNNNN-of-NNNNN.gguf. An error when those numbers make no sense.
Result<std::vector<std::filesystem::path>> files_of_model(const std::filesystem::path& path);

}  // namespace octavo::model
