#include "engine/model/value_type.h"

#include <cstddef>

namespace octavo::model {

std::optional<ValueType> value_type_from(std::uint32_t number) {
  if (number > static_cast<std::uint32_t>(ValueType::kF64)) return std::nullopt;
  return static_cast<ValueType>(number);
}

std::string_view value_type_name(ValueType type) {
  static constexpr std::string_view kNames[] = {"u8",   "i8",     "u16",   "i16", "u32", "i32", "f32",
                                                "bool", "string", "array", "u64", "i64", "f64"};
  return kNames[static_cast<std::size_t>(type)];
}

std::uint64_t stored_bytes(ValueType type) {
  switch (type) {
    case ValueType::kU8:
    case ValueType::kI8:
    case ValueType::kBool: return 1;
    case ValueType::kU16:
    case ValueType::kI16: return 2;
    case ValueType::kU32:
    case ValueType::kI32:
    case ValueType::kF32: return 4;
    case ValueType::kString:
    case ValueType::kArray:
    case ValueType::kU64:
    case ValueType::kI64:
    case ValueType::kF64: return 8;
  }
  return 8;
}

}  // namespace octavo::model
