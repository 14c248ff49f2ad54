// A model on disk, whatever its format: what it says of itself, its tensors, its vocabulary.
//
// Keys and tensors have the engine's names, and these are the ones of the GGUF specification
// (https://github.com/ggml-org/ggml/blob/master/docs/gguf.md) and of llama.cpp's converter:
// "llama.block_count", "blk.0.attn_q.weight". A GGUF file gives them as they stand; any other source
// translates its own, with the order of rows that goes with the name.
//
// Ownership: a source owns its open files and their mappings; spans and views live as long as it does.
// Immutable; any thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/api/sampling_advice.h"
#include "engine/base/result.h"
#include "engine/model/metadata.h"
#include "engine/tokenizer/tokenizer.h"
#include "kernels/tensor.h"

namespace octavo::model {

struct SourceTensor {
  std::string name;
  std::uint32_t type_number = 0;  // kernels::TensorType's; may be one that no kernel reads
  std::string_view type_name;     // "Q4_1"; a static string
  std::uint32_t num_dimensions = 0;
  std::array<std::int64_t, 4> dimensions = {1, 1, 1, 1};  // fastest first: {columns, rows} of a matrix
  std::int64_t num_elements = 0;
  std::uint64_t num_bytes = 0;
  std::uint64_t byte_offset = 0;  // from the start of its file
  std::uint32_t shard = 0;        // which file of the model, 0-based

  // nullopt: a type that Octavo does not read.
  std::optional<kernels::TensorType> type() const { return kernels::known_tensor_type(type_number); }
};

// Makes the rows of a tensor that does not stand in its file as it is wanted: from other names, in another
// order, of several tensors. A tensor of more than two dimensions counts as one matrix of all its rows.
// Immutable; any thread.
class RowReader {
 public:
  virtual ~RowReader() = default;

  // Rows first .. first + count in the tensor's type, one behind the other. Errors: kDamagedFile for numbers
  // that cannot be. REQUIRES: out.size() is that of so many rows
  virtual Result<void> read(std::int64_t first, std::int64_t count, std::span<std::byte> out) const = 0;

  // What MatrixSource says besides, of matrix `index` of a stack; of a single one: 0.
  virtual float scale_of(std::int64_t) const { return 1.0f; }
  virtual std::span<const std::int32_t> column_order_of(std::int64_t) const { return {}; }
};

class ModelSource {
 public:
  virtual ~ModelSource() = default;

  virtual std::string_view format() const = 0;            // "GGUF"
  virtual const std::filesystem::path& path() const = 0;  // as opened
  virtual std::uint64_t file_bytes() const = 0;           // of all its files of weights
  virtual std::size_t num_files() const = 0;              // of weights
  virtual const Metadata& metadata() const = 0;

  // In the order of the files.
  virtual std::span<const SourceTensor> tensors() const = 0;
  virtual const SourceTensor* find_tensor(std::string_view name) const = 0;  // nullptr: none
  // Where the tensor's numbers stand as they are wanted: all of them. Empty: its reader makes them.
  // REQUIRES: a tensor of this object
  virtual std::span<const std::byte> bytes_of(const SourceTensor& tensor) const = 0;
  // nullptr: they stand in the file.
  virtual const RowReader* reader_of(const SourceTensor&) const { return nullptr; }
  // What the files call a tensor, for messages; also of one that is missing.
  virtual std::string stored_name(std::string_view name) const { return std::string(name); }

  // Errors: kDamagedFile for what is missing, of the wrong type or length; kUnsupported.
  virtual Result<tokenizer::Vocabulary> read_vocabulary() const = 0;
  virtual bool has_chat_template() const = 0;
  virtual SamplingAdvice sampling_advice() const = 0;  // empty where the makers give none
  // What loading makes of it that its person would not expect, as a sentence; empty: nothing.
  virtual std::string notice() const { return {}; }

  // For after loading: an error when a file changed since it was opened, or a part of it was gone when it was
  // read: what was read is not to be trusted then.
  virtual Result<void> verify_unchanged() const = 0;
};

// A file: GGUF. A folder: that of a Hugging Face repository if it holds a config.json, else the one GGUF
// model in it. Errors: kNotFound; kUnsupported with the reason for folders whose weights are not read.
Result<std::unique_ptr<ModelSource>> open_model_source(const std::filesystem::path& path);

// What opening a model reads, for whoever confines a process to it: files, and folders with all that is in
// them.
std::vector<std::filesystem::path> places_of_model(const std::filesystem::path& path);

// All numbers of a tensor that somebody wants as a whole.
Result<std::vector<std::byte>> read_tensor(const ModelSource& source, const SourceTensor& tensor);

}  // namespace octavo::model
