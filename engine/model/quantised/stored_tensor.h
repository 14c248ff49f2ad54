// The tensors of a checkpoint as its files hold them, and what readers of quantised weights ask of them: that
// a shape is the expected one, numbers of any float type, small integers packed into words.
//
// Files are untrusted: whoever reads checks shapes first, here, and then addresses within them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/result.h"
#include "engine/model/safetensors_header.h"

namespace octavo::model {

// A view: name, shape and bytes belong to the open file.
struct StoredTensor {
  std::string_view name;
  SafetensorsType type = SafetensorsType::kOther;
  std::span<const std::int64_t> shape;  // slowest first
  // REQUIRES: as many as the type and the shape say; safetensors_header.h checks it.
  std::span<const std::byte> bytes;
};

// nullopt: no tensor of that name.
using FindTensor = std::function<std::optional<StoredTensor>(std::string_view name)>;

// kDamagedFile about a tensor; `sentence` follows its name.
Error tensor_error(std::string_view name, std::string_view sentence);
// kDamagedFile: missing.
Result<StoredTensor> require_tensor(const FindTensor& find, const std::string& name);
// kDamagedFile unless the shape is one of these and the type one of those.
Result<void> check_tensor(const StoredTensor& tensor, std::initializer_list<SafetensorsType> types,
                          std::initializer_list<std::vector<std::int64_t>> shapes);

// Numbers of one of these types.
inline constexpr std::initializer_list<SafetensorsType> kFloatTypes = {
    SafetensorsType::kF32, SafetensorsType::kBF16, SafetensorsType::kF16};
class StoredFloats {
 public:
  StoredFloats() = default;
  // REQUIRES: one of these types
  explicit StoredFloats(const StoredTensor& tensor) : type_(tensor.type), bytes_(tensor.bytes.data()) {}

  float at(std::int64_t index) const;
  bool are_half() const { return type_ == SafetensorsType::kF16; }

 private:
  SafetensorsType type_ = SafetensorsType::kF32;
  const std::byte* bytes_ = nullptr;
};

// Strings of integers of up to 8 bits, packed without gaps into 32-bit words, the first into the lowest bits.
struct BitStrings {
  const std::byte* words = nullptr;
  std::int32_t bits = 0;
  std::int64_t string_stride = 0;  // words from one string to the next
  std::int64_t word_stride = 0;    // words from one word of a string to the next

  unsigned at(std::int64_t string, std::int64_t index) const;
  // The first `count` integers of strings first .. first + num_strings, each at out + i * count.
  void unpack(std::int64_t first, std::int64_t num_strings, std::int64_t count, std::uint8_t* out) const;
};

// Words that `count` integers take.
constexpr std::int64_t packed_words(std::int64_t count, std::int32_t bits) {
  return (count * bits + 31) / 32;
}

std::uint32_t word_at(const std::byte* words, std::int64_t index);
std::int32_t int32_at(std::span<const std::byte> bytes, std::int64_t index);

}  // namespace octavo::model
