// The types of values behind the keys of a model's metadata, numbered as GGUF numbers them.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace octavo::model {

enum class ValueType : std::uint32_t {
  kU8,
  kI8,
  kU16,
  kI16,
  kU32,
  kI32,
  kF32,
  kBool,
  kString,
  kArray,
  kU64,
  kI64,
  kF64,
};

// nullopt: no such type.
std::optional<ValueType> value_type_from(std::uint32_t number);

// "u32", "string", ...
std::string_view value_type_name(ValueType type);

// Of one value; of a string or an array: its length field.
std::uint64_t stored_bytes(ValueType type);

}  // namespace octavo::model
