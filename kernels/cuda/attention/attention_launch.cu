// Which kernel of paged attention runs, and the sum of partitions.
#include <cmath>
#include <cstdint>

#include "kernels/cuda/attention/attention_kernels.h"
#include "kernels/cuda/attention/attention_rows.cuh"
#include "kernels/cuda/runtime/hardware.cuh"
#include "kernels/cuda/runtime/reduction.cuh"

namespace octavo::kernels::cuda {
namespace {

// The sum of a row's partitions in ascending order, read so many at a time that none waits for the one
// before.
__device__ float merged(const AttentionArguments& arguments, std::int64_t first, int num_partitions,
                        float most, int dimension) {
  constexpr int kAtOnce = 8;
  const int head_dim = arguments.places.head_dim;
  float value = 0.0f, total = 0.0f;
  for (int begin = 0; begin < num_partitions; begin += kAtOnce) {
    float2 weights[kAtOnce];
    float values[kAtOnce];
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      const std::int64_t place = first + begin + i;
      const bool is_there = begin + i < num_partitions;
      weights[i] = is_there ? arguments.partials.weights[place] : make_float2(kNothing, 0.0f);
      values[i] = is_there ? arguments.partials.values[place * head_dim + dimension] : 0.0f;
    }
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      const float share = weights[i].x == most ? 1.0f : exp2f(weights[i].x - most);
      value = fmaf(values[i], share, value);
      total = fmaf(weights[i].y, share, total);
    }
  }
  return value / total;
}

// A block for each row of a tile and KV head.
__global__ void merge_partitions(const __grid_constant__ AttentionArguments arguments) {
  let_next_begin();
  const int local_tile = static_cast<int>(blockIdx.x) / kSplitTileRows;
  const int row = static_cast<int>(blockIdx.x) % kSplitTileRows;
  const AttentionTile tile = tile_at(arguments, arguments.first_tile + local_tile);
  await_inputs();
  if (tile.first < 0 || row >= tile.num_rows) return;
  const TileRows rows{arguments, tile, static_cast<int>(blockIdx.y)};
  // Those before the row's window hold nothing of it, and none stands before the tile's.
  const int positions = partition_of(arguments);
  const int skipped = rows.first_seen(row) / positions - rows.first_seen(0) / positions;
  const int num_partitions = rows.position(row) / positions - rows.first_seen(row) / positions + 1;
  const std::int64_t index = static_cast<std::int64_t>(local_tile) * arguments.num_kv_heads + blockIdx.y;
  const std::int64_t first = (index * kSplitTileRows + row) * arguments.num_partitions + skipped;
  float most = kNothing;
  for (int p = static_cast<int>(threadIdx.x); p < num_partitions; p += static_cast<int>(blockDim.x))
    most = fmaxf(most, arguments.partials.weights[first + p].x);
  most = block_max(most);
  for (int dimension = static_cast<int>(threadIdx.x); dimension < arguments.places.head_dim;
       dimension += static_cast<int>(blockDim.x)) {
    rows.out(row)[dimension] = merged(arguments, first, num_partitions, most, dimension);
  }
}

}  // namespace

ChosenAttention choose_attention(const AttentionVariant& variant, std::int32_t head_dim) {
  const auto choose = [&]<KvType kType>() {
    return choose_attention_of<kType>(head_dim, variant.kind, variant.half_parts);
  };
  switch (variant.type) {
    case KvType::kF32: return choose.template operator()<KvType::kF32>();
    case KvType::kF16: return choose.template operator()<KvType::kF16>();
    case KvType::kBf16: return choose.template operator()<KvType::kBf16>();
    case KvType::kInt8: return choose.template operator()<KvType::kInt8>();
    case KvType::kFp8E4m3: return choose.template operator()<KvType::kFp8E4m3>();
    case KvType::kFp8E5m2: return choose.template operator()<KvType::kFp8E5m2>();
  }
  return {};
}

void launch_attention(Stream& stream, const ChosenAttention& kernel, int num_tiles, int num_warps,
                      const AttentionArguments& arguments) {
  const auto tiles = static_cast<unsigned>(num_tiles), heads = static_cast<unsigned>(arguments.num_kv_heads);
  // Of a prefill the heads of the last tile come first, as its blocks have the most to do.
  const dim3 grid = kernel.warp_rows != 0
                        ? dim3(tiles * heads)
                        : dim3(tiles, heads, static_cast<unsigned>(arguments.num_partitions));
  const std::int64_t bytes = kernel.shared_bytes(num_warps, arguments.num_stages);
  launch(kernel.kernel,
         {.grid = grid,
          .block = dim3(static_cast<unsigned>(num_warps) * kWarp),
          .shared_bytes = static_cast<std::size_t>(bytes),
          .awaits_inputs = true},
         stream, arguments, arguments.places.has_pieces(kernel.piece_numbers) ? 1 : 0);
}

void launch_merge(Stream& stream, int num_tiles, const AttentionArguments& arguments) {
  const dim3 grid(static_cast<unsigned>(num_tiles * kSplitTileRows),
                  static_cast<unsigned>(arguments.num_kv_heads));
  launch(merge_partitions, {.grid = grid, .block = dim3(128), .awaits_inputs = true}, stream, arguments);
}

}  // namespace octavo::kernels::cuda
