// Which kernel of paged attention runs, and the sum of partitions.
#include <cmath>
#include <cstdint>

#include "kernels/cuda/attention/attention_kernels.h"
#include "kernels/cuda/attention/attention_rows.cuh"

namespace octavo::kernels::cuda {
namespace {

// A block for each row of a tile and KV head.
__global__ void merge_partitions(const __grid_constant__ AttentionArguments arguments) {
  const int local_tile = static_cast<int>(blockIdx.x) / kSplitTileRows;
  const int row = static_cast<int>(blockIdx.x) % kSplitTileRows;
  const AttentionTile tile = tile_at(arguments, arguments.first_tile + local_tile);
  if (tile.first < 0 || row >= tile.num_rows) return;
  const TileRows rows{arguments, tile, static_cast<int>(blockIdx.y)};
  // Those before the row's window hold nothing of it, and none stands before the tile's.
  const int positions = partition_of(arguments);
  const int skipped = rows.first_seen(row) / positions - rows.first_seen(0) / positions;
  const int num_partitions = rows.position(row) / positions - rows.first_seen(row) / positions + 1;
  const int head_dim = arguments.places.head_dim;
  const std::int64_t index = static_cast<std::int64_t>(local_tile) * arguments.num_kv_heads + blockIdx.y;
  const std::int64_t first = (index * kSplitTileRows + row) * arguments.num_partitions + skipped;
  const float2* const weights = arguments.partials.weights + first;
  float most = kNothing;
  for (int p = 0; p < num_partitions; ++p) most = fmaxf(most, weights[p].x);
  for (int dimension = static_cast<int>(threadIdx.x); dimension < head_dim;
       dimension += static_cast<int>(blockDim.x)) {
    float value = 0.0f, total = 0.0f;
    for (int p = 0; p < num_partitions; ++p) {
      const float share = weights[p].x == most ? 1.0f : exp2f(weights[p].x - most);
      value = fmaf(arguments.partials.values[(first + p) * head_dim + dimension], share, value);
      total = fmaf(weights[p].y, share, total);
    }
    rows.out(row)[dimension] = value / total;
  }
}

ChosenAttention choose(KvType type, std::int32_t head_dim, AttentionKind kind) {
  switch (type) {
    case KvType::kF32: return choose_attention<KvType::kF32>(head_dim, kind);
    case KvType::kF16: return choose_attention<KvType::kF16>(head_dim, kind);
    case KvType::kBf16: return choose_attention<KvType::kBf16>(head_dim, kind);
    case KvType::kInt8: return choose_attention<KvType::kInt8>(head_dim, kind);
    case KvType::kFp8E4m3: return choose_attention<KvType::kFp8E4m3>(head_dim, kind);
    case KvType::kFp8E5m2: return choose_attention<KvType::kFp8E5m2>(head_dim, kind);
  }
  return {};
}

}  // namespace

std::int64_t attention_shared_bytes(KvType type, std::int32_t head_dim, bool is_prefill, int num_warps,
                                    int num_stages) {
  const ChosenAttention kernel =
      choose(type, head_dim, is_prefill ? AttentionKind::kPrefill : AttentionKind::kSplit);
  const std::int64_t rows = is_prefill ? 16 * num_warps : kSplitTileRows;
  return 2 * (rows * kernel.query_numbers + num_warps * num_stages * kernel.slice_numbers);
}

void launch_attention(Stream& stream, KvType type, bool is_prefill, bool has_octets, int num_tiles,
                      int num_warps, const AttentionArguments& arguments) {
  const std::int64_t bytes =
      attention_shared_bytes(type, arguments.places.head_dim, is_prefill, num_warps, arguments.num_stages);
  const dim3 grid(static_cast<unsigned>(num_tiles), static_cast<unsigned>(arguments.num_kv_heads),
                  static_cast<unsigned>(arguments.num_partitions));
  const AttentionKind of_prefill =
      arguments.score_soft_cap == 0.0f ? AttentionKind::kPrefill : AttentionKind::kCappedPrefill;
  launch(choose(type, arguments.places.head_dim, is_prefill ? of_prefill : AttentionKind::kSplit).kernel,
         {grid, dim3(static_cast<unsigned>(num_warps) * kWarp), static_cast<std::size_t>(bytes)}, stream,
         arguments, has_octets ? 1 : 0);
}

void launch_merge(Stream& stream, int num_tiles, const AttentionArguments& arguments) {
  const dim3 grid(static_cast<unsigned>(num_tiles * kSplitTileRows),
                  static_cast<unsigned>(arguments.num_kv_heads));
  launch(merge_partitions, {grid, dim3(128)}, stream, arguments);
}

}  // namespace octavo::kernels::cuda
