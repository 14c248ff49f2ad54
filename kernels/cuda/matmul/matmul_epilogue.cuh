// What the kernels of products share: which target a block works for, and how a result is stored.
#pragma once

#include <cmath>
#include <cstdint>

#include "kernels/cuda/matmul/matmul_kernels.h"
#include "kernels/cuda/runtime/device_names.h"

namespace octavo::kernels::cuda {

__device__ inline int target_of_block(const ProductTargets& targets, int block) {
  int target = 0;
  if (targets.is_gate_up != 0) return 0;
  while (target + 1 < targets.count && block >= targets.targets[target + 1].first_block) ++target;
  return target;
}

// z / (1 + exp(-z)), of which GELU is the same with another exponent: (1 +
// tanh(u)) / 2 = 1 / (1 + exp(-2 u)).
__device__ inline float activated(Epilogue activation, float z) {
  if (activation == Epilogue::kRelu) return z < 0.0f ? 0.0f : z;  // keeps a NaN
  constexpr float kTwiceRootOfTwoOverPi = 1.5957691216057308f;
  float exponent = z;
  if (activation == Epilogue::kGelu) exponent = kTwiceRootOfTwoOverPi * (z + 0.044715f * z * z * z);
  return z / (1.0f + expf(-exponent));
}

__device__ inline void store_with(Epilogue epilogue, float* out, float value) {
  if (epilogue == Epilogue::kAdd) {
    value = *out + value;
  } else if (epilogue != Epilogue::kStore) {
    value = activated(epilogue, value);
  }
  *out = value;
}

__device__ inline void store_output(const ProductTarget& target, std::int64_t row, std::int64_t output,
                                    float value) {
  if (target.bias != nullptr) value += target.bias[output];
  store_with(target.epilogue, target.out + row * target.out_stride + output, value);
}

__device__ inline void store_gate_up(const ProductTargets& targets, std::int64_t row, std::int64_t output,
                                     float gate, float up) {
  const ProductTarget& first = targets.targets[0];
  if (first.bias != nullptr) gate += first.bias[output];
  if (targets.targets[1].bias != nullptr) up += targets.targets[1].bias[output];
  first.out[row * first.out_stride + output] = activated(first.epilogue, gate) * up;
}

}  // namespace octavo::kernels::cuda
