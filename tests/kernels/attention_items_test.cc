// How the attention of a step becomes items for threads: nothing is left out, nobody waits for long, and
// little is split.

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <utility>

#include "kernels/cpu/attention_work.h"
#include "tests/kernels/random_step.h"

namespace octavo::kernels::testing {
namespace {

using Work = cpu::AttentionWork;

const Work::Tile& tile_of(const Work& work, const Work::Item& item) {
  return work.tiles[static_cast<std::size_t>(item.tile)];
}
std::int64_t cost_of(const Work& work, const Work::Item& item) {
  return static_cast<std::int64_t>(tile_of(work, item).num_rows) * (item.end_range - item.first_range);
}

// When the last thread is done, if whoever is free takes the next item.
std::int64_t end_of(const Work& work, std::int32_t num_threads) {
  std::vector<std::int64_t> threads(static_cast<std::size_t>(num_threads), 0);
  for (const Work::Item& item : work.items) *std::ranges::min_element(threads) += cost_of(work, item);
  return *std::ranges::max_element(threads);
}

std::int64_t total_of(const Work& work) {
  std::int64_t total = 0;
  for (const Work::Item& item : work.items) total += cost_of(work, item);
  return total;
}

// One prompt's chunk at the end of `context` tokens, on the default model's heads.
Work plan_chunk(std::int32_t context, std::int32_t rows, std::int32_t num_threads) {
  std::vector<std::int32_t> positions, table;
  for (std::int32_t row = 0; row < rows; ++row) positions.push_back(context - rows + row);
  for (std::int32_t block = 0; block < (context + 15) / 16; ++block) table.push_back(block);
  const std::vector<std::int32_t> query_start = {0, rows}, context_lens = {context};
  const PagedBatch batch{.num_tokens = rows,
                         .num_sequences = 1,
                         .positions = positions,
                         .slot_mapping = {},
                         .query_start = query_start,
                         .context_lens = context_lens,
                         .block_tables = table,
                         .max_blocks = static_cast<std::int32_t>(table.size()),
                         .rotations = {}};
  Work work;
  cpu::plan_attention(batch,
                      {.block_size = 16,
                       .num_kv_heads = 3,
                       .group_size = 3,
                       .num_threads = num_threads,
                       .floats_per_row = 240},
                      work);
  return work;
}

TEST(AttentionItems, CoverEveryRangeOfEveryHeadOnceAndSplitsHaveRoomOfTheirOwn) {
  std::mt19937_64 random(20'261'124);
  for (int round = 0; round < 2'000; ++round) {
    SCOPED_TRACE(round);
    const RandomStep step(random);
    Work work;
    cpu::plan_attention(step.batch(), step.plan, work);
    std::map<std::pair<std::int32_t, std::int32_t>, std::int32_t> reached;  // of a tile and head
    std::map<std::pair<std::int32_t, std::int32_t>, std::int64_t> offsets;
    for (const Work::Item& item : work.items) {
      const Work::Tile& tile = tile_of(work, item);
      const auto [known, is_first] = reached.try_emplace({item.tile, item.kv_head}, tile.first_range);
      ASSERT_EQ(item.first_range, known->second);
      ASSERT_GT(item.end_range, item.first_range);
      known->second = item.end_range;
      if (is_first) offsets[known->first] = item.partials_offset;
      ASSERT_EQ(item.partials_offset, offsets[known->first]) << "the pieces of a split have one place";
    }
    ASSERT_EQ(reached.size(), work.tiles.size() * static_cast<std::size_t>(step.plan.num_kv_heads));
    for (const auto& [key, end] : reached) {
      const Work::Tile& tile = work.tiles[static_cast<std::size_t>(key.first)];
      ASSERT_EQ(end, tile.first_range + tile.num_ranges);
    }
    std::int64_t free_from = 0;
    for (const Work::Split& split : work.splits) {
      ASSERT_EQ(split.partials_offset, free_from);
      ASSERT_EQ(offsets.at({split.tile, split.kv_head}), split.partials_offset);
      offsets.erase({split.tile, split.kv_head});
      free_from += work.tiles[static_cast<std::size_t>(split.tile)].cost() * step.plan.floats_per_row;
    }
    std::vector<std::int32_t> num_merged(work.splits.size(), 0);
    for (const Work::Merge& merge : work.merges) {
      std::int32_t& merged = num_merged.at(static_cast<std::size_t>(merge.split));
      ASSERT_EQ(merge.first_row, merged) << "every row is merged once";
      ASSERT_GT(merge.end_row, merge.first_row);
      merged = merge.end_row;
    }
    for (std::size_t i = 0; i < work.splits.size(); ++i)
      ASSERT_EQ(num_merged[i], work.tiles[static_cast<std::size_t>(work.splits[i].tile)].num_rows);
    ASSERT_EQ(free_from, work.num_partial_floats);
    for (const auto& [key, offset] : offsets) ASSERT_EQ(offset, Work::kWhole);
  }
}

// A sixteenth over its share, and one piece that nobody knew beforehand.
TEST(AttentionItems, NoThreadIsBusyForMuchLongerThanTheOthers) {
  std::mt19937_64 random(20'261'125);
  for (int round = 0; round < 2'000; ++round) {
    const RandomStep step(random);
    Work work;
    cpu::plan_attention(step.batch(), step.plan, work);
    const std::int64_t share = total_of(work) / step.plan.num_threads;
    std::int64_t largest_piece = share / 4;  // what is no larger stays whole
    for (const Work::Item& item : work.items) {
      const bool is_piece = item.partials_offset != Work::kWhole,
                 is_one_range = tile_of(work, item).num_ranges == 1;
      if (is_piece || is_one_range) largest_piece = std::max(largest_piece, cost_of(work, item));
    }
    EXPECT_LE(end_of(work, step.plan.num_threads), share + share / 16 + largest_piece) << "round " << round;
  }
}

TEST(AttentionItems, OnlyWhatIsLeftOverIsSplit) {
  const Work one_tile = plan_chunk(6'500, 64, 2);
  ASSERT_EQ(one_tile.splits.size(), 1u) << "each of two threads takes a head, and both share the third";
  EXPECT_EQ(one_tile.items.size(), 2u + 4u);
  EXPECT_EQ(end_of(one_tile, 2), total_of(one_tile) / 2) << "its 26 ranges as 7, 7, 6 and 6";
  EXPECT_GT(one_tile.merges.size(), 2u) << "both merge it";
  EXPECT_TRUE(plan_chunk(6'500, 128, 2).splits.empty()) << "three each";
  EXPECT_TRUE(plan_chunk(6'500, 64, 3).splits.empty()) << "one each";
  EXPECT_TRUE(plan_chunk(6'500, 64, 1).splits.empty());
  EXPECT_EQ(plan_chunk(6'500, 64, 8).splits.size(), 3u) << "no thread can take one whole";
  EXPECT_TRUE(plan_chunk(200, 64, 2).splits.empty()) << "a single range cannot be split";
}

}  // namespace
}  // namespace octavo::kernels::testing
