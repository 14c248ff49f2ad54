#include "engine/model/gguf_header.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "engine/base/text.h"
#include "engine/model/limits.h"

namespace octavo::model {
namespace {

static_assert(std::endian::native == std::endian::little,
              "values are copied from little-endian files as they are");

template <class T>
T load(const std::byte* bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof(T));
  return value;
}

bool is_integer(GgufType type) {
  switch (type) {
    case GgufType::kU8:
    case GgufType::kI8:
    case GgufType::kU16:
    case GgufType::kI16:
    case GgufType::kU32:
    case GgufType::kI32:
    case GgufType::kU64:
    case GgufType::kI64: return true;
    default: return false;
  }
}

// The value as T, or nullopt when T cannot hold it.  REQUIRES: is_integer(type)
template <class T>
std::optional<T> load_integer(GgufType type, const std::byte* bytes) {
  const auto narrow = [](auto value) -> std::optional<T> {
    if (!std::in_range<T>(value)) return std::nullopt;
    return static_cast<T>(value);
  };
  switch (type) {
    case GgufType::kU8: return narrow(load<std::uint8_t>(bytes));
    case GgufType::kI8: return narrow(load<std::int8_t>(bytes));
    case GgufType::kU16: return narrow(load<std::uint16_t>(bytes));
    case GgufType::kI16: return narrow(load<std::int16_t>(bytes));
    case GgufType::kU32: return narrow(load<std::uint32_t>(bytes));
    case GgufType::kI32: return narrow(load<std::int32_t>(bytes));
    case GgufType::kU64: return narrow(load<std::uint64_t>(bytes));
    default: return narrow(load<std::int64_t>(bytes));
  }
}

bool is_float(GgufType type) { return type == GgufType::kF32 || type == GgufType::kF64; }

// nullopt when a finite double is too large for a float.  REQUIRES: is_float(type)
std::optional<float> load_float(GgufType type, const std::byte* bytes) {
  if (type == GgufType::kF32) return load<float>(bytes);
  const double value = load<double>(bytes);
  if (std::isfinite(value) && std::abs(value) > std::numeric_limits<float>::max()) return std::nullopt;
  return static_cast<float>(value);
}

template <class T>
constexpr std::string_view kExpected = "a whole number";
template <>
constexpr std::string_view kExpected<float> = "a floating-point number";
template <>
constexpr std::string_view kExpected<bool> = "a boolean";
template <>
constexpr std::string_view kExpected<std::string_view> = "a string";
template <>
constexpr std::string_view kExpected<std::vector<std::int32_t>> = "an array of whole numbers";
template <>
constexpr std::string_view kExpected<std::vector<bool>> = "an array of booleans";
template <>
constexpr std::string_view kExpected<std::vector<float>> = "an array of floating-point numbers";
template <>
constexpr std::string_view kExpected<std::vector<std::string_view>> = "an array of strings";

template <class T>
struct ElementOf {
  using type = T;
  static constexpr bool is_array = false;
};
template <class T>
struct ElementOf<std::vector<T>> {
  using type = T;
  static constexpr bool is_array = true;
};

template <class T>
bool can_hold(GgufType type) {
  if constexpr (std::is_same_v<T, bool>) {
    return type == GgufType::kBool;
  } else if constexpr (std::is_same_v<T, std::string_view>) {
    return type == GgufType::kString;
  } else if constexpr (std::is_same_v<T, float>) {
    return is_float(type);
  } else {
    return is_integer(type);
  }
}

// One element, and where the next one starts.  REQUIRES: can_hold<T>(type)
template <class T>
std::optional<T> load_element(GgufType type, const std::byte*& bytes) {
  if constexpr (std::is_same_v<T, std::string_view>) {
    const auto length = static_cast<std::size_t>(load<std::uint64_t>(bytes));
    const std::string_view text(reinterpret_cast<const char*>(bytes) + 8, length);
    bytes += 8 + length;
    return text;
  } else {
    const std::byte* element = bytes;
    bytes += stored_bytes(type);
    if constexpr (std::is_same_v<T, bool>)
      return load<std::uint8_t>(element) == 1;
    else if constexpr (std::is_same_v<T, float>)
      return load_float(type, element);
    else
      return load_integer<T>(type, element);
  }
}

}  // namespace

std::string_view GgufHeader::key_of(const Entry& entry) const {
  return {reinterpret_cast<const char*>(bytes_.data()) + entry.key_start, entry.key_length};
}

const GgufHeader::Entry* GgufHeader::find_entry(std::string_view key) const {
  const auto found = std::lower_bound(
      by_key_.begin(), by_key_.end(), key,
      [&](std::uint32_t index, std::string_view wanted) { return key_of(entries_[index]) < wanted; });
  if (found == by_key_.end() || key_of(entries_[*found]) != key) return nullptr;
  return &entries_[*found];
}

Error GgufHeader::error_about(std::string_view key, ErrorCode code, std::string_view sentence) const {
  const Entry* entry = find_entry(key);
  Error error{
      code,
      escape_for_message(file_name_, 1000) + ": " + escape_for_message(key) + " " + std::string(sentence),
      std::string(key)};
  if (entry != nullptr) error.byte_offset = entry->value_offset;
  return error;
}

Error GgufHeader::wrong_type(const Entry& entry, std::string_view expected) const {
  std::string found(gguf_type_name(entry.element_type));
  if (entry.type == GgufType::kArray) found = "array of " + found;
  return error_about(
      key_of(entry), ErrorCode::kDamagedFile,
      "has type " + found + " where " + std::string(expected) + " is needed; convert the model again");
}

Error GgufHeader::too_large(const Entry& entry) const {
  return error_about(key_of(entry), ErrorCode::kUnsupported,
                     "holds " + std::to_string(entry.count) +
                         (entry.type == GgufType::kArray ? " elements in " : " value in ") +
                         std::to_string(entry.value_bytes) +
                         " bytes, more than any model needs; choose another model");
}

template <class T>
Result<T> GgufHeader::convert(const Entry& entry) const {
  using Element = typename ElementOf<T>::type;
  const bool is_array = entry.type == GgufType::kArray;
  if (is_array != ElementOf<T>::is_array || !can_hold<Element>(entry.element_type))
    return wrong_type(entry, kExpected<T>);
  if (entry.value_start == kNotKept || entry.count > kMaxArrayStrings) return too_large(entry);
  const std::byte* position = bytes_.data() + entry.value_start;
  const auto does_not_fit = [&] {
    return error_about(key_of(entry), ErrorCode::kDamagedFile,
                       "holds a number that is out of range; convert the model again");
  };
  if constexpr (ElementOf<T>::is_array) {
    T values;
    values.reserve(static_cast<std::size_t>(entry.count));  // each element is there: the walk stepped over it
    for (std::uint64_t i = 0; i < entry.count; ++i) {
      const auto value = load_element<Element>(entry.element_type, position);
      if (!value) return does_not_fit();
      values.push_back(*value);
    }
    return values;
  } else {
    const auto value = load_element<Element>(entry.element_type, position);
    if (!value) return does_not_fit();
    return *value;
  }
}

template <class T>
Result<std::optional<T>> GgufHeader::find(std::string_view key) const {
  const Entry* entry = find_entry(key);
  if (entry == nullptr) return std::optional<T>();
  OCTAVO_TRY(T value, convert<T>(*entry));
  return std::optional<T>(std::move(value));
}

template <class T>
Result<T> GgufHeader::get(std::string_view key) const {
  const Entry* entry = find_entry(key);
  if (entry == nullptr)
    return error_about(key, ErrorCode::kDamagedFile, "is missing; convert the model again");
  return convert<T>(*entry);
}

#define OCTAVO_INSTANTIATE_GETTERS(...)                                                              \
  template Result<std::optional<__VA_ARGS__>> GgufHeader::find<__VA_ARGS__>(std::string_view) const; \
  template Result<__VA_ARGS__> GgufHeader::get<__VA_ARGS__>(std::string_view) const;
OCTAVO_INSTANTIATE_GETTERS(std::uint32_t)
OCTAVO_INSTANTIATE_GETTERS(std::int32_t)
OCTAVO_INSTANTIATE_GETTERS(std::uint64_t)
OCTAVO_INSTANTIATE_GETTERS(float)
OCTAVO_INSTANTIATE_GETTERS(bool)
OCTAVO_INSTANTIATE_GETTERS(std::string_view)
OCTAVO_INSTANTIATE_GETTERS(std::vector<std::int32_t>)
OCTAVO_INSTANTIATE_GETTERS(std::vector<bool>)
OCTAVO_INSTANTIATE_GETTERS(std::vector<float>)
OCTAVO_INSTANTIATE_GETTERS(std::vector<std::string_view>)
#undef OCTAVO_INSTANTIATE_GETTERS

Result<bool> GgufHeader::is_array(std::string_view key) const {
  const Entry* entry = find_entry(key);
  if (entry == nullptr)
    return error_about(key, ErrorCode::kDamagedFile, "is missing; convert the model again");
  return entry->type == GgufType::kArray;
}

Result<std::optional<std::uint64_t>> GgufHeader::find_array_length(std::string_view key) const {
  const Entry* entry = find_entry(key);
  if (entry == nullptr) return std::optional<std::uint64_t>();
  if (entry->type != GgufType::kArray) return wrong_type(*entry, "an array");
  return std::optional<std::uint64_t>(entry->count);
}

std::optional<std::string> GgufHeader::first_disagreement(const GgufHeader& other,
                                                          std::string_view except) const {
  const auto value_bytes = [](const GgufHeader& header, const Entry& entry) {
    if (entry.value_start == kNotKept) return std::string_view();
    return std::string_view(reinterpret_cast<const char*>(header.bytes_.data()) + entry.value_start,
                            static_cast<std::size_t>(entry.value_bytes));
  };
  for (const Entry& entry : entries_) {
    const std::string_view key = key_of(entry);
    const Entry* theirs = other.find_entry(key);
    if (key == except || theirs == nullptr) continue;
    const bool equal = theirs->type == entry.type && theirs->element_type == entry.element_type &&
                       theirs->value_bytes == entry.value_bytes &&
                       value_bytes(*this, entry) == value_bytes(other, *theirs);
    if (!equal) return std::string(key);
  }
  return std::nullopt;
}

}  // namespace octavo::model
