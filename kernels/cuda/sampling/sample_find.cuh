// Where a running sum passes a target: first among pieces, then in one. Sums are doubles, in an order that
// depends on the number of pieces and the size of the block only.
#pragma once

#include <algorithm>
#include <climits>
#include <cstdint>

#include "kernels/cuda/runtime/device_names.h"
#include "kernels/cuda/sampling/sample_row.cuh"

namespace octavo::kernels::cuda {

struct SamplePlace {
  std::int32_t piece;  // -1: no value is above 0
  double before;       // sum of the pieces before it
};

// Of this thread's run [begin, end): the first value with which `sum` passes the target, and the last one
// above 0.
struct RunSearch {
  std::int32_t first = INT_MAX, last = -1;
  double before_first = 0.0, before_last = 0.0;

  __device__ void search(const double* values, std::int32_t begin, std::int32_t end, double sum,
                         double target) {
    for (std::int32_t i = begin; i < end; ++i) {
      const double next = sum + values[i];
      if (values[i] > 0.0) {
        last = i, before_last = sum;
        if (next > target && first == INT_MAX) first = i, before_first = sum;
      }
      sum = next;
    }
  }
};

// By all threads of a block: the first value above 0 with which the running sum passes target(sum of all).
// Where rounding lets none, the last one above 0.
template <class Target>
__device__ SamplePlace find_piece(const double* values, std::int32_t count, Target target) {
  __shared__ double warp_totals[kWarp];
  __shared__ std::int32_t first_of_all, last_of_all;
  __shared__ double before;
  __syncthreads();  // an earlier call's results have been read
  const auto threads = static_cast<std::int32_t>(blockDim.x), thread = static_cast<std::int32_t>(threadIdx.x);
  const std::int32_t run = (count + threads - 1) / threads;
  const std::int32_t begin = std::min(thread * run, count), end = std::min(begin + run, count);
  double inclusive = 0.0;
  for (std::int32_t i = begin; i < end; ++i) inclusive += values[i];
  const unsigned lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp;
  for (unsigned distance = 1; distance < kWarp; distance *= 2) {
    const double other = __shfl_up_sync(kAllLanes, inclusive, distance);
    if (lane >= distance) inclusive += other;
  }
  double sum = __shfl_up_sync(kAllLanes, inclusive, 1);
  if (lane == 0) sum = 0.0;
  if (lane == kWarp - 1) warp_totals[warp] = inclusive;
  if (thread == 0) first_of_all = INT_MAX, last_of_all = -1;
  __syncthreads();
  double total = 0.0, before_warp = 0.0;
  for (unsigned i = 0; i < blockDim.x / kWarp; ++i) {
    if (i == warp) before_warp = total;
    total += warp_totals[i];
  }
  RunSearch mine;
  mine.search(values, begin, end, before_warp + sum, target(total));
  if (mine.first != INT_MAX) atomicMin(&first_of_all, mine.first);
  if (mine.last >= 0) atomicMax(&last_of_all, mine.last);
  __syncthreads();
  const bool is_passed = first_of_all != INT_MAX;
  const std::int32_t chosen = is_passed ? first_of_all : last_of_all;
  if (is_passed ? mine.first == chosen : chosen >= 0 && mine.last == chosen)
    before = is_passed ? mine.before_first : mine.before_last;
  __syncthreads();
  return {chosen, before};
}

// The same among the entries of a piece, by one warp: lane i has the values of entries 2 i and 2 i + 1.
// Returns the entry, -1 if no value is above 0.
__device__ inline std::int32_t find_entry(double first, double second, double before, double target) {
  static_assert(kLogitsPiece == 2 * kWarp);
  const unsigned lane = threadIdx.x % kWarp;
  double inclusive = first + second;
  for (unsigned distance = 1; distance < kWarp; distance *= 2) {
    const double other = __shfl_up_sync(kAllLanes, inclusive, distance);
    if (lane >= distance) inclusive += other;
  }
  double sum = __shfl_up_sync(kAllLanes, inclusive, 1);
  sum = before + (lane == 0 ? 0.0 : sum);
  const bool first_passes = first > 0.0 && sum + first > target;
  const bool second_passes = second > 0.0 && (sum + first) + second > target;
  const unsigned passing = __ballot_sync(kAllLanes, first_passes || second_passes);
  const unsigned possible = __ballot_sync(kAllLanes, first > 0.0 || second > 0.0);
  if (possible == 0) return -1;
  const int owner =
      passing != 0 ? __ffs(static_cast<int>(passing)) - 1 : 31 - __clz(static_cast<int>(possible));
  const bool takes_second = passing != 0 ? !first_passes : second > 0.0;
  return 2 * owner + __shfl_sync(kAllLanes, takes_second ? 1 : 0, owner);
}

}  // namespace octavo::kernels::cuda
