#include "kernels/cpu/attention_work.h"

#include <algorithm>
#include <cstring>

#include "engine/base/check.h"

namespace octavo::kernels::cpu {
namespace {

// A tile and KV head that no thread can take whole is split into items of this part of a thread's work, at
// most. What is not more than such an item stays whole.
constexpr std::int64_t kPiecesPerThread = 4;
// A thread may get this part more than its share, so that nothing is split for little.
constexpr std::int64_t kMostOverShare = 16;
constexpr std::int64_t kMostPartialFloats = std::int64_t{16} << 20;

// Two sequences stand in one tile if they share at least this many positions, and this part of the longer
// one: less does not pay for longer items and their merging.
constexpr std::int32_t kLeastShared = 64;
constexpr std::int32_t kLeastSharedPart = 16;

using Work = AttentionWork;

struct BlockTable {
  const std::int32_t* blocks;
  std::int32_t size;
};

BlockTable table_of(const PagedBatch& batch, std::int32_t block_size, std::int32_t sequence) {
  const std::int32_t context = batch.context_lens[static_cast<std::size_t>(sequence)];
  return {batch.block_tables.data() + static_cast<std::int64_t>(sequence) * batch.max_blocks,
          (context + block_size - 1) / block_size};
}

// Some order in which tables with a common beginning are neighbours.
int compare(BlockTable a, BlockTable b) {
  const auto size = static_cast<std::size_t>(std::min(a.size, b.size));
  const int difference = std::memcmp(a.blocks, b.blocks, size * sizeof(std::int32_t));
  return difference != 0 ? difference : a.size - b.size;
}

std::int32_t num_common_blocks(BlockTable a, BlockTable b) {
  const std::int32_t size = std::min(a.size, b.size);
  return static_cast<std::int32_t>(std::mismatch(a.blocks, a.blocks + size, b.blocks).first - a.blocks);
}

void order_sequences(const PagedBatch& batch, std::int32_t block_size, std::vector<std::int32_t>& sequences) {
  sequences.resize(static_cast<std::size_t>(batch.num_sequences));
  for (std::int32_t i = 0; i < batch.num_sequences; ++i) sequences[static_cast<std::size_t>(i)] = i;
  std::sort(sequences.begin(), sequences.end(), [&](std::int32_t a, std::int32_t b) {
    const int order = compare(table_of(batch, block_size, a), table_of(batch, block_size, b));
    return order != 0 ? order < 0 : a < b;
  });
}

void list_rows(const PagedBatch& batch, const AttentionPlan& plan, Work& work) {
  const std::int32_t block_size = plan.block_size;
  order_sequences(batch, block_size, work.sequences);
  work.rows.clear();
  BlockTable before{nullptr, 0};
  for (const std::int32_t sequence : work.sequences) {
    const BlockTable table = table_of(batch, block_size, sequence);
    std::int32_t num_shared = num_common_blocks(before, table) * block_size;
    const auto index = static_cast<std::size_t>(sequence);
    for (std::int32_t row = batch.query_start[index]; row < batch.query_start[index + 1]; ++row) {
      const std::int32_t position = batch.positions[static_cast<std::size_t>(row)];
      const std::int32_t first = first_in_window(position, plan.window, plan.window_form);
      work.rows.push_back({row, first, position, table.blocks, num_shared});
      num_shared = AttentionRow::kSameSequence;
    }
    before = table;
  }
}

bool belongs_to_tile_before(const AttentionRow& row) {
  const std::int32_t num_read = row.position - row.first, num_shared = row.num_shared - row.first;
  return num_shared >= kLeastShared && num_shared >= num_read / kLeastSharedPart;
}

void list_tiles(std::int32_t rows_per_tile, Work& work) {
  work.tiles.clear();
  for (std::int32_t index = 0; index < static_cast<std::int32_t>(work.rows.size()); ++index) {
    const AttentionRow& row = work.rows[static_cast<std::size_t>(index)];
    const std::int32_t first_range = row.first / kAttentionRange;
    if (index == 0 || work.tiles.back().num_rows == rows_per_tile || !belongs_to_tile_before(row))
      work.tiles.push_back({index, 0, first_range, 0});
    Work::Tile& tile = work.tiles.back();
    ++tile.num_rows;
    const std::int32_t end_range =
        std::max(tile.first_range + tile.num_ranges, row.position / kAttentionRange + 1);
    tile.first_range = std::min(tile.first_range, first_range);
    tile.num_ranges = end_range - tile.first_range;
  }
  // The largest first, so that the last items to be taken are small.
  std::sort(work.tiles.begin(), work.tiles.end(), [](const Work::Tile& a, const Work::Tile& b) {
    return a.cost() != b.cost() ? a.cost() > b.cost() : a.first_row < b.first_row;
  });
}

// What is split writes each range's results to memory and reads them again. So the threads take whole tiles
// and KV heads, largest first, as long as these do not make one end after the others, and only the rest is
// split (Graham 1969, "Bounds on multiprocessing timing anomalies", with pieces in the end). Two threads of
// Sapphire Rapids and three KV heads, 32 rows behind 3,000 positions: 52 ms a step, and 57 with all three
// split.
class ItemLister {
 public:
  ItemLister(const AttentionPlan& plan, Work& work) : plan_(plan), work_(work) {
    std::int64_t total = 0;
    for (const Work::Tile& tile : work.tiles) total += tile.cost() * plan.num_kv_heads;
    share_ = total / plan.num_threads;
    most_of_piece_ = total / (kPiecesPerThread * plan.num_threads);
    work.loads.assign(static_cast<std::size_t>(plan.num_threads), 0);
    work.items.clear();
    work.splits.clear();
    work.merges.clear();
    work.num_partial_floats = 0;
  }

  // Tiles come largest first: whole ones, then the pieces, and last what is too small to matter.
  void list() {
    std::int32_t tile = 0;
    const auto num_tiles = static_cast<std::int32_t>(work_.tiles.size());
    for (; tile < num_tiles && at(tile).cost() > most_of_piece_; ++tile) {
      for (std::int32_t kv_head = 0; kv_head < plan_.num_kv_heads; ++kv_head) place(tile, kv_head);
    }
    for (const Work::Split& split : work_.splits) add_pieces(split);
    for (; tile < num_tiles; ++tile) {
      for (std::int32_t kv_head = 0; kv_head < plan_.num_kv_heads; ++kv_head) add_whole(tile, kv_head);
    }
  }

 private:
  const Work::Tile& at(std::int32_t index) const { return work_.tiles[static_cast<std::size_t>(index)]; }

  void place(std::int32_t index, std::int32_t kv_head) {
    const Work::Tile& tile = at(index);
    const std::int64_t num_floats = tile.cost() * plan_.floats_per_row;
    const bool has_room = work_.num_partial_floats + num_floats <= kMostPartialFloats;
    if (tile.num_ranges == 1 || !has_room || take_whole(tile.cost())) return add_whole(index, kv_head);
    add_merges(static_cast<std::int32_t>(work_.splits.size()), tile.num_rows);
    work_.splits.push_back({index, kv_head, work_.num_partial_floats});
    work_.num_partial_floats += num_floats;
  }

  void add_whole(std::int32_t index, std::int32_t kv_head) {
    const Work::Tile& tile = at(index);
    work_.items.push_back(
        {index, kv_head, tile.first_range, tile.first_range + tile.num_ranges, Work::kWhole});
  }

  void add_merges(std::int32_t split, std::int32_t num_rows) {
    const std::int32_t step = plan_.rows_per_merge();
    for (std::int32_t row = 0; row < num_rows; row += step)
      work_.merges.push_back({split, row, std::min(row + step, num_rows)});
  }

  bool take_whole(std::int64_t cost) {
    std::int64_t& least = *std::ranges::min_element(work_.loads);
    if (least + cost > share_ + share_ / kMostOverShare) return false;
    least += cost;
    return true;
  }

  // As many for each thread, and as nearly equal as ranges allow, longer ones first.
  void add_pieces(const Work::Split& split) {
    const Work::Tile& tile = at(split.tile);
    const std::int64_t least = tile.cost() / std::max<std::int64_t>(1, most_of_piece_);
    const std::int64_t num_pieces = (least / plan_.num_threads + 1) * plan_.num_threads;
    const auto num_ranges = static_cast<std::int32_t>(tile.num_ranges / num_pieces);
    const auto num_longer = static_cast<std::int32_t>(tile.num_ranges % num_pieces);
    const std::int32_t end = tile.first_range + tile.num_ranges;
    std::int32_t piece = 0;
    for (std::int32_t range = tile.first_range, next; range < end; range = next, ++piece) {
      next = range + num_ranges + (piece < num_longer ? 1 : 0);
      work_.items.push_back({split.tile, split.kv_head, range, next, split.partials_offset});
    }
  }

  const AttentionPlan& plan_;
  Work& work_;
  std::int64_t share_, most_of_piece_;  // of the whole work
};

}  // namespace

// A tile and KV head are split only if they are more than one in kPiecesPerThread * num_threads of the work:
// so few can be that large.
std::int64_t most_partial_floats(const AttentionPlan& plan, std::int64_t num_rows,
                                 std::int64_t max_context_len) {
  if (plan.num_threads == 1 || num_rows <= 0 || max_context_len <= 0) return 0;
  const std::int64_t most_splits = kPiecesPerThread * plan.num_threads - 1;
  const std::int64_t rows = std::min(num_rows * plan.num_kv_heads, most_splits * plan.rows_per_tile());
  const std::int64_t ranges = (max_context_len - 1) / kAttentionRange + 1;
  if (ranges == 1) return 0;
  return std::min(kMostPartialFloats, rows * ranges * plan.floats_per_row);
}

void plan_attention(const PagedBatch& batch, const AttentionPlan& plan, AttentionWork& work) {
  list_rows(batch, plan, work);
  list_tiles(plan.rows_per_tile(), work);
  ItemLister(plan, work).list();
}

void StepAttention::begin_step(const PagedBatch& batch) {
  num_current_ = 0;
  positions_ = batch.positions.data();
  block_tables_ = batch.block_tables.data();
  window_block_tables_ = batch.window_block_tables.data();
  num_tokens_ = batch.num_tokens;
}

AttentionWork& StepAttention::work_for(const PagedBatch& batch, const AttentionPlan& plan) {
  const std::int32_t* const tables = batch.block_tables.data();
  OCTAVO_CHECK(batch.positions.data() == positions_ && batch.num_tokens == num_tokens_ &&
                   (tables == block_tables_ || tables == window_block_tables_),
               "attention of %d rows that are not those of begin_step()", batch.num_tokens);
  for (std::size_t i = 0; i < num_current_; ++i) {
    if (planned_[i].plan == plan) return planned_[i].work;
  }
  if (num_current_ == planned_.size()) planned_.emplace_back();
  Planned& planned = planned_[num_current_++];
  planned.plan = plan;
  plan_attention(batch, plan, planned.work);
  return planned.work;
}

}  // namespace octavo::kernels::cpu
