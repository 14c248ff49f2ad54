// Scaling by powers of two, which rounds nothing: it keeps float16 operands from overflowing.
#pragma once

#include "kernels/cuda/runtime/device_names.h"

namespace octavo::kernels::cuda {

struct PowerOfTwo {
  float value, inverse;
};

// Brings `largest` to 2^14 .. 2^15, where float16 has all its bits and room above. 0 and numbers near it: 1.
__device__ inline PowerOfTwo half_scale(float largest) {
  const unsigned exponent = __float_as_uint(largest) >> 23;
  if (exponent == 0) return {1.0f, 1.0f};
  const unsigned wanted = 127 + 14 + 127 - exponent, field = wanted < 253 ? wanted : 253;
  return {__uint_as_float(field << 23), __uint_as_float((254 - field) << 23)};
}

}  // namespace octavo::kernels::cuda
