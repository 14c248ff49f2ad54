// HIP's bfloat16 as kernels/cuda uses it, rounding to nearest even.
#pragma once

#include <cstdint>

#include "engine/base/half.h"

struct alignas(2) hip_bfloat16 {
  std::uint16_t data;
  hip_bfloat16() = default;
  explicit hip_bfloat16(float value) : data(octavo::float_to_bfloat16(value)) {}
  operator float() const { return octavo::bfloat16_to_float(data); }
};
