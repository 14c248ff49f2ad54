#include "engine/model/gguf_type.h"

#include <cstddef>

#include "kernels/tensor.h"

namespace octavo::model {
namespace {

struct ForeignType {
  std::uint32_t number;
  StoredTensorType stored;
};
constexpr ForeignType kForeignTypes[] = {
    {24, {"I8", 1, 1}}, {25, {"I16", 1, 2}}, {26, {"I32", 1, 4}}, {27, {"I64", 1, 8}}, {28, {"F64", 1, 8}},
};

}  // namespace

std::optional<GgufType> gguf_type_from(std::uint32_t number) {
  if (number > static_cast<std::uint32_t>(GgufType::kF64)) return std::nullopt;
  return static_cast<GgufType>(number);
}

std::string_view gguf_type_name(GgufType type) {
  static constexpr std::string_view kNames[] = {"u8",   "i8",     "u16",   "i16", "u32", "i32", "f32",
                                                "bool", "string", "array", "u64", "i64", "f64"};
  return kNames[static_cast<std::size_t>(type)];
}

std::uint64_t stored_bytes(GgufType type) {
  switch (type) {
    case GgufType::kU8:
    case GgufType::kI8:
    case GgufType::kBool: return 1;
    case GgufType::kU16:
    case GgufType::kI16: return 2;
    case GgufType::kU32:
    case GgufType::kI32:
    case GgufType::kF32: return 4;
    case GgufType::kString:
    case GgufType::kArray:
    case GgufType::kU64:
    case GgufType::kI64:
    case GgufType::kF64: return 8;
  }
  return 8;
}

std::optional<StoredTensorType> stored_tensor_type(std::uint32_t ggml_type) {
  if (const auto readable = kernels::tensor_type_from(ggml_type)) {
    const kernels::TensorTypeTraits& traits = kernels::traits_of(*readable);
    return StoredTensorType{traits.name, static_cast<std::uint32_t>(traits.block_elements),
                            static_cast<std::uint32_t>(traits.block_bytes)};
  }
  for (const ForeignType& foreign : kForeignTypes) {
    if (foreign.number == ggml_type) return foreign.stored;
  }
  return std::nullopt;
}

}  // namespace octavo::model
