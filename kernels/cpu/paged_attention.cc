// Items are (tile of rows, KV head), or, where few rows read a long context, (tile, KV head, range of
// positions), so that two threads stay busy with three KV heads. One more loop then merges the ranges.
#include <algorithm>

#include "kernels/cpu/attention_work.h"
#include "kernels/cpu/cpu_backend.h"

namespace octavo::kernels::cpu {
namespace {

// Queries (rows x heads of a group) of a tile: enough to pay for converting keys and values once, few enough
// for their scores (1 KiB each) and sums to stay in the second-level cache.
constexpr std::int32_t kTileQueries = 48;

// A tile and KV head with more than this share of a thread's work is split into ranges.
constexpr std::int64_t kPiecesPerThread = 4;
constexpr std::int64_t kMostPartialFloats = std::int64_t{16} << 20;

using Work = AttentionWork;

void list_tiles(const PagedBatch& batch, std::int32_t rows_per_tile, std::vector<Work::Tile>& tiles) {
  tiles.clear();
  for (std::int32_t sequence = 0; sequence < batch.num_sequences; ++sequence) {
    const auto index = static_cast<std::size_t>(sequence);
    const std::int32_t end = batch.query_start[index + 1];
    for (std::int32_t row = batch.query_start[index]; row < end; row += rows_per_tile) {
      const std::int32_t num_rows = std::min(rows_per_tile, end - row);
      const std::int32_t last_position = batch.positions[static_cast<std::size_t>(row + num_rows - 1)];
      tiles.push_back({sequence, row, num_rows, last_position / kAttentionRange + 1, Work::kWhole});
    }
  }
  // The largest first, so that the last items to be taken are small.
  std::stable_sort(tiles.begin(), tiles.end(),
                   [](const Work::Tile& a, const Work::Tile& b) { return a.cost() > b.cost(); });
}

// Decides which tiles are split, and gives them room for their partial results [kv_head][range][query].
void place_partials(std::int32_t num_kv_heads, std::int64_t floats_per_row, std::int32_t num_threads,
                    Work& work) {
  std::int64_t total = 0;
  for (const Work::Tile& tile : work.tiles) total += tile.cost() * num_kv_heads;
  work.num_partial_floats = 0;
  for (Work::Tile& tile : work.tiles) {
    const bool large = tile.num_ranges > 1 && tile.cost() * kPiecesPerThread * num_threads > total;
    const std::int64_t size = num_kv_heads * tile.cost() * floats_per_row;
    if (num_threads == 1 || !large || work.num_partial_floats + size > kMostPartialFloats) continue;
    tile.partials_offset = work.num_partial_floats;
    work.num_partial_floats += size;
  }
}

void list_items(std::int32_t num_kv_heads, Work& work) {
  work.items.clear();
  work.splits.clear();
  for (std::int32_t index = 0; index < static_cast<std::int32_t>(work.tiles.size()); ++index) {
    const Work::Tile& tile = work.tiles[static_cast<std::size_t>(index)];
    for (std::int32_t kv_head = 0; kv_head < num_kv_heads; ++kv_head) {
      if (tile.partials_offset == Work::kWhole) {
        work.items.push_back({index, kv_head, Work::kAllRanges});
        continue;
      }
      work.splits.push_back({index, kv_head});
      for (std::int32_t range = 0; range < tile.num_ranges; ++range)
        work.items.push_back({index, kv_head, range});
    }
  }
}

}  // namespace

void CpuBackend::paged_attention(const AttentionShape& shape, const PagedBatch& batch, std::int32_t layer,
                                 const KvCache& kv, ConstMatrixView q, MatrixView out) {
  const auto& cache = static_cast<const CpuKvCache&>(kv);
  const KvLayout& layout = cache.layout();
  const std::int32_t group_size = shape.num_heads / shape.num_kv_heads;
  const std::int32_t rows_per_tile = std::max(1, kTileQueries / group_size);
  const std::int64_t floats_per_row = group_size * kernels_.attention_partial_floats(shape.head_dim);

  Work& work = *attention_work_;
  list_tiles(batch, rows_per_tile, work.tiles);
  place_partials(shape.num_kv_heads, floats_per_row, pool_->num_threads(), work);
  list_items(shape.num_kv_heads, work);

  const auto kernel_tile = [&](const Work::Tile& tile, std::int32_t kv_head) {
    const std::int64_t head_offset = static_cast<std::int64_t>(kv_head) * group_size * shape.head_dim;
    return AttentionTile{
        .kv = cache.data() + layout.head_offset(0, layer, kv_head),
        .block_bytes = layout.block_bytes(),
        .half_head_bytes = layout.half_head_bytes(),
        .scales_offset = layout.scales_offset(),
        .type = layout.type,
        .block_size = layout.block_size,
        .head_dim = shape.head_dim,
        .block_table =
            batch.block_tables.data() + static_cast<std::int64_t>(tile.sequence) * batch.max_blocks,
        .score_scale = shape.score_scale,
        .group_size = group_size,
        .num_rows = tile.num_rows,
        .positions = batch.positions.data() + tile.first_row,
        .q = q.row(tile.first_row) + head_offset,
        .q_stride = q.stride,
        .out = out.row(tile.first_row) + head_offset,
        .out_stride = out.stride,
    };
  };
  float* all_partials = partials_.reserve(work.num_partial_floats);
  const auto partials = [&](const Work::Tile& tile, std::int32_t kv_head) {
    return all_partials + tile.partials_offset + kv_head * tile.cost() * floats_per_row;
  };
  const std::int64_t scratch_floats =
      kernels_.attention_scratch_floats(rows_per_tile * group_size, shape.head_dim);

  pool_->parallel_for(static_cast<std::int64_t>(work.items.size()), [&](std::int64_t i, std::int32_t worker) {
    const Work::Item& item = work.items[static_cast<std::size_t>(i)];
    const Work::Tile& tile = work.tiles[static_cast<std::size_t>(item.tile)];
    float* scratch = worker_scratch_[static_cast<std::size_t>(worker)].reserve(scratch_floats);
    const AttentionTile arguments = kernel_tile(tile, item.kv_head);
    if (item.range == Work::kAllRanges) {
      kernels_.attend(arguments, scratch);
    } else {
      kernels_.attend_range(arguments, item.range, scratch,
                            partials(tile, item.kv_head) + item.range * tile.num_rows * floats_per_row);
    }
  });
  pool_->parallel_for(static_cast<std::int64_t>(work.splits.size()), [&](std::int64_t i, std::int32_t) {
    const Work::Split& split = work.splits[static_cast<std::size_t>(i)];
    const Work::Tile& tile = work.tiles[static_cast<std::size_t>(split.tile)];
    kernels_.merge_ranges(kernel_tile(tile, split.kv_head), partials(tile, split.kv_head),
                          tile.num_rows * floats_per_row);
  });
}

}  // namespace octavo::kernels::cpu
