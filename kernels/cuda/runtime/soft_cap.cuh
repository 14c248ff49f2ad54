// Soft caps of scores and logits (Gemma Team 2024, arXiv:2408.00118).
#pragma once

#include <cfloat>
#include <cmath>

#include "kernels/cuda/runtime/device_names.h"

namespace octavo::kernels::cuda {

// cap * tanh(x / cap), NaN where x is not finite: what is not finite must not look like an answer. REQUIRES:
// cap > 0
__device__ inline float soft_capped(float x, float cap) {
  return fabsf(x) <= FLT_MAX ? cap * tanhf(x / cap) : __uint_as_float(0x7fc00000u);
}

}  // namespace octavo::kernels::cuda
