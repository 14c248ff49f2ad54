// Between the files of paged attention: what its kernels take as arguments, and who starts them. Not for
// others; they use attention.h. All pointers are to device memory.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "kernels/cuda/attention/attention.h"
#include "kernels/cuda/attention/stored.cuh"
#include "kernels/cuda/runtime/device.h"
#include "kernels/cuda/runtime/device_names.h"

namespace octavo::kernels::cuda {

inline constexpr int kSliceTokens = 16;    // that a warp brings in, and multiplies, at once
inline constexpr int kSplitTileRows = 16;  // of a tile whose warps take turns over the context
inline constexpr int kMostAttentionWarps = 4;
// Where the warps of a tile may begin to take turns; a partition is a multiple of it.
inline constexpr int kRoundPositions = kSliceTokens * kMostAttentionWarps;

// Sums of a part of the context, for `rows` = tile row counted over tiles and KV heads: values
// [rows][partitions][head_dim] before the division, and of each (largest score, sum of weights) in powers of
// two.
struct PartialSums {
  float* values = nullptr;
  float2* weights = nullptr;
};

// A window that holds every position, and no negative difference of two positions taken as unsigned.
inline constexpr std::uint32_t kNoWindow = 0x80000000u;

struct AttentionArguments {
  DeviceBatch batch;
  KvPlaces places;
  PartialSums partials;
  // Device memory; null: `partition`, whose zero counts in any case
  const std::int32_t* partition_of_step = nullptr;
  const float* q = nullptr;
  float* out = nullptr;
  std::int64_t q_stride = 0, out_stride = 0;
  float score_scale = 0.0f;                                 // times log2(e)
  float score_soft_cap = 0.0f;                              // times log2(e); 0: none
  std::uint32_t window = kNoWindow;                         // positions that a row sees
  std::int32_t num_heads = 0, num_kv_heads = 0, group = 0;  // query heads of a KV head
  std::int32_t first_tile = 0;                              // of this launch
  std::int32_t tile_rows = 0;
  std::int32_t one_tile_each = 0;              // tile i is sequence i
  std::int32_t least_rows = 0, most_rows = 0;  // of the sequences (rows times group) that this launch is for
  std::int32_t partition = 0;  // positions; a multiple of 64. 0: the whole context, and no partial sums
  // That a tile may need, from that on in which its first row's window begins
  std::int32_t num_partitions = 1;
  std::int32_t num_stages = 1;  // slices of each warp in shared memory
};

__device__ inline int partition_of(const AttentionArguments& arguments) {
  return arguments.partition_of_step != nullptr ? *arguments.partition_of_step : arguments.partition;
}

__device__ inline const std::int32_t* block_table_of(const DeviceBatch& batch, int sequence) {
  const std::int32_t max_blocks = batch.numbers != nullptr ? batch.numbers->max_blocks : batch.max_blocks;
  return batch.block_tables + static_cast<std::int64_t>(sequence) * max_blocks;
}

// A tile: rows of one sequence. `first` counts its rows times group; -1: there is no such tile.
struct AttentionTile {
  std::int32_t sequence = 0, first = -1, num_rows = 0;
  std::int32_t query_start = 0, first_position = 0;  // of the sequence's rows
};

// Tiles of a sequence begin at query_start * group / tile_rows + sequence: enough for each, and found by
// bisection. Those left over do nothing.
__device__ inline AttentionTile tile_at(const AttentionArguments& arguments, int tile) {
  const DeviceBatch& batch = arguments.batch;
  const auto begin_of = [&](int sequence) {
    if (arguments.one_tile_each != 0) return sequence;
    return static_cast<int>(static_cast<std::int64_t>(batch.query_start[sequence]) * arguments.group /
                            arguments.tile_rows) +
           sequence;
  };
  int low = 0, high = batch.num_sequences - 1;  // the last sequence that begins at `tile` or before
  while (low < high) {
    const int middle = (low + high + 1) / 2;
    if (begin_of(middle) <= tile) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  AttentionTile found;
  const int start = batch.query_start[low], rows = (batch.query_start[low + 1] - start) * arguments.group;
  const int first = (tile - begin_of(low)) * arguments.tile_rows;
  if (first >= rows || rows < arguments.least_rows || rows > arguments.most_rows) return found;
  if (batch.slot_mapping[start] < 0) return found;  // a row that only fills up
  found.sequence = low;
  found.first = first;
  found.num_rows = rows - first < arguments.tile_rows ? rows - first : arguments.tile_rows;
  found.query_start = start;
  found.first_position = batch.positions[start];
  return found;
}

enum class AttentionKind : std::uint8_t { kSplit, kPrefill, kCappedPrefill };

// What a kernel is compiled for, besides the size of a head. `half_parts` counts for prefill whose operands
// are bfloat16 numbers.
struct AttentionVariant {
  KvType type = KvType::kF16;
  AttentionKind kind = AttentionKind::kSplit;
  HalfParts half_parts = HalfParts::kTwo;
};

// `has_pieces`: KvPlaces::has_pieces() of the type's pieces.
using AttentionKernel = void (*)(const AttentionArguments, int has_pieces);

struct ChosenAttention {
  AttentionKernel kernel = nullptr;
  std::int32_t warp_rows = 0;      // of a prefill tile, for each warp; a split tile has 16 for all
  std::int32_t piece_numbers = 0;  // of the type, that come in at once
  // Of shared memory: for a row of queries with all their parts, for a slice, and for a warp's sums.
  std::int64_t query_bytes = 0, slice_bytes = 0, sums_bytes = 0;

  std::int32_t tile_rows(int num_warps) const {
    return warp_rows == 0 ? kSplitTileRows : warp_rows * num_warps;
  }
  // Of dynamic shared memory.
  std::int64_t shared_bytes(int num_warps, int num_stages) const {
    return tile_rows(num_warps) * query_bytes + num_warps * std::max(num_stages * slice_bytes, sums_bytes);
  }
};
ChosenAttention choose_attention(const AttentionVariant& variant, std::int32_t head_dim);
// Of one type; three files instantiate it.
template <KvType kType>
ChosenAttention choose_attention_of(std::int32_t head_dim, AttentionKind kind, HalfParts half_parts);

// REQUIRES: `arguments` within what the tile's kind takes; tile_rows = kernel.tile_rows(num_warps)
void launch_attention(Stream& stream, const ChosenAttention& kernel, int num_tiles, int num_warps,
                      const AttentionArguments& arguments);
// Divides the sums of all partitions, in ascending order, into `out`.
void launch_merge(Stream& stream, int num_tiles, const AttentionArguments& arguments);

}  // namespace octavo::kernels::cuda
