// What a GGUF file says before its tensors' data: keys with typed values, and a checked list of tensors.
// Format: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md, versions 2 and 3, little-endian.
//
// The file is untrusted. A header exists only when everything in it holds: counts and lengths stay inside
// the file and under the caps of limits.h, sums do not wrap, tensors stand one after the other without gaps
// and inside the file. Nothing is allocated by a number from the file before that number was held against the
// bytes that are left. Every failure is one Error with the key or tensor in `subject` and a byte offset where
// there is one.
//
// A value type that owns copies of its keys, of their short values and of the vocabulary: what was checked
// cannot change afterwards. Long values of other keys are checked and stepped over; asking for one is an
// error. So a file takes no more memory than it holds bytes that somebody reads. Immutable; any thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/result.h"
#include "engine/model/byte_source.h"
#include "engine/model/gguf_type.h"
#include "kernels/tensor.h"

namespace octavo::model {

struct GgufTensor {
  std::string name;
  std::uint32_t type_number = 0;  // ggml's; may be one that no kernel reads
  std::string_view type_name;     // "Q4_1"; a static string
  std::uint32_t num_dimensions = 0;
  std::array<std::int64_t, 4> dimensions = {1, 1, 1, 1};  // fastest first: {columns, rows} of a matrix
  std::int64_t num_elements = 0;
  std::uint64_t num_bytes = 0;
  std::uint64_t byte_offset = 0;  // from the start of its file
  std::uint32_t shard = 0;        // which file of a split model, 0-based

  // nullopt: a type that Octavo does not read.
  std::optional<kernels::TensorType> type() const { return kernels::tensor_type_from(type_number); }
};

class GgufHeader {
 public:
  // `file_name` is for messages.
  static Result<GgufHeader> parse(const ByteSource& source, std::string_view file_name);

  std::uint32_t version() const { return version_; }
  std::uint32_t alignment() const { return alignment_; }
  std::uint64_t data_offset() const { return data_offset_; }  // where tensors' data starts
  const std::string& file_name() const { return file_name_; }

  // In the file's order.
  std::span<const GgufTensor> tensors() const { return tensors_; }

  std::size_t num_keys() const { return entries_.size(); }
  // In the file's order.  REQUIRES: index < num_keys()
  std::string_view key_at(std::size_t index) const { return key_of(entries_[index]); }
  bool contains(std::string_view key) const { return find_entry(key) != nullptr; }

  // Typed access, the only one there is. T: std::uint32_t, std::int32_t, std::uint64_t (from any integer type
  // whose value fits), float (from f32, or f64 rounded), bool, std::string_view, and vectors of std::int32_t,
  // bool, float, std::string_view. Views live as long as this header. A value of another type, one that does
  // not fit, or an array of more than kMaxArrayStrings elements is an error.
  //   find: nullopt when there is no such key      get: that is an error, too
  template <class T>
  Result<std::optional<T>> find(std::string_view key) const;
  template <class T>
  Result<T> get(std::string_view key) const;

  // Whether the value of a key is a list. An error when there is no such key.
  Result<bool> is_array(std::string_view key) const;
  // Elements of an array of any type.
  Result<std::optional<std::uint64_t>> find_array_length(std::string_view key) const;

  // For the files of one model: a key that both hold with different values, `except` left out. nullopt: they
  // agree.
  std::optional<std::string> first_disagreement(const GgufHeader& other, std::string_view except) const;

  // An error about a key: `sentence` follows the file's and the key's name.
  Error error_about(std::string_view key, ErrorCode code, std::string_view sentence) const;

 private:
  friend class GgufParser;
  static constexpr std::uint64_t kNotKept = ~std::uint64_t{0};
  struct Entry {
    std::uint64_t key_start;     // in bytes_
    std::uint64_t value_start;   // in bytes_; kNotKept
    std::uint64_t value_offset;  // in the file; of an array: of its first element
    std::uint64_t value_bytes;
    std::uint64_t count;  // elements; 1 unless an array
    std::uint32_t key_length;
    GgufType type;
    GgufType element_type;  // = type unless an array
  };

  GgufHeader() = default;
  const Entry* find_entry(std::string_view key) const;
  std::string_view key_of(const Entry& entry) const;
  Error wrong_type(const Entry& entry, std::string_view expected) const;
  Error too_large(const Entry& entry) const;
  template <class T>
  Result<T> convert(const Entry& entry) const;

  std::string file_name_;
  std::uint32_t version_ = 0;
  std::uint32_t alignment_ = 0;
  std::uint64_t data_offset_ = 0;
  std::vector<std::byte> bytes_;       // keys and values that are kept
  std::vector<Entry> entries_;         // in the file's order
  std::vector<std::uint32_t> by_key_;  // indices into entries_, sorted by key
  std::vector<GgufTensor> tensors_;
};

}  // namespace octavo::model
