#include "kernels/tensor.h"

#include "engine/base/check.h"

namespace octavo::kernels {
namespace {

struct TypeAndTraits {
  TensorType type;
  TensorTypeTraits traits;
};
constexpr TypeAndTraits kTypes[] = {
    {TensorType::kF32, {"F32", 1, 4, false}},           {TensorType::kF16, {"F16", 1, 2, false}},
    {TensorType::kBF16, {"BF16", 1, 2, false}},         {TensorType::kQ4_0, {"Q4_0", 32, 18, true}},
    {TensorType::kQ4_1, {"Q4_1", 32, 20, true}},        {TensorType::kQ5_0, {"Q5_0", 32, 22, true}},
    {TensorType::kQ5_1, {"Q5_1", 32, 24, true}},        {TensorType::kQ8_0, {"Q8_0", 32, 34, true}},
    {TensorType::kQ2_K, {"Q2_K", 256, 84, true}},       {TensorType::kQ3_K, {"Q3_K", 256, 110, true}},
    {TensorType::kQ4_K, {"Q4_K", 256, 144, true}},      {TensorType::kQ5_K, {"Q5_K", 256, 176, true}},
    {TensorType::kQ6_K, {"Q6_K", 256, 210, true}},      {TensorType::kIQ1_S, {"IQ1_S", 256, 50, true}},
    {TensorType::kIQ1_M, {"IQ1_M", 256, 56, true}},     {TensorType::kIQ2_XXS, {"IQ2_XXS", 256, 66, true}},
    {TensorType::kIQ2_XS, {"IQ2_XS", 256, 74, true}},   {TensorType::kIQ2_S, {"IQ2_S", 256, 82, true}},
    {TensorType::kIQ3_XXS, {"IQ3_XXS", 256, 98, true}}, {TensorType::kIQ3_S, {"IQ3_S", 256, 110, true}},
    {TensorType::kIQ4_NL, {"IQ4_NL", 32, 18, true}},    {TensorType::kIQ4_XS, {"IQ4_XS", 256, 136, true}},
    {TensorType::kMXFP4, {"MXFP4", 32, 17, true}},      {TensorType::kNVFP4, {"NVFP4", 64, 36, true}},
    {TensorType::kTQ1_0, {"TQ1_0", 256, 54, true}},     {TensorType::kTQ2_0, {"TQ2_0", 256, 66, true}},
    {TensorType::kQ1_0, {"Q1_0", 128, 18, true}},       {TensorType::kQ2_0, {"Q2_0", 64, 18, true}},
    {TensorType::kU4_G32, {"U4_G32", 32, 21, true}},    {TensorType::kU4_G128, {"U4_G128", 128, 69, true}},
    {TensorType::kU8_G32, {"U8_G32", 32, 37, true}},    {TensorType::kU8_G128, {"U8_G128", 128, 133, true}},
    {TensorType::kF8_G32, {"F8_G32", 32, 36, true}},    {TensorType::kF8_G128, {"F8_G128", 128, 132, true}},
};

const TensorTypeTraits* find_traits(TensorType type) {
  for (const TypeAndTraits& known : kTypes) {
    if (known.type == type) return &known.traits;
  }
  return nullptr;  // a number that is none of the enumerators
}

}  // namespace

std::optional<TensorType> tensor_type_from(std::uint32_t ggml_type) {
  const auto type = known_tensor_type(ggml_type);
  return type && *type < TensorType::kU4_G32 ? type : std::nullopt;
}

std::optional<TensorType> known_tensor_type(std::uint32_t number) {
  const auto type = static_cast<TensorType>(number);  // any uint32 is a value of the enumeration
  if (find_traits(type) == nullptr) return std::nullopt;
  return type;
}

bool meets_integers(TensorType type) {
  return traits_of(type).quantised && type != TensorType::kF8_G32 && type != TensorType::kF8_G128;
}

const TensorTypeTraits& traits_of(TensorType type) {
  const TensorTypeTraits* traits = find_traits(type);
  OCTAVO_CHECK(traits != nullptr, "tensor type %u", static_cast<unsigned>(type));
  return *traits;
}

}  // namespace octavo::kernels
