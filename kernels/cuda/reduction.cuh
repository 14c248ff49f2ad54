// Sums and maxima over the lanes of a warp and the threads of a block, in one fixed order: the same bits in
// every lane.
#pragma once

#include <cuda_runtime.h>

#include <cmath>

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

// Of a block in one dimension, a multiple of 32 threads; every thread gets the result. All threads take part.
__device__ inline float block_sum(float value) {
  __shared__ float parts[kWarp];
  const unsigned lane = threadIdx.x % kWarp, num_warps = blockDim.x / kWarp;
  value = warp_sum(value);
  if (lane == 0) parts[threadIdx.x / kWarp] = value;
  __syncthreads();
  const float total = warp_sum(lane < num_warps ? parts[lane] : 0.0f);
  __syncthreads();  // the next call writes `parts` again
  return total;
}

__device__ inline float block_max(float value) {
  __shared__ float parts[kWarp];
  const unsigned lane = threadIdx.x % kWarp, num_warps = blockDim.x / kWarp;
  value = warp_max(value);
  if (lane == 0) parts[threadIdx.x / kWarp] = value;
  __syncthreads();
  const float largest = warp_max(parts[lane < num_warps ? lane : 0]);
  __syncthreads();
  return largest;
}

}  // namespace octavo::kernels::cuda
