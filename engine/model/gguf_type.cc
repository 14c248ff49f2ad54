#include "engine/model/gguf_type.h"

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
