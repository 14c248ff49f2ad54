// What kernels of tiles share: what a block works on, the order in which it loads and multiplies, and how its
// sums become results. Shape is a tile as it is compiled: kRows input rows in kEights eights, kOutputs in
// kSixteens sixteens of each warp, kSums of a thread; weights of kDepth slices in registers, activations of
// kStages in shared memory.
#pragma once

#include <cstdint>

#include "kernels/cuda/matmul/matmul_epilogue.cuh"
#include "kernels/cuda/matmul/matmul_kernels.h"
#include "kernels/cuda/runtime/device_names.h"
#include "kernels/cuda/runtime/hardware.cuh"
#include "kernels/cuda/runtime/reduction.cuh"

namespace octavo::kernels::cuda {

inline constexpr int kTileWarps = kTileThreads / static_cast<int>(kWarp);

// What a block works on. `place` of an output means its place in the block.
struct BlockPlace {
  int target, tile, split, outputs;
  std::int64_t first_row;  // input row; of rows in parts, counted by parts

  // Weight row of a place; gate and up take turns by eights. Beyond the last row it is the last one again.
  __device__ std::int64_t weight_row(const ProductTargets& targets, int place) const {
    const std::int64_t last = targets.targets[target].planes.rows - 1, row = output(targets, place);
    return row < last ? row : last;
  }
  __device__ std::int64_t output(const ProductTargets& targets, int place) const {
    if (targets.is_gate_up == 0) return static_cast<std::int64_t>(tile) * outputs + place;
    return static_cast<std::int64_t>(tile) * (outputs / 2) + place / 16 * 8 + place % 8;
  }
  // Of the first or the second eight of sixteen places.
  __device__ const WeightPlanes& planes(const ProductTargets& targets, int half) const {
    return targets.targets[targets.is_gate_up == 0 ? target : half].planes;
  }
};

template <class Shape>
__device__ inline BlockPlace place_of_block(const ProductTargets& targets) {
  const int block = static_cast<int>(blockIdx.x), target = target_of_block(targets, block);
  const ProductTarget& chosen = targets.targets[target];
  const int local = block - chosen.first_block;
  return {target, local / chosen.splits, local % chosen.splits, Shape::kOutputs,
          static_cast<std::int64_t>(blockIdx.y) * Shape::kRows};
}

// Multiplies the slices [begin, end) of the inner dimension, which Tile and Rows cut as they like. Weights
// are asked for kDepth - 1 slices ahead (Tile::load), activations kStages - 1 ahead (Rows::copy), since both
// are far away. `before(slice)` is called before a slice is multiplied. Of the kernel's inputs it awaits all
// that are another kernel's results; weights are nobody's.
template <class Shape, class Tile, class Rows, class Index, class Before>
__device__ inline void multiply_slices(Tile& tile, const Rows& activations, Index begin, Index end,
                                       Before&& before) {
  typename Tile::Weights loaded[Shape::kDepth];
#pragma unroll
  for (int i = 0; i + 1 < Shape::kDepth; ++i) {
    if (begin + i < end) tile.load(begin + i, loaded[i]);
  }
  await_inputs();
  for (int i = 0; i + 1 < Shape::kStages; ++i) {
    if (begin + i < end) activations.copy(begin + i, i);
    copy_async_commit();
  }
  // Behind the barrier every warp has done with the oldest stage, which is filled next.
  int stage = 0;
  for (Index first = begin; first < end; first += Shape::kDepth) {
#pragma unroll
    for (int i = 0; i < Shape::kDepth; ++i) {
      const Index slice = first + i, to_load = slice + Shape::kDepth - 1,
                  to_copy = slice + Shape::kStages - 1;
      if (slice >= end) break;
      if (to_load < end) tile.load(to_load, loaded[(i + Shape::kDepth - 1) % Shape::kDepth]);
      copy_async_wait<Shape::kStages - 2>();
      __syncthreads();
      if (to_copy < end) activations.copy(to_copy, stage == 0 ? Shape::kStages - 1 : stage - 1);
      copy_async_commit();
      before(slice);
      tile.multiply(loaded[i], activations, stage);
      stage = stage + 1 == Shape::kStages ? 0 : stage + 1;
    }
  }
  copy_async_wait<0>();
}

// The sums of a block's threads, as steps of tensor cores leave them: [sixteen outputs][eight rows][4].
template <class Shape>
class TileSums {
 public:
  static constexpr int kPitch = Shape::kOutputs + 4;  // in shared memory, so that lanes meet in no bank
  static constexpr int kSharedNumbers = Shape::kRows * kPitch;

  __device__ TileSums(const ProductTargets& targets, const BlockPlace& place)
      : targets_(targets), place_(place) {}

  __device__ static int lane() { return static_cast<int>(threadIdx.x % kWarp); }
  // Place in the block of the lane's weight row: `half` 0 or 1 of sixteen outputs.
  __device__ static int place_of(int sixteen, int half) {
    return static_cast<int>(threadIdx.x / kWarp) * Shape::kOutputsOfWarp + sixteen * 16 + half * 8 +
           lane() / 4;
  }

  float sums[Shape::kSixteens][Shape::kEights][4] = {};

  // Adds the sums of all splits. True for the block that has them; the others are done.
  __device__ bool sum_of_splits(const SplitScratch& scratch) {
    const ProductTarget& target = targets_.targets[place_.target];
    if (target.splits == 1) return true;
    auto& mine = reinterpret_cast<float(&)[Shape::kSums]>(sums);
    const std::int64_t tile_index = static_cast<std::int64_t>(blockIdx.y) * target.num_tiles + place_.tile;
    const std::int64_t first = target.first_partial + tile_index * target.splits;
    float* const partials = scratch.partials + first * Shape::kSums * kTileThreads + threadIdx.x;
#pragma unroll
    for (int i = 0; i < Shape::kSums; ++i)
      partials[(place_.split * Shape::kSums + i) * kTileThreads] = mine[i];
    __threadfence();
    __syncthreads();
    __shared__ bool is_last;
    if (threadIdx.x == 0) {
      const std::uint32_t arrived = atomicAdd(scratch.counters + first, 1u);
      is_last = arrived + 1 == static_cast<std::uint32_t>(target.splits);
      if (is_last) scratch.counters[first] = 0;
    }
    __syncthreads();
    if (!is_last) return false;
    __threadfence();
#pragma unroll
    for (int i = 0; i < Shape::kSums; ++i) mine[i] = 0.0f;
    for (int split = 0; split < target.splits; ++split) {
#pragma unroll
      for (int i = 0; i < Shape::kSums; ++i)
        mine[i] += __ldcg(partials + (split * Shape::kSums + i) * kTileThreads);
    }
    return true;
  }

  // Through shared memory, so that what becomes of a sum is one short loop: written out for each of a
  // thread's sums it would be more code than the instruction cache holds, run once, and take longer than the
  // product itself. `factors` of rows, or null: 1. `num_parts` neighbouring rows of the tile are one of the
  // result, their sums added.
  __device__ void store(const PreparedRows& rows, const float* factors, int num_parts, float* shared) const {
    __syncthreads();  // every warp has done with the activations
#pragma unroll
    for (int i = 0; i < Shape::kSixteens; ++i) {
#pragma unroll
      for (int j = 0; j < Shape::kEights; ++j) {
#pragma unroll
        for (int k = 0; k < 4; ++k) {
          const int row = j * 8 + lane() % 4 * 2 + k % 2;
          shared[row * kPitch + place_of(i, k / 2)] = sums[i][j][k];
        }
      }
    }
    __syncthreads();
    const int num_pairs = Shape::kRows / num_parts * (Shape::kOutputs / 2);
#pragma unroll 1
    for (int i = static_cast<int>(threadIdx.x); i < num_pairs; i += kTileThreads) {
      const int row = i / (Shape::kOutputs / 2), pair = i % (Shape::kOutputs / 2);
      store_pair(rows, factors, num_parts, row, pair / 8 * 16 + pair % 8, shared + row * num_parts * kPitch);
    }
  }

 private:
  // Two outputs that stand eight places apart, which are gate and up of one.
  __device__ void store_pair(const PreparedRows& rows, const float* factors, int num_parts, int row_of_tile,
                             int place, const float* numbers) const {
    const std::int64_t row = place_.first_row / num_parts + row_of_tile,
                       first = place_.output(targets_, place);
    if (row >= rows.num_rows) return;
    const ProductTarget& target = targets_.targets[place_.target];
    const float factor = factors == nullptr ? 1.0f : factors[row];
    float upper = numbers[place], lower = numbers[place + 8];
    for (int part = 1; part < num_parts; ++part)
      upper += numbers[part * kPitch + place], lower += numbers[part * kPitch + place + 8];
    upper *= factor, lower *= factor;
    if (targets_.is_gate_up != 0) {
      if (first < target.planes.rows) store_gate_up(targets_, row, first, upper, lower);
      return;
    }
    if (first < target.planes.rows) store_output(target, row, first, upper);
    if (first + 8 < target.planes.rows) store_output(target, row, first + 8, lower);
  }

  const ProductTargets& targets_;
  const BlockPlace& place_;
};

}  // namespace octavo::kernels::cuda
