// The kernel of paged attention. A warp brings in slices of 16 tokens: keys as they stand, [head_dim][16],
// values [16][head_dim]. In a split tile the warps have the same 16 rows and take the slices in turn, each
// with its own softmax, without a barrier; they are added up at the end, in order. In a prefill tile each
// warp has rows of its own, 16 or 32, and all meet the slices of all, two at a time.
//
// Three files instantiate it (attention_half.cu, _bfloat.cu, _float.cu), so that they compile beside
// each other.
#pragma once

#include <cmath>
#include <cstdint>

#include "kernels/cuda/attention/attention_kernels.h"
#include "kernels/cuda/attention/attention_rows.cuh"
#include "kernels/cuda/attention/attention_slice.cuh"
#include "kernels/cuda/runtime/device_names.h"
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

template <class Layout>
struct Block {
  using Warp = WarpRows<Layout>;
  static constexpr int kHeadDim = Layout::kHeadDim;

  const AttentionArguments& arguments;
  const TileRows& rows;
  const Context<Layout>& context;
  std::byte* slices;  // [warps], each of Layout::warp_bytes()
  int begin, end;     // positions
  TokenPlace ahead;  // of this warp's slice in the next round: looked up a round early, so that no copy waits
                     // for the block table

  __device__ int warp() const { return static_cast<int>(threadIdx.x / kWarp); }
  __device__ int num_warps() const { return static_cast<int>(blockDim.x / kWarp); }
  __device__ Slice<Layout> slice(int of_warp, int stage) const {
    return {slices + of_warp * Layout::warp_bytes(arguments.num_stages) + stage * Layout::kSliceBytes};
  }
  __device__ int round_tokens() const { return num_warps() * kSliceTokens; }
  __device__ int first_of(int round) const { return begin + round * round_tokens() + warp() * kSliceTokens; }

  __device__ void start() {
    ahead = context.place(first_of(0));
    load(0);
  }
  // Of this warp in a round, into its place; nothing beyond the end.
  __device__ void load(int round) {
    if (first_of(round) < end) {
      context.load_slice(ahead, slice(warp(), round % arguments.num_stages));
      ahead = context.place(first_of(round + 1));
    }
    copy_async_commit();
  }

  // Each warp its own slices, with nobody else.
  __device__ void attend_split(Warp& mine) {
    const int num_stages = arguments.num_stages;
    for (int round = 0; first_of(round) < end; ++round) {
      if (num_stages == 2) load(round + 1);
      wait_for_slice(num_stages);
      __syncwarp();
      const Slice<Layout> one[Layout::kUpdate] = {slice(warp(), round % num_stages)};
      mine.attend(one, 1, first_of(round));
      __syncwarp();
      if (num_stages == 1) load(round + 1);
    }
  }

  // Every warp all slices. With two stages a round is brought in while the one before is used.
  __device__ void attend_together(Warp& mine) {
    const int num_stages = arguments.num_stages;
    for (int round = 0; begin + round * round_tokens() < end; ++round) {
      copy_async_wait<0>();
      __syncthreads();
      if (num_stages == 2) load(round + 1);
      attend_round(mine, round);
      if (num_stages == 1) {
        __syncthreads();
        load(round + 1);
      }
    }
  }

  __device__ void attend_round(Warp& mine, int round) const {
    const int first = begin + round * round_tokens();
    const int left = (end - first + kSliceTokens - 1) / kSliceTokens;
    const int num_slices = left < num_warps() ? left : num_warps();
    for (int s = 0; s < num_slices; s += Layout::kUpdate) {
      Slice<Layout> some[Layout::kUpdate];
#pragma unroll
      for (int u = 0; u < Layout::kUpdate; ++u)
        some[u] = slice(s + u < num_slices ? s + u : s, round % arguments.num_stages);
      mine.attend(some, num_slices - s, first + s * kSliceTokens);
    }
  }

  __device__ void store_prefill(const Warp& mine) const {
    const int lane = static_cast<int>(threadIdx.x % kWarp), head_dim = arguments.places.head_dim;
#pragma unroll
    for (int half = 0; half < 2 * Layout::kRowTiles; ++half) {
      const float share = 1.0f / sum_of_row(mine.sum[half]);
      const int row = warp() * Layout::kRows + half * 8 + lane / 4;
      if (!rows.is_there(row)) continue;
      float* const out = rows.out(row);
#pragma unroll
      for (int j = 0; j < kHeadDim / 8; ++j) {
#pragma unroll
        for (int k = 0; k < 2; ++k) {
          const int dimension = Layout::dimension_of(j, lane % 4 * 2 + k);
          if (dimension < head_dim) out[dimension] = mine.values[half / 2][j][half % 2 * 2 + k] * share;
        }
      }
    }
  }

  // A warp's sums [16][head_dim], then its bases [16] and sums of weights [16].
  __device__ float* sums_of_warp(int of_warp) const {
    return reinterpret_cast<float*>(slices + of_warp * Layout::warp_bytes(arguments.num_stages));
  }

  __device__ void store_split(const Warp& mine) const {
    const int lane = static_cast<int>(threadIdx.x % kWarp), head_dim = arguments.places.head_dim;
    float* const sums = sums_of_warp(warp());
    float* const weights = sums + kSplitTileRows * kHeadDim;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int row = half * 8 + lane / 4;
      const float total = sum_of_row(mine.sum[half]);
      if (lane % 4 == 0) weights[row] = mine.base[half], weights[kSplitTileRows + row] = total;
#pragma unroll
      for (int j = 0; j < kHeadDim / 8; ++j) {
#pragma unroll
        for (int k = 0; k < 2; ++k) {
          sums[row * kHeadDim + Layout::dimension_of(j, lane % 4 * 2 + k)] = mine.values[0][j][2 * half + k];
        }
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
      // A warp that saw nothing has no sums; its base is that of no scores.
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

// As many blocks as find room in the shared memory of a multiprocessor, 228 KB at most, or leave registers
// for the rows of a prefill. Left alone, the compiler spills registers to make room for more blocks than
// that.
template <class Layout>
constexpr int blocks_at_once() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
  return 1;  // 64 KB
#else
  constexpr bool kIsExpanded = Layout::Stored::kIsExpanded;
  if (Layout::kHeadDim > 128) return 1;
  if (!Layout::kIsPrefill) return Layout::kHeadDim <= 64 ? 4 : Layout::kPlanes == 1 ? 3 : 2;
  if (Layout::kRowTiles == 1) return Layout::kParts == 2 && kIsExpanded ? 2 : 3;
  return Layout::kHeadDim > 64 || Layout::kMayCap || Layout::kParts == 2 || kIsExpanded ? 2 : 3;
#endif
}

// Of this block: in a prefill the last tiles, which see the most, begin first.
template <class Layout>
__device__ void tile_of_block(const AttentionArguments& arguments, int& tile, int& kv_head) {
  if constexpr (Layout::kIsPrefill) {
    const auto heads = static_cast<unsigned>(arguments.num_kv_heads);
    tile = static_cast<int>((gridDim.x - 1 - blockIdx.x) / heads);
    kv_head = static_cast<int>(blockIdx.x % heads);
  } else {
    tile = arguments.first_tile + static_cast<int>(blockIdx.x);
    kv_head = static_cast<int>(blockIdx.y);
  }
}

template <class Layout>
__global__ void __launch_bounds__(kMostAttentionThreads, blocks_at_once<Layout>())
    attention_kernel(const __grid_constant__ AttentionArguments arguments, int has_pieces) {
  let_next_begin();
  int tile_index, kv_head;
  tile_of_block<Layout>(arguments, tile_index, kv_head);
  const AttentionTile tile = tile_at(arguments, tile_index);  // of the step's arrays, which no kernel writes
  await_inputs();
  if (tile.first < 0) return;
  const TileRows rows{arguments, tile, kv_head};
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

  __shared__ float factors[kMostAttentionWarps * Layout::kRows];
  const int num_rows = arguments.tile_rows;
  auto* const queries = dynamic_shared<std::uint16_t>();
  constexpr int kPiece = Layout::Stored::kPieceNumbers;
  const Context<Layout> context{arguments.places,
                                block_table_of(arguments.batch, tile.sequence),
                                kv_head,
                                has_pieces != 0,
                                has_pieces != 0 ? first_seen / kPiece * kPiece : first_seen,
                                end,
                                first_seen};
  Block<Layout> block{
      arguments, rows,
      context,   reinterpret_cast<std::byte*>(queries + Layout::kParts * num_rows * Layout::kPitch),
      begin,     end,
      {}};
  block.start();
  load_queries<Layout>(rows, num_rows, queries, factors);
  __syncthreads();

  const int lane = static_cast<int>(threadIdx.x % kWarp);
  const int first_row = Layout::kIsPrefill ? block.warp() * Layout::kRows : 0;
  const int rows_of_warp =
      tile.num_rows - first_row < Layout::kRows ? tile.num_rows - first_row : Layout::kRows;
  WarpRows<Layout> mine{arguments};
  mine.queries = queries + first_row * Layout::kPitch;
  mine.part_numbers = num_rows * Layout::kPitch;
  mine.lowest = rows.position(first_row);
  mine.highest = rows_of_warp > 0 ? rows.position(first_row + rows_of_warp - 1) : -1;
#pragma unroll
  for (int half = 0; half < 2 * Layout::kRowTiles; ++half) {
    const int row = first_row + half * 8 + lane / 4;
    mine.position[half] = rows.position(row);
    mine.factor[half] = factors[row];
    mine.base[half] = kNothing;
  }

  if constexpr (Layout::kIsPrefill) {
    block.attend_together(mine);
    block.store_prefill(mine);
  } else {
    block.attend_split(mine);
    block.store_split(mine);
  }
}

template <class Layout>
ChosenAttention chosen_attention() {
  return {attention_kernel<Layout>,      Layout::kIsPrefill ? Layout::kRows : 0,
          Layout::Stored::kPieceNumbers, 2 * Layout::kParts * Layout::kPitch,
          Layout::kSliceBytes,           Layout::kSumsBytes};
}

// float16 operands have as many bits in one part as two of bfloat16 nearly have, and float32's numbers are
// worth two: only of bfloat16 and int8 keys is there a choice.
template <KvType kType, int kHeadDim>
ChosenAttention chosen_attention(AttentionKind kind, HalfParts half_parts) {
  constexpr bool kIsHalf = Operand<kType>::kIsHalf;
  constexpr HalfParts kUsual = kIsHalf ? HalfParts::kOne : HalfParts::kTwo;
  constexpr HalfParts kFewest = kType == KvType::kF32 ? HalfParts::kTwo : HalfParts::kOne;
  using enum AttentionKind;
  if (kind == kSplit) return chosen_attention<Shape<kType, kHeadDim, kSplit, HalfParts::kTwo>>();
  if (half_parts == HalfParts::kOne) {
    return kind == kPrefill ? chosen_attention<Shape<kType, kHeadDim, kPrefill, kFewest>>()
                            : chosen_attention<Shape<kType, kHeadDim, kCappedPrefill, kFewest>>();
  }
  return kind == kPrefill ? chosen_attention<Shape<kType, kHeadDim, kPrefill, kUsual>>()
                          : chosen_attention<Shape<kType, kHeadDim, kCappedPrefill, kUsual>>();
}

template <KvType kType>
ChosenAttention choose_attention_of(std::int32_t head_dim, AttentionKind kind, HalfParts half_parts) {
  if (head_dim <= 64) return chosen_attention<kType, 64>(kind, half_parts);
  if (head_dim <= 128) return chosen_attention<kType, 128>(kind, half_parts);
  return chosen_attention<kType, 256>(kind, half_parts);
}

}  // namespace octavo::kernels::cuda
