// The kernel of paged attention. A warp brings in slices of 16 tokens: keys as they stand, [head_dim][16],
// values [16][head_dim]. In a split tile the warps have the same 16 rows and take the slices in turn, each
// with its own softmax, without a barrier; they are added up at the end, in order. In a prefill tile each
// warp has 16 rows of its own, and all meet all slices.
//
// Three files instantiate it (attention_half.cu, _bfloat.cu, _float.cu), so that they compile beside
// each other.
#pragma once

#include <cuda_runtime.h>

#include <cmath>
#include <cstdint>

#include "kernels/cuda/attention/attention_kernels.h"
#include "kernels/cuda/attention/attention_rows.cuh"
#include "kernels/cuda/attention/attention_slice.cuh"
#include "kernels/cuda/runtime/hardware.cuh"
#include "kernels/cuda/runtime/reduction.cuh"

namespace octavo::kernels::cuda {

// Waits for the oldest of this lane's copies.
__device__ inline void wait_for_slice(int num_stages) {
  if (num_stages == 2) {
    copy_async_wait<1>();
  } else {
    copy_async_wait<0>();
  }
}

template <KvType kType, int kHeadDim, bool kIsPrefill, bool kMayCap>
struct Block {
  using Layout = Shape<kType, kHeadDim, kIsPrefill>;
  using Warp = WarpRows<kType, kHeadDim, kIsPrefill, kMayCap>;

  const AttentionArguments& arguments;
  const TileRows& rows;
  const Context& context;
  std::uint16_t* slices;  // [warps][stages] of them
  int begin, end;         // positions
  bool has_octets;

  __device__ int warp() const { return static_cast<int>(threadIdx.x / kWarp); }
  __device__ int num_warps() const { return static_cast<int>(blockDim.x / kWarp); }
  __device__ Slice<Layout> slice(int of_warp, int stage) const {
    return {slices + (of_warp * arguments.num_stages + stage) * Layout::kSliceNumbers};
  }
  __device__ int round_tokens() const { return num_warps() * kSliceTokens; }
  // Of this warp in a round, into its place; nothing beyond the end.
  __device__ void load(int round, int row_steps) const {
    const int first = begin + round * round_tokens() + warp() * kSliceTokens;
    if (first < end) {
      load_slice<kType, Layout>(context, first, row_steps, has_octets,
                                slice(warp(), round % arguments.num_stages));
    }
    copy_async_commit();
  }

  // Each warp its own slices, with nobody else.
  __device__ void attend_split(Warp& mine) const {
    const int num_stages = arguments.num_stages;
    load(0, mine.row_steps);
    for (int round = 0; begin + round * round_tokens() + warp() * kSliceTokens < end; ++round) {
      if (num_stages == 2) load(round + 1, mine.row_steps);
      wait_for_slice(num_stages);
      __syncwarp();
      const Slice<Layout> one[Layout::kUpdate] = {slice(warp(), round % num_stages)};
      mine.attend(one, 1, begin + round * round_tokens() + warp() * kSliceTokens);
      __syncwarp();
      if (num_stages == 1) load(round + 1, mine.row_steps);
    }
    copy_async_wait<0>();
  }

  // Every warp all slices.
  __device__ void attend_together(Warp& mine) const {
    const int num_stages = arguments.num_stages;
    load(0, mine.row_steps);
    for (int round = 0; begin + round * round_tokens() < end; ++round) {
      if (num_stages == 2) load(round + 1, mine.row_steps);
      wait_for_slice(num_stages);
      __syncthreads();
      const int first = begin + round * round_tokens();
      const int left = (end - first + kSliceTokens - 1) / kSliceTokens;
      const int num_slices = left < num_warps() ? left : num_warps();
      for (int s = 0; s < num_slices; s += Layout::kUpdate) {
        Slice<Layout> some[Layout::kUpdate];
#pragma unroll
        for (int u = 0; u < Layout::kUpdate; ++u) {
          some[u] = slice(s + u < num_slices ? s + u : s, round % num_stages);
        }
        mine.attend(some, num_slices - s, first + s * kSliceTokens);
      }
      __syncthreads();
      if (num_stages == 1) load(round + 1, mine.row_steps);
    }
    copy_async_wait<0>();
  }

  __device__ void store_prefill(const Warp& mine) const {
    const int lane = static_cast<int>(threadIdx.x % kWarp), head_dim = arguments.places.head_dim;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const float total = sum_of_row(mine.sum[half]);
      const int row = warp() * 16 + half * 8 + lane / 4;
      if (!rows.is_there(row)) continue;
      float* const out = rows.out(row);
#pragma unroll
      for (int j = 0; j < kHeadDim / 8; ++j) {
#pragma unroll
        for (int k = 0; k < 2; ++k) {
          const int dimension = j * 8 + lane % 4 * 2 + k;
          if (dimension < head_dim) out[dimension] = mine.values[j][2 * half + k] / total;
        }
      }
    }
  }

  // A warp's sums [16][head_dim], then its largest scores [16] and sums of weights [16].
  __device__ float* sums_of_warp(int of_warp) const {
    return reinterpret_cast<float*>(slices + of_warp * arguments.num_stages * Layout::kSliceNumbers);
  }

  __device__ void store_split(const Warp& mine) const {
    const int lane = static_cast<int>(threadIdx.x % kWarp), head_dim = arguments.places.head_dim;
    float* const sums = sums_of_warp(warp());
    float* const weights = sums + kSplitTileRows * kHeadDim;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int row = half * 8 + lane / 4;
      const float total = sum_of_row(mine.sum[half]);
      if (lane % 4 == 0) weights[row] = mine.largest[half], weights[kSplitTileRows + row] = total;
#pragma unroll
      for (int j = 0; j < kHeadDim / 8; ++j) {
#pragma unroll
        for (int k = 0; k < 2; ++k)
          sums[row * kHeadDim + j * 8 + lane % 4 * 2 + k] = mine.values[j][2 * half + k];
      }
    }
    __syncthreads();
    for (int row = warp(); row < rows.tile.num_rows; row += num_warps()) {
      store_row(row, head_dim);
    }
  }

  // Adds up the warps' sums of a row, in order.
  __device__ void store_row(int row, int head_dim) const {
    float most = kNothing, shares[kMostAttentionWarps], total = 0.0f;
    for (int w = 0; w < num_warps(); ++w)
      most = fmaxf(most, sums_of_warp(w)[kSplitTileRows * kHeadDim + row]);
#pragma unroll
    for (int w = 0; w < kMostAttentionWarps; ++w) {
      if (w >= num_warps()) break;
      const float* const weights = sums_of_warp(w) + kSplitTileRows * kHeadDim;
      // A warp that saw nothing has no sums; its largest score is that of no scores.
      shares[w] = weights[row] == most ? 1.0f : exp2f(weights[row] - most);
      total = fmaf(weights[kSplitTileRows + row], shares[w], total);
    }
    const std::int64_t tile = static_cast<std::int64_t>(blockIdx.x) * arguments.num_kv_heads + blockIdx.y;
    const std::int64_t place = (tile * kSplitTileRows + row) * arguments.num_partitions + blockIdx.z;
    const int lane = static_cast<int>(threadIdx.x % kWarp);
    if (arguments.partition != 0 && lane == 0) arguments.partials.weights[place] = make_float2(most, total);
    for (int dimension = lane; dimension < head_dim; dimension += static_cast<int>(kWarp)) {
      float value = 0.0f;
#pragma unroll
      for (int w = 0; w < kMostAttentionWarps; ++w) {
        if (w >= num_warps()) break;
        value = fmaf(sums_of_warp(w)[row * kHeadDim + dimension], shares[w], value);
      }
      if (arguments.partition != 0) {
        arguments.partials.values[place * head_dim + dimension] = value;
      } else {
        rows.out(row)[dimension] = value / total;
      }
    }
  }
};

inline constexpr int kMostAttentionThreads = kMostAttentionWarps * static_cast<int>(kWarp);

// As many blocks as find room in the shared memory of a multiprocessor, 228 KB at most. Left alone, the
// compiler spills registers to make room for more blocks than that.
constexpr int blocks_at_once(int head_dim) { return head_dim <= 64 ? 4 : head_dim <= 128 ? 2 : 1; }

template <KvType kType, int kHeadDim, bool kIsPrefill, bool kMayCap>
__global__ void __launch_bounds__(kMostAttentionThreads, blocks_at_once(kHeadDim))
    attention_kernel(const __grid_constant__ AttentionArguments arguments, int has_octets) {
  using Layout = Shape<kType, kHeadDim, kIsPrefill>;
  const AttentionTile tile = tile_at(arguments, arguments.first_tile + static_cast<int>(blockIdx.x));
  if (tile.first < 0) return;
  const TileRows rows{arguments, tile, static_cast<int>(blockIdx.y)};
  // Rounds begin at fixed positions, so that what meets a row, and in which order, depends on no other row.
  const int seen = rows.position(tile.num_rows - 1) + 1, first_seen = rows.first_seen(0);
  int begin = first_seen / kRoundPositions * kRoundPositions, end = seen;
  if (arguments.partition != 0) {
    const int positions = partition_of(arguments);
    const int partition = first_seen / positions + static_cast<int>(blockIdx.z);
    const int first = partition * positions;
    if (first >= seen) return;
    begin = first > begin ? first : begin;
    end = first + positions < seen ? first + positions : seen;
  }

  __shared__ float factors[kMostAttentionWarps * 16];
  const int num_rows = arguments.tile_rows;
  auto* const queries = dynamic_shared<std::uint16_t>();
  load_queries<Layout, kHeadDim>(rows, num_rows, queries, factors);
  __syncthreads();

  const int lane = static_cast<int>(threadIdx.x % kWarp);
  const int first_row = kIsPrefill ? static_cast<int>(threadIdx.x / kWarp) * 16 : 0;
  WarpRows<kType, kHeadDim, kIsPrefill, kMayCap> mine{arguments};
  mine.queries = queries + first_row * Layout::kPitch;
  mine.part_numbers = num_rows * Layout::kPitch;
  mine.row_steps = (arguments.places.head_dim + 15) / 16;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int row = first_row + half * 8 + lane / 4;
    mine.position[half] = rows.position(row);
    mine.factor[half] = factors[row];
  }

  const int first_read = has_octets != 0 ? first_seen / 8 * 8 : first_seen;
  const Context context{arguments.places,
                        block_table_of(arguments.batch, tile.sequence),
                        static_cast<int>(blockIdx.y),
                        first_read,
                        end,
                        first_seen};
  const Block<kType, kHeadDim, kIsPrefill, kMayCap> block{
      arguments, rows, context,        queries + Layout::kParts * num_rows * Layout::kPitch,
      begin,     end,  has_octets != 0};
  if constexpr (kIsPrefill) {
    block.attend_together(mine);
    block.store_prefill(mine);
  } else {
    block.attend_split(mine);
    block.store_split(mine);
  }
}

template <KvType kType, int kHeadDim, bool kIsPrefill, bool kMayCap>
ChosenAttention chosen_attention() {
  using Layout = Shape<kType, kHeadDim, kIsPrefill>;
  return {attention_kernel<kType, kHeadDim, kIsPrefill, kMayCap>, Layout::kParts * Layout::kPitch,
          Layout::kSliceNumbers};
}

template <KvType kType, int kHeadDim>
ChosenAttention chosen_attention(AttentionKind kind) {
  if (kind == AttentionKind::kSplit) return chosen_attention<kType, kHeadDim, false, true>();
  return kind == AttentionKind::kPrefill ? chosen_attention<kType, kHeadDim, true, false>()
                                         : chosen_attention<kType, kHeadDim, true, true>();
}

template <KvType kType>
ChosenAttention choose_attention(std::int32_t head_dim, AttentionKind kind) {
  if (head_dim <= 64) return chosen_attention<kType, 64>(kind);
  return head_dim <= 128 ? chosen_attention<kType, 128>(kind) : chosen_attention<kType, 256>(kind);
}

}  // namespace octavo::kernels::cuda
