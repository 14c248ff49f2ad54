// What a model says of itself: keys with typed values. The names of keys are those of the GGUF specification
// (model_source.h), whatever the model's files call them.
//
// A value type that owns copies of its keys, of their short values and of the vocabulary: what was checked
// cannot change afterwards. Long values of other keys are only counted; asking for one is an error. So a file
// takes no more memory than it holds bytes that somebody reads. Immutable once made; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/result.h"
#include "engine/model/value_type.h"

namespace octavo::model {

class Metadata {
 public:
  // Empty, to be filled. `file_name` is for messages.
  explicit Metadata(std::string_view file_name) : file_name_(file_name) {}

  const std::string& file_name() const { return file_name_; }

  // In the file's order.
  std::size_t num_keys() const { return entries_.size(); }
  // REQUIRES: index < num_keys()
  std::string_view key_at(std::size_t index) const { return key_of(entries_[index]); }
  bool contains(std::string_view key) const { return find_entry(key) != nullptr; }

  // Typed access, the only one there is. T: std::uint32_t, std::int32_t, std::uint64_t (from any integer type
  // whose value fits), float (from f32, or f64 rounded), bool, std::string_view, and vectors of std::int32_t,
  // bool, float, std::string_view. Views live as long as this object. A value of another type, one that does
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
  std::optional<std::string> first_disagreement(const Metadata& other, std::string_view except) const;

  // An error about a key: `sentence` follows the file's and the key's name, in the words of the file.
  Error error_about(std::string_view key, ErrorCode code, std::string_view sentence) const;

  // For sources that translate. The key must be new. `origin`: what the file calls it, for messages; empty:
  // the same.
  void add(std::string_view key, std::int64_t value, std::string_view origin = {});
  void add(std::string_view key, double value, std::string_view origin = {});  // kept as a float
  void add_flag(std::string_view key, bool value, std::string_view origin = {});
  void add_text(std::string_view key, std::string_view value, std::string_view origin = {});
  void add_list(std::string_view key, std::span<const std::int32_t> values, std::string_view origin = {});
  void add_flags(std::string_view key, const std::vector<bool>& values, std::string_view origin = {});
  // What messages about a key that is missing call it.
  void set_origin(std::string_view key, std::string_view origin);

 protected:
  static constexpr std::uint64_t kNotKept = ~std::uint64_t{0};
  struct Entry {
    std::uint64_t key_start;     // in bytes_
    std::uint64_t value_start;   // in bytes_; kNotKept
    std::uint64_t value_offset;  // in the file; of an array: of its first element
    std::uint64_t value_bytes;
    std::uint64_t count;  // elements; 1 unless an array
    std::uint32_t key_length;
    ValueType type;
    ValueType element_type;  // = type unless an array
  };

  Metadata() = default;
  const Entry* find_entry(std::string_view key) const;
  std::string_view key_of(const Entry& entry) const;
  Error wrong_type(const Entry& entry, std::string_view expected) const;
  Error too_large(const Entry& entry) const;
  template <class T>
  Result<T> convert(const Entry& entry) const;
  void add_entry(std::string_view key, ValueType type, ValueType element_type, std::uint64_t count,
                 std::span<const std::byte> value, std::string_view origin);

  std::string file_name_;
  std::vector<std::byte> bytes_;       // keys and values that are kept
  std::vector<Entry> entries_;         // in the file's order
  std::vector<std::uint32_t> by_key_;  // indices into entries_, sorted by key
  bool has_offsets_ = true;            // of values, in a file
  std::map<std::string, std::string, std::less<>> origins_;
};

}  // namespace octavo::model
