#include "engine/model/metadata.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "engine/base/check.h"
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

bool is_integer(ValueType type) {
  switch (type) {
    case ValueType::kU8:
    case ValueType::kI8:
    case ValueType::kU16:
    case ValueType::kI16:
    case ValueType::kU32:
    case ValueType::kI32:
    case ValueType::kU64:
    case ValueType::kI64: return true;
    default: return false;
  }
}

// The value as T, or nullopt when T cannot hold it.  REQUIRES: is_integer(type)
template <class T>
std::optional<T> load_integer(ValueType type, const std::byte* bytes) {
  const auto narrow = [](auto value) -> std::optional<T> {
    if (!std::in_range<T>(value)) return std::nullopt;
    return static_cast<T>(value);
  };
  switch (type) {
    case ValueType::kU8: return narrow(load<std::uint8_t>(bytes));
    case ValueType::kI8: return narrow(load<std::int8_t>(bytes));
    case ValueType::kU16: return narrow(load<std::uint16_t>(bytes));
    case ValueType::kI16: return narrow(load<std::int16_t>(bytes));
    case ValueType::kU32: return narrow(load<std::uint32_t>(bytes));
    case ValueType::kI32: return narrow(load<std::int32_t>(bytes));
    case ValueType::kU64: return narrow(load<std::uint64_t>(bytes));
    default: return narrow(load<std::int64_t>(bytes));
  }
}

bool is_float(ValueType type) { return type == ValueType::kF32 || type == ValueType::kF64; }

// nullopt when a finite double is too large for a float.  REQUIRES: is_float(type)
std::optional<float> load_float(ValueType type, const std::byte* bytes) {
  if (type == ValueType::kF32) return load<float>(bytes);
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
bool can_hold(ValueType type) {
  if constexpr (std::is_same_v<T, bool>) {
    return type == ValueType::kBool;
  } else if constexpr (std::is_same_v<T, std::string_view>) {
    return type == ValueType::kString;
  } else if constexpr (std::is_same_v<T, float>) {
    return is_float(type);
  } else {
    return is_integer(type);
  }
}

// One element, and where the next one starts.  REQUIRES: can_hold<T>(type)
template <class T>
std::optional<T> load_element(ValueType type, const std::byte*& bytes) {
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

std::string_view Metadata::key_of(const Entry& entry) const {
  return {reinterpret_cast<const char*>(bytes_.data()) + entry.key_start, entry.key_length};
}

const Metadata::Entry* Metadata::find_entry(std::string_view key) const {
  const auto found = std::lower_bound(
      by_key_.begin(), by_key_.end(), key,
      [&](std::uint32_t index, std::string_view wanted) { return key_of(entries_[index]) < wanted; });
  if (found == by_key_.end() || key_of(entries_[*found]) != key) return nullptr;
  return &entries_[*found];
}

Error Metadata::error_about(std::string_view key, ErrorCode code, std::string_view sentence) const {
  const Entry* entry = find_entry(key);
  const auto origin = origins_.find(key);
  const std::string_view name = origin == origins_.end() ? key : std::string_view(origin->second);
  Error error{
      code,
      escape_for_message(file_name_, 1000) + ": " + escape_for_message(name) + " " + std::string(sentence),
      std::string(name)};
  if (entry != nullptr && has_offsets_) error.byte_offset = entry->value_offset;
  return error;
}

Error Metadata::wrong_type(const Entry& entry, std::string_view expected) const {
  std::string found(value_type_name(entry.element_type));
  if (entry.type == ValueType::kArray) found = "array of " + found;
  return error_about(
      key_of(entry), ErrorCode::kDamagedFile,
      "has type " + found + " where " + std::string(expected) + " is needed; convert the model again");
}

Error Metadata::too_large(const Entry& entry) const {
  return error_about(key_of(entry), ErrorCode::kUnsupported,
                     "holds " + std::to_string(entry.count) +
                         (entry.type == ValueType::kArray ? " elements in " : " value in ") +
                         std::to_string(entry.value_bytes) +
                         " bytes, more than any model needs; choose another model");
}

template <class T>
Result<T> Metadata::convert(const Entry& entry) const {
  using Element = typename ElementOf<T>::type;
  const bool is_array = entry.type == ValueType::kArray;
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
Result<std::optional<T>> Metadata::find(std::string_view key) const {
  const Entry* entry = find_entry(key);
  if (entry == nullptr) return std::optional<T>();
  OCTAVO_TRY(T value, convert<T>(*entry));
  return std::optional<T>(std::move(value));
}

template <class T>
Result<T> Metadata::get(std::string_view key) const {
  const Entry* entry = find_entry(key);
  if (entry == nullptr)
    return error_about(key, ErrorCode::kDamagedFile, "is missing; convert the model again");
  return convert<T>(*entry);
}

#define OCTAVO_INSTANTIATE_GETTERS(...)                                                            \
  template Result<std::optional<__VA_ARGS__>> Metadata::find<__VA_ARGS__>(std::string_view) const; \
  template Result<__VA_ARGS__> Metadata::get<__VA_ARGS__>(std::string_view) const;
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

Result<bool> Metadata::is_array(std::string_view key) const {
  const Entry* entry = find_entry(key);
  if (entry == nullptr)
    return error_about(key, ErrorCode::kDamagedFile, "is missing; convert the model again");
  return entry->type == ValueType::kArray;
}

Result<std::optional<std::uint64_t>> Metadata::find_array_length(std::string_view key) const {
  const Entry* entry = find_entry(key);
  if (entry == nullptr) return std::optional<std::uint64_t>();
  if (entry->type != ValueType::kArray) return wrong_type(*entry, "an array");
  return std::optional<std::uint64_t>(entry->count);
}

std::optional<std::string> Metadata::first_disagreement(const Metadata& other,
                                                        std::string_view except) const {
  const auto value_bytes = [](const Metadata& header, const Entry& entry) {
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

// ---- filling

void Metadata::add_entry(std::string_view key, ValueType type, ValueType element_type, std::uint64_t count,
                         std::span<const std::byte> value, std::string_view origin) {
  const auto place = std::lower_bound(
      by_key_.begin(), by_key_.end(), key,
      [&](std::uint32_t index, std::string_view wanted) { return key_of(entries_[index]) < wanted; });
  OCTAVO_CHECK(place == by_key_.end() || key_of(entries_[*place]) != key, "a key is added twice");
  has_offsets_ = false;
  Entry entry{};
  entry.key_start = bytes_.size();
  entry.key_length = static_cast<std::uint32_t>(key.size());
  const auto key_bytes = std::as_bytes(std::span(key.data(), key.size()));
  bytes_.insert(bytes_.end(), key_bytes.begin(), key_bytes.end());
  entry.value_start = bytes_.size();
  entry.value_bytes = value.size();
  entry.count = count;
  entry.type = type;
  entry.element_type = element_type;
  bytes_.insert(bytes_.end(), value.begin(), value.end());
  by_key_.insert(place, static_cast<std::uint32_t>(entries_.size()));
  entries_.push_back(entry);
  set_origin(key, origin);
}

void Metadata::set_origin(std::string_view key, std::string_view origin) {
  if (!origin.empty()) origins_.insert_or_assign(std::string(key), std::string(origin));
}

void Metadata::add(std::string_view key, std::int64_t value, std::string_view origin) {
  add_entry(key, ValueType::kI64, ValueType::kI64, 1, std::as_bytes(std::span(&value, 1)), origin);
}

void Metadata::add(std::string_view key, double value, std::string_view origin) {
  const float number = static_cast<float>(value);
  add_entry(key, ValueType::kF32, ValueType::kF32, 1, std::as_bytes(std::span(&number, 1)), origin);
}

void Metadata::add_flag(std::string_view key, bool value, std::string_view origin) {
  const std::uint8_t byte = value ? 1 : 0;
  add_entry(key, ValueType::kBool, ValueType::kBool, 1, std::as_bytes(std::span(&byte, 1)), origin);
}

void Metadata::add_text(std::string_view key, std::string_view value, std::string_view origin) {
  const std::uint64_t length = value.size();
  const auto length_bytes = std::as_bytes(std::span(&length, 1));
  const auto text_bytes = std::as_bytes(std::span(value.data(), value.size()));
  std::vector<std::byte> bytes(length_bytes.begin(), length_bytes.end());
  bytes.insert(bytes.end(), text_bytes.begin(), text_bytes.end());
  add_entry(key, ValueType::kString, ValueType::kString, 1, bytes, origin);
}

void Metadata::add_list(std::string_view key, std::span<const std::int32_t> values, std::string_view origin) {
  add_entry(key, ValueType::kArray, ValueType::kI32, values.size(), std::as_bytes(values), origin);
}

void Metadata::add_flags(std::string_view key, const std::vector<bool>& values, std::string_view origin) {
  std::vector<std::uint8_t> flags(values.begin(), values.end());
  add_entry(key, ValueType::kArray, ValueType::kBool, flags.size(), std::as_bytes(std::span(flags)), origin);
}

}  // namespace octavo::model
