// The two numbers that a norm needs of a row, by all threads of a block in one dimension. The number of
// threads is the order of the sums: not to be changed with the number of rows.
#pragma once

#include <cmath>
#include <cstdint>

#include "kernels/cuda/runtime/device_names.h"
#include "kernels/cuda/runtime/reduction.cuh"

namespace octavo::kernels::cuda {

__device__ inline float mean_of(const float* values, std::int64_t columns) {
  float sum = 0.0f;
#pragma unroll 8
  for (std::int64_t column = threadIdx.x; column < columns; column += blockDim.x) sum += values[column];
  return block_sum(sum) / static_cast<float>(columns);
}

// 1 / sqrt(mean of (value - centre)^2 + epsilon). A centre of 0 takes nothing away: an RMS norm's.
__device__ inline float norm_factor(const float* values, float centre, std::int64_t columns, float epsilon) {
  float sum = 0.0f;
#pragma unroll 8
  for (std::int64_t column = threadIdx.x; column < columns; column += blockDim.x) {
    const float value = values[column] - centre;
    sum = fmaf(value, value, sum);
  }
  return 1.0f / sqrtf(block_sum(sum) / static_cast<float>(columns) + epsilon);
}

}  // namespace octavo::kernels::cuda
