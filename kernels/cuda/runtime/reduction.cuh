// Sums and maxima over the lanes of a warp and the threads of a block, in one fixed order: the same bits in
// every lane.
#pragma once

#include <cmath>

#include "kernels/cuda/runtime/device_names.h"

namespace octavo::kernels::cuda {

inline constexpr unsigned kWarp = 32, kAllLanes = 0xffffffffu;

__device__ inline float warp_sum(float value) {
  for (unsigned distance = kWarp / 2; distance > 0; distance /= 2) {
    value += __shfl_xor_sync(kAllLanes, value, static_cast<int>(distance));
  }
  return value;
}

__device__ inline float warp_max(float value) {
  for (unsigned distance = kWarp / 2; distance > 0; distance /= 2) {
    value = fmaxf(value, __shfl_xor_sync(kAllLanes, value, static_cast<int>(distance)));
  }
  return value;
}

// Of a block in one dimension, a multiple of 32 threads; every thread gets the result. All threads take part,
// each with kOfThread values as if it stood for as many threads, a block apart: together they are at most
// 1,024. `nothing` changes no result.
template <float (*kCombine)(float), unsigned kOfThread = 1>
__device__ inline float block_combination(const float (&values)[kOfThread], float nothing) {
  __shared__ float parts[kWarp];
  const unsigned lane = threadIdx.x % kWarp, num_warps = blockDim.x / kWarp;
#pragma unroll
  for (unsigned i = 0; i < kOfThread; ++i) {
    const float part = kCombine(values[i]);
    if (lane == 0) parts[i * num_warps + threadIdx.x / kWarp] = part;
  }
  __syncthreads();
  const float result = kCombine(lane < kOfThread * num_warps ? parts[lane] : nothing);
  __syncthreads();  // the next call writes `parts` again
  return result;
}

__device__ inline float block_sum(float value) { return block_combination<warp_sum>({value}, 0.0f); }
__device__ inline float block_max(float value) { return block_combination<warp_max>({value}, -INFINITY); }

}  // namespace octavo::kernels::cuda
