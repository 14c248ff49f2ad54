// Items are (tile of rows, KV head), or, for what would leave some threads idle in the end, (tile, KV head,
// some ranges of positions), so that two threads stay busy with three KV heads. One more loop then merges the
// ranges.
#include <algorithm>

#include "kernels/cpu/attention_work.h"
#include "kernels/cpu/cpu_backend.h"

namespace octavo::kernels::cpu {

void CpuBackend::paged_attention(const AttentionShape& shape, const PagedBatch& batch, std::int32_t layer,
                                 const KvCache& kv, ConstMatrixView q, MatrixView out) {
  const auto& cache = static_cast<const CpuKvCache&>(kv);
  const KvLayout& layout = cache.layout();
  const KvLayer& place = layout.layer(layer);
  const std::int32_t group_size = shape.num_heads / shape.num_kv_heads, value_dim = shape.value_dim();
  const AttentionPlan plan{.block_size = layout.block_size,
                           .num_kv_heads = shape.num_kv_heads,
                           .group_size = group_size,
                           .num_threads = pool_->num_threads(),
                           .floats_per_row = group_size * kernels_.attention_partial_floats(value_dim),
                           .window = shape.window,
                           .window_form = shape.window_form};
  AttentionWork& work = step_attention_->work_for(batch, plan);
  work.announced.assign(static_cast<std::size_t>(plan.num_threads), -1);

  const auto kernel_tile = [&](const AttentionWork::Tile& tile, std::int32_t kv_head) {
    const std::int64_t first_head = static_cast<std::int64_t>(kv_head) * group_size;
    return AttentionTile{
        .kv = cache.data() + layout.head_offset(0, layer, kv_head),
        .block_bytes = layout.block_bytes(),
        .half_head_bytes = place.half_head_bytes,
        .scales_offset = place.scales_offset,
        .type = layout.type,
        .block_size = layout.block_size,
        .head_dim = shape.head_dim,
        .value_dim = value_dim,
        .is_latent = shape.latent_dim > 0,
        .score_scale = shape.score_scale,
        .score_soft_cap = shape.score_soft_cap,
        .group_size = group_size,
        .first_range = tile.first_range,
        .num_rows = tile.num_rows,
        .rows = work.rows.data() + tile.first_row,
        .q = q.data + first_head * shape.head_dim,
        .q_stride = q.stride,
        .out = out.data + first_head * value_dim,
        .out_stride = out.stride,
        .sinks = shape.sinks.empty() ? nullptr : shape.sinks.data() + first_head,
    };
  };
  float* all_partials = partials_.reserve(work.num_partial_floats);
  const std::int64_t scratch_floats =
      kernels_.attention_scratch_floats(plan.rows_per_tile(), group_size, shape.head_dim, value_dim);

  const auto job_of = [&](std::int64_t i) {
    const AttentionWork::Item& item = work.items[static_cast<std::size_t>(i)];
    return AttentionJob{kernel_tile(work.tiles[static_cast<std::size_t>(item.tile)], item.kv_head),
                        item.first_range, item.end_range};
  };
  const auto num_items = static_cast<std::int64_t>(work.items.size());
  pool_->parallel_for(num_items, [&](std::int64_t i, std::int32_t worker) {
    const AttentionWork::Item& item = work.items[static_cast<std::size_t>(i)];
    const AttentionWork::Tile& tile = work.tiles[static_cast<std::size_t>(item.tile)];
    float* scratch = worker_scratch_[static_cast<std::size_t>(worker)].reserve(scratch_floats);
    std::int64_t& announced = work.announced[static_cast<std::size_t>(worker)];
    AttentionJob job = job_of(i);
    job.was_announced = announced == i;
    announced = i + pool_->num_threads();  // items are alike, so the threads take turns
    const AttentionJob next = job_of(std::min(announced, num_items - 1));
    if (announced < num_items) job.next = &next;
    if (item.partials_offset == AttentionWork::kWhole) {
      kernels_.attend(job, scratch);
    } else {
      const std::int64_t range_stride = tile.num_rows * plan.floats_per_row;
      const std::int64_t num_before = item.first_range - tile.first_range;
      kernels_.attend_ranges(job, scratch, all_partials + item.partials_offset + num_before * range_stride,
                             range_stride);
    }
  });
  pool_->parallel_for(static_cast<std::int64_t>(work.merges.size()), [&](std::int64_t i, std::int32_t) {
    const AttentionWork::Merge& merge = work.merges[static_cast<std::size_t>(i)];
    const AttentionWork::Split& split = work.splits[static_cast<std::size_t>(merge.split)];
    const AttentionWork::Tile& tile = work.tiles[static_cast<std::size_t>(split.tile)];
    AttentionTile rows = kernel_tile(tile, split.kv_head);
    rows.rows += merge.first_row;
    rows.num_rows = merge.end_row - merge.first_row;
    kernels_.merge_ranges(rows, all_partials + split.partials_offset + merge.first_row * plan.floats_per_row,
                          tile.num_rows * plan.floats_per_row);
  });
}

}  // namespace octavo::kernels::cpu
