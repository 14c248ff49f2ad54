#include "engine/model/quantised/stored_tensor.h"

#include <algorithm>
#include <cstring>

#include "engine/base/half.h"
#include "engine/base/text.h"

namespace octavo::model {
namespace {

std::string text_of(std::span<const std::int64_t> shape) {
  return safetensors_shape_text(std::vector<std::int64_t>(shape.begin(), shape.end()));
}

std::string_view name_of(SafetensorsType type) {
  switch (type) {
    case SafetensorsType::kF64: return "F64";
    case SafetensorsType::kF32: return "F32";
    case SafetensorsType::kF16: return "F16";
    case SafetensorsType::kBF16: return "BF16";
    case SafetensorsType::kI64: return "I64";
    case SafetensorsType::kI32: return "I32";
    case SafetensorsType::kI16: return "I16";
    case SafetensorsType::kI8: return "I8";
    case SafetensorsType::kU8: return "U8";
    case SafetensorsType::kBool: return "BOOL";
    case SafetensorsType::kF8_E4M3: return "F8_E4M3";
    case SafetensorsType::kF8_E5M2: return "F8_E5M2";
    case SafetensorsType::kOther: break;
  }
  return "another type";
}

}  // namespace

Error tensor_error(std::string_view name, std::string_view sentence) {
  return {ErrorCode::kDamagedFile, escape_for_message(name) + " " + std::string(sentence), std::string(name)};
}

Result<StoredTensor> require_tensor(const FindTensor& find, const std::string& name) {
  if (const std::optional<StoredTensor> tensor = find(name)) return *tensor;
  return tensor_error(name, "is missing, without which the weights beside it mean nothing");
}

Result<void> check_tensor(const StoredTensor& tensor, std::initializer_list<SafetensorsType> types,
                          std::initializer_list<std::vector<std::int64_t>> shapes) {
  bool has_type = false, has_shape = false;
  std::string type_list, shape_list;
  for (const SafetensorsType type : types) {
    has_type |= tensor.type == type;
    type_list += (type_list.empty() ? "" : " or ") + std::string(name_of(type));
  }
  if (!has_type)
    return tensor_error(tensor.name,
                        "has type " + std::string(name_of(tensor.type)) + " instead of " + type_list);
  for (const std::vector<std::int64_t>& shape : shapes) {
    has_shape |= std::equal(shape.begin(), shape.end(), tensor.shape.begin(), tensor.shape.end());
    shape_list += (shape_list.empty() ? "" : " or ") + safetensors_shape_text(shape);
  }
  if (!has_shape)
    return tensor_error(tensor.name, "has shape " + text_of(tensor.shape) + " instead of " + shape_list);
  return {};
}

float StoredFloats::at(std::int64_t index) const {
  if (type_ == SafetensorsType::kF32) {
    float value;
    std::memcpy(&value, bytes_ + 4 * index, sizeof value);
    return value;
  }
  std::uint16_t word;
  std::memcpy(&word, bytes_ + 2 * index, sizeof word);
  return type_ == SafetensorsType::kF16 ? half_to_float(word) : bfloat16_to_float(word);
}

std::uint32_t word_at(const std::byte* words, std::int64_t index) {
  std::uint32_t word;
  std::memcpy(&word, words + 4 * index, sizeof word);
  return word;
}

std::int32_t int32_at(std::span<const std::byte> bytes, std::int64_t index) {
  return static_cast<std::int32_t>(word_at(bytes.data(), index));
}

unsigned BitStrings::at(std::int64_t string, std::int64_t index) const {
  const std::int64_t bit = index * bits, in_word = bit % 32;
  const std::int64_t first = string * string_stride + bit / 32 * word_stride;
  std::uint64_t value = word_at(words, first);
  if (in_word + bits > 32) value |= static_cast<std::uint64_t>(word_at(words, first + word_stride)) << 32;
  return static_cast<unsigned>(value >> in_word) & ((1u << bits) - 1u);
}

// Strings side by side: words that stand in one cache line are read together where strings are its columns.
void BitStrings::unpack(std::int64_t first, std::int64_t num_strings, std::int64_t count,
                        std::uint8_t* out) const {
  const std::uint64_t mask = (1u << bits) - 1u;
  constexpr std::int64_t kTogether = 16;
  for (std::int64_t done = 0; done < num_strings; done += kTogether) {
    const std::int64_t some = std::min(kTogether, num_strings - done);
    std::uint64_t waiting[kTogether] = {};
    std::int64_t num_waiting = 0, index = 0;
    for (std::int64_t word = 0; index < count; ++word) {
      const std::int64_t place = (first + done) * string_stride + word * word_stride;
      const std::int64_t ready = std::min((num_waiting + 32) / bits, count - index);
      for (std::int64_t i = 0; i < some; ++i) {
        std::uint64_t value =
            waiting[i] | static_cast<std::uint64_t>(word_at(words, place + i * string_stride)) << num_waiting;
        std::uint8_t* const numbers = out + (done + i) * count + index;
        for (std::int64_t k = 0; k < ready; ++k, value >>= bits)
          numbers[k] = static_cast<std::uint8_t>(value & mask);
        waiting[i] = value;
      }
      num_waiting += 32 - ready * bits;
      index += ready;
    }
  }
}

}  // namespace octavo::model
