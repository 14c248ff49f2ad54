// A GGUF file like another one, or like a Hugging Face folder, whose matrices of floats are of another type:
// what `octavo quantize` writes.
//
// Keys of a file are copied as they stand, the vocabulary included, but for general.file_type,
// general.quantization_version and those of split files, which become one; those of a folder are translated
// (gguf_keys.h). Quantised is every matrix of 16- or 32-bit floats named x.weight, the embedding and the
// output head to type_of_ends(); what is quantised already, norms, routers, convolutions, learned positions,
// and the small matrices of recurrent layers' steps and decays stay as they are, or become F32 where a folder
// has them in 16 bits, as llama.cpp wants them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/base/result.h"
#include "engine/model/gguf_file.h"
#include "engine/model/gguf_keys.h"
#include "engine/model/hugging_face/folder_source.h"
#include "engine/model/quantise_matrices.h"
#include "kernels/tensor.h"

namespace octavo::model {

class QuantisedFile {
 public:
  // Takes the next bytes of the file.
  using Sink = std::function<Result<void>(std::span<const std::byte>)>;
  // Fraction done, 0..1; return false to cancel. Called every few megabytes.
  using Progress = std::function<bool(double fraction)>;

  // Errors: kUnsupported for a file without a matrix that can become `type`; kDamagedFile, kIo.
  // REQUIRES: kernels::can_quantize(type); `file` outlives this object
  static Result<QuantisedFile> plan(const GgufFile& file, kernels::TensorType type);
  // Of a folder. Errors besides: those of loading it; kUnsupported for a tokenizer that no file can say, and
  // for weights that are packed already.
  static Result<QuantisedFile> plan(const FolderSource& folder, kernels::TensorType type);

  std::uint64_t num_bytes() const { return data_offset_ + data_bytes_; }
  std::size_t num_quantised() const { return num_quantised_; }
  // What the file does not say; empty: nothing.
  const std::string& notice() const { return notice_; }
  // Of the matrices that are to be quantised, before and after.
  std::uint64_t bytes_before() const { return bytes_before_; }
  std::uint64_t bytes_after() const { return bytes_after_; }

  // The whole file, from its start. Errors: the sink's; kCancelled; kDamagedFile for numbers that are not
  // finite; kUnsupported for those that the type cannot hold.
  Result<void> write(const Sink& sink, const Progress& progress);

  // Whether a file is what write() wrote: tensors of these names, types and sizes, with the same bytes. kIo
  // if not.
  Result<void> verify(const GgufFile& written) const;

 private:
  struct Tensor {
    const SourceTensor* source;
    kernels::TensorType type;  // meaningless where it stays as it is
    bool is_made = false;
    std::uint64_t num_bytes, offset;  // from the start of the data
    std::uint64_t hash = 0;           // of its bytes, once written
  };
  QuantisedFile(const ModelSource& source, std::uint64_t alignment)
      : source_(&source), alignment_(alignment) {}
  void add_tensor(const SourceTensor& source, std::optional<kernels::TensorType> type);
  Result<void> check_matrices(kernels::TensorType type) const;
  void write_header(GgufKeys keys, kernels::TensorType type);
  void add_tensor_list();
  Result<void> write_tensor(Tensor& tensor, const Sink& sink, const Progress& progress);

  const ModelSource* source_;
  std::uint64_t alignment_;
  std::string notice_;
  std::vector<Tensor> tensors_;
  std::vector<std::byte> header_;
  std::uint64_t data_offset_ = 0, data_bytes_ = 0, written_bytes_ = 0;
  std::uint64_t bytes_before_ = 0, bytes_after_ = 0;
  std::size_t num_quantised_ = 0;
};

}  // namespace octavo::model
