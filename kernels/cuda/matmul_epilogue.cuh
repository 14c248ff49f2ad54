// What the kernels of products share: which target a block works for, and how a result is stored.
#pragma once

#include <cuda_runtime.h>

#include <cmath>
#include <cstdint>

#include "kernels/cuda/matmul_kernels.h"

namespace octavo::kernels::cuda {

__device__ inline int target_of_block(const ProductTargets& targets, int block) {
  int target = 0;
  if (targets.is_gate_up != 0) return 0;
  while (target + 1 < targets.count && block >= targets.targets[target + 1].first_block) ++target;
  return target;
}

__device__ inline void store_output(const ProductTarget& target, std::int64_t row, std::int64_t output,
                                    float value) {
  if (target.bias != nullptr) value += target.bias[output];
  float* const out = target.out + row * target.out_stride + output;
  *out = target.adds != 0 ? *out + value : value;
}

__device__ inline float silu_times(float gate, float up) { return gate / (1.0f + expf(-gate)) * up; }

__device__ inline void store_gate_up(const ProductTargets& targets, std::int64_t row, std::int64_t output,
                                     float gate, float up) {
  const ProductTarget& first = targets.targets[0];
  if (first.bias != nullptr) gate += first.bias[output];
  if (targets.targets[1].bias != nullptr) up += targets.targets[1].bias[output];
  first.out[row * first.out_stride + output] = silu_times(gate, up);
}

}  // namespace octavo::kernels::cuda
