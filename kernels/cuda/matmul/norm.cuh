// The two numbers that a norm needs of a row, by all threads of a block in one dimension. A row's sum is that
// of kNormChains sums, each of every kNormChains-th number: one order, however many threads share them.
#pragma once

#include <cmath>
#include <cstdint>

#include "kernels/cuda/runtime/device_names.h"
#include "kernels/cuda/runtime/reduction.cuh"

namespace octavo::kernels::cuda {

inline constexpr unsigned kNormChains = 512;

// `add(sum, value)` gives the next sum. Every thread gets the result.
template <unsigned kThreads, class Add>
__device__ inline float row_sum(const float* values, std::int64_t columns, Add add) {
  static_assert(kNormChains % kThreads == 0 && kThreads % kWarp == 0 && kNormChains <= kWarp * kWarp);
  constexpr unsigned kOfThread = kNormChains / kThreads;
  float sums[kOfThread] = {};
#pragma unroll(8 / kOfThread)
  for (std::int64_t first = threadIdx.x; first < columns; first += kNormChains) {
#pragma unroll
    for (unsigned i = 0; i < kOfThread; ++i) {
      const std::int64_t column = first + i * kThreads;
      if (column < columns) sums[i] = add(sums[i], values[column]);
    }
  }
  return block_combination<warp_sum>(sums, 0.0f);
}

template <unsigned kThreads>
__device__ inline float mean_of(const float* values, std::int64_t columns) {
  const float sum = row_sum<kThreads>(values, columns, [](float all, float value) { return all + value; });
  return sum / static_cast<float>(columns);
}

// 1 / sqrt(mean of (value - centre)^2 + epsilon). A centre of 0 takes nothing away: an RMS norm's.
template <unsigned kThreads>
__device__ inline float norm_factor(const float* values, float centre, std::int64_t columns, float epsilon) {
  const float sum = row_sum<kThreads>(values, columns, [centre](float all, float value) {
    return fmaf(value - centre, value - centre, all);
  });
  return 1.0f / sqrtf(sum / static_cast<float>(columns) + epsilon);
}

}  // namespace octavo::kernels::cuda
