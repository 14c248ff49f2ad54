// How the attention of a step is cut into items for the threads. The cut changes no bit of any result.
//
// Sequences whose block tables begin with the same blocks stand together in a tile, which reads these blocks
// once for all of them (known as shared-prefix or cascade attention: Juravsky et al. 2024, Hydragen,
// arXiv:2402.05099). Common beginnings may nest.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "kernels/backend.h"
#include "kernels/cpu/simd/kernel_table.h"
#include "kernels/paged_batch.h"

namespace octavo::kernels::cpu {

struct AttentionWork {
  // Neighbours in `rows`: of one sequence, or of several that begin with the same blocks.
  struct Tile {
    std::int32_t first_row, num_rows;
    std::int32_t first_range, num_ranges;  // of kAttentionRange positions: all that a row reads
    std::int64_t cost() const { return static_cast<std::int64_t>(num_rows) * num_ranges; }
  };
  static constexpr std::int64_t kWhole = -1;

  // A tile and KV head, or some of their ranges.
  struct Item {
    std::int32_t tile;
    std::int32_t kv_head;
    std::int32_t first_range, end_range;  // of one that is not split: all
    std::int64_t partials_offset;         // floats; where the partial results of its split stand, or kWhole
  };

  // A tile and KV head whose ranges became several items, with partial results [range][query].
  struct Split {
    std::int32_t tile;
    std::int32_t kv_head;
    std::int64_t partials_offset;
  };

  // Some rows of a split's tile, whose partial results one thread merges.
  struct Merge {
    std::int32_t split;
    std::int32_t first_row, end_row;  // of the tile
  };

  std::vector<std::int32_t> sequences;  // of the batch, those with common blocks next to each other
  std::vector<AttentionRow> rows;       // of the batch, in the order of `sequences`
  std::vector<Tile> tiles;
  std::vector<Item> items;
  std::vector<Split> splits;
  std::vector<Merge> merges;
  std::int64_t num_partial_floats = 0;
  std::vector<std::int64_t> loads;      // while items are listed, for each thread: the cost of what it takes
  std::vector<std::int64_t> announced;  // in a layer, for each worker: the item whose keys it has asked for
};

// What the cut depends on besides the batch.
struct AttentionPlan {
  // Queries (rows x heads of a group) of a tile: enough to pay for converting keys and values once (5 % of
  // the attention of a long prompt), few enough for a prompt to make work for all threads.
  static constexpr std::int32_t kTileQueries = 192;
  // Queries that are merged together: as many as the kernels take at once.
  static constexpr std::int32_t kMergedQueries = 16;

  std::int32_t block_size;
  std::int32_t num_kv_heads;
  std::int32_t group_size;  // query heads per KV head
  std::int32_t num_threads;
  std::int64_t floats_per_row;  // of partial results
  std::int32_t window = 0;      // of AttentionShape, as its form
  WindowForm window_form = WindowForm::kSliding;

  std::int32_t rows_per_tile() const { return std::max(1, kTileQueries / group_size); }
  std::int32_t rows_per_merge() const { return std::max(1, kMergedQueries / group_size); }
  bool operator==(const AttentionPlan&) const = default;
};

// At least what plan_attention asks for in num_partial_floats, for any batch of so
// many rows and so long a context.
std::int64_t most_partial_floats(const AttentionPlan& plan, std::int64_t num_rows,
                                 std::int64_t max_context_len);

// Fills `work`, whose vectors keep their memory: nothing is allocated once they have grown.
void plan_attention(const PagedBatch& batch, const AttentionPlan& plan, AttentionWork& work);

// The work of one step: layers of a kind, by window, have it in common, and the first of them plans it.
class StepAttention {
 public:
  // What was planned is of the step before.
  void begin_step(const PagedBatch& batch);
  // REQUIRES: the batch of begin_step(), unchanged, or with the tables of its windows. Valid until the next
  // call.
  AttentionWork& work_for(const PagedBatch& batch, const AttentionPlan& plan);

 private:
  struct Planned {
    AttentionPlan plan;
    AttentionWork work;
  };
  std::vector<Planned> planned_;  // of this step, the first num_current_; the rest keep their memory
  std::size_t num_current_ = 0;
  const std::int32_t *positions_ = nullptr, *block_tables_ = nullptr, *window_block_tables_ = nullptr;
  std::int32_t num_tokens_ = 0;
};

}  // namespace octavo::kernels::cpu
