// Numbers and weights by bin, and the search for the value at which the ranking reaches a limit. By one
// block, whose threads all take part; bins stand in its shared memory. Sums are of integers, so that no order
// changes them.
#pragma once

#include <climits>
#include <cstdint>

#include "kernels/cuda/runtime/device_names.h"
#include "kernels/cuda/sampling/sample_row.cuh"

namespace octavo::kernels::cuda {

__device__ inline SampleMass mass_of(double weight) {
  const double scaled = weight * 0x1p40;
  const auto high = static_cast<unsigned long long>(scaled);
  return {high, static_cast<unsigned long long>((scaled - static_cast<double>(high)) * 0x1p40)};
}

// How many, and what they weigh. No initial value, as of nothing that stands in shared memory: HIP refuses
// it.
struct SampleSum {
  std::uint32_t count;
  SampleMass mass;
  __device__ void add(const SampleSum& other) {
    count += other.count;
    mass.high += other.mass.high;
    mass.low += other.mass.low;
  }
  __device__ double weight() const {
    return static_cast<double>(mass.high) * 0x1p-40 + static_cast<double>(mass.low) * 0x1p-80;
  }
};

// Bins in arrays of their own: lanes read neighbouring words.
struct SharedBins {
  unsigned long long highs[kSampleBins], lows[kSampleBins];
  std::uint32_t counts[kSampleBins];

  __device__ SampleSum at(std::uint32_t bin) const { return {counts[bin], {highs[bin], lows[bin]}}; }
  __device__ void set(std::uint32_t bin, const SampleSum& sum) {
    counts[bin] = sum.count;
    highs[bin] = sum.mass.high;
    lows[bin] = sum.mass.low;
  }
  __device__ void clear() {
    for (unsigned bin = threadIdx.x; bin < kSampleBins; bin += blockDim.x) set(bin, {});
  }
  __device__ void add_one(std::uint32_t bin, const SampleSum& sum) {
    atomicAdd(&counts[bin], sum.count);
    if (sum.mass.high != 0) atomicAdd(&highs[bin], sum.mass.high);
    if (sum.mass.low != 0) atomicAdd(&lows[bin], sum.mass.low);
  }
  // By all lanes of a warp. Where all have the same bin, as in a flat row, they add up their own first and do
  // not wait for each other.
  __device__ void add(bool is_member, std::uint32_t bin, double weight) {
    const unsigned members = __ballot_sync(kAllLanes, is_member);
    if (members == 0) return;
    SampleSum sum{};
    if (is_member) sum = {1, mass_of(weight)};
    const std::uint32_t first = __shfl_sync(kAllLanes, bin, __ffs(static_cast<int>(members)) - 1);
    if (__all_sync(kAllLanes, !is_member || bin == first) == 0) {
      if (is_member) add_one(bin, sum);
      return;
    }
    for (int distance = kWarp / 2; distance > 0; distance /= 2) {
      sum.add({__shfl_xor_sync(kAllLanes, sum.count, distance),
               {__shfl_xor_sync(kAllLanes, sum.mass.high, distance),
                __shfl_xor_sync(kAllLanes, sum.mass.low, distance)}});
    }
    if (threadIdx.x % kWarp == 0) add_one(first, sum);
  }
};

// Where a ranking ends: with its count-th token, or with the first by which it weighs as much.
struct SampleLimit {
  std::uint32_t count = 0;  // 0: by weight
  double weight = 0.0;
  __device__ bool is_reached_by(const SampleSum& sum) const {
    return count > 0 ? sum.count >= count : sum.weight() >= weight;
  }
};

struct ReachedBin {
  bool is_reached;
  std::uint32_t bin;
  SampleSum before, inside;  // of the bins before it, and of it
  SampleSum total;           // of all bins
};

// Inclusive, over the lanes of a warp.
__device__ inline SampleSum scan_lanes(SampleSum sum) {
  for (unsigned distance = 1; distance < kWarp; distance *= 2) {
    const SampleSum other = {__shfl_up_sync(kAllLanes, sum.count, distance),
                             {__shfl_up_sync(kAllLanes, sum.mass.high, distance),
                              __shfl_up_sync(kAllLanes, sum.mass.low, distance)}};
    if (threadIdx.x % kWarp >= distance) sum.add(other);
  }
  return sum;
}

__device__ inline SampleSum from_lane(const SampleSum& sum, int lane) {
  return {__shfl_sync(kAllLanes, sum.count, lane),
          {__shfl_sync(kAllLanes, sum.mass.high, lane), __shfl_sync(kAllLanes, sum.mass.low, lane)}};
}

// The first bin with which the bins, added to `before`, reach the limit. By one warp: first among 32 runs of
// 32 bins, then in the run. `before` is of every lane.
__device__ inline ReachedBin find_reached(const SharedBins& bins, SampleSum before,
                                          const SampleLimit& limit) {
  static_assert(kSampleBins == kWarp * kWarp);
  const unsigned lane = threadIdx.x % kWarp;
  SampleSum run{};
  for (unsigned i = 0; i < kWarp; ++i)
    run.add(bins.at(lane * kWarp + (i + lane) % kWarp));  // no two lanes in one bank
  const SampleSum runs = scan_lanes(run);
  SampleSum reached = before;
  reached.add(runs);
  ReachedBin found{};
  found.total = from_lane(runs, kWarp - 1);
  const unsigned hits = __ballot_sync(kAllLanes, limit.is_reached_by(reached));
  if (hits == 0) return found;
  const int first = __ffs(static_cast<int>(hits)) - 1;
  if (first > 0) before.add(from_lane(runs, first - 1));

  const unsigned bin = static_cast<unsigned>(first) * kWarp + lane;
  const SampleSum mine = bins.at(bin), scanned = scan_lanes(mine);
  SampleSum sum = before;
  sum.add(scanned);
  const int chosen = __ffs(static_cast<int>(__ballot_sync(kAllLanes, limit.is_reached_by(sum)))) - 1;
  if (chosen > 0) before.add(from_lane(scanned, chosen - 1));
  found.is_reached = true;
  found.bin = static_cast<unsigned>(first) * kWarp + static_cast<unsigned>(chosen);
  found.before = before;
  found.inside = from_lane(mine, chosen);
  return found;
}

// The same by the block: every thread gets the result. `result` in shared memory.
__device__ inline ReachedBin find_reached_by_block(const SharedBins& bins, const SampleSum& before,
                                                   const SampleLimit& limit, ReachedBin& result) {
  __syncthreads();
  if (threadIdx.x < kWarp) {
    const ReachedBin found = find_reached(bins, before, limit);
    if (threadIdx.x == 0) result = found;
  }
  __syncthreads();
  return result;
}

// The key at which the limit is reached.
struct ReachedKey {
  bool is_reached = false;
  std::uint32_t key = 0;
  SampleSum before = {};    // of all greater keys
  std::uint32_t count = 0;  // of tokens of this key
};

// Narrows [low, high] to one key, ten bits at a time. add_all(low, add) calls add(is_member, key, weight),
// all lanes of a warp together, for all that may have a key of at least `low`. `before`: of the keys above
// high.
template <class AddAll>
__device__ ReachedKey find_key(SharedBins& bins, ReachedBin& result, std::uint32_t low, std::uint32_t high,
                               SampleSum before, const SampleLimit& limit, AddAll add_all) {
  constexpr int kBits = 10;
  static_assert(1 << kBits == kSampleBins);
  for (;;) {
    const int width = 32 - __clz(static_cast<int>(high - low)), shift = width > kBits ? width - kBits : 0;
    bins.clear();
    __syncthreads();
    add_all(low, [&](bool is_member, std::uint32_t key, double weight) {
      bins.add(is_member && key >= low && key <= high, (high - key) >> shift, weight);
    });
    const ReachedBin found = find_reached_by_block(bins, before, limit, result);
    if (!found.is_reached) return {};
    before = found.before;
    high -= found.bin << shift;
    if (shift == 0) return {.is_reached = true, .key = high, .before = before, .count = found.inside.count};
    const std::uint32_t rest = (std::uint32_t{1} << shift) - 1;
    low = high - low > rest ? high - rest : low;
  }
}

}  // namespace octavo::kernels::cuda
