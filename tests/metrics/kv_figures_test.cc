#include "engine/metrics/kv_figures.h"

#include <gtest/gtest.h>

#include <vector>

namespace octavo::metrics {
namespace {

using Kind = BlockEventKind;

std::vector<BlockId> blocks(const std::vector<std::int32_t>& ids) {
  std::vector<BlockId> named;
  for (const std::int32_t id : ids) named.push_back(BlockId{id});
  return named;
}

// Blocks of 4 tokens. Sequences 1 and 2 share blocks 0 and 1; sequence 1 has read 10 tokens and has a slot
// for one more, sequence 2 only 9 of the copy that it made. Block 5 is cached, 2, 6 and 7 are free. Sequence
// 3 is swapped out.
KvSnapshot example() {
  KvSnapshot snapshot;
  snapshot.totals = {.block_size = 4, .num_blocks = 8, .num_host_blocks = 3, .bytes_per_block = 100};
  snapshot.blocks.resize(8);
  const auto use = [&](std::size_t id, std::int32_t ref_count, std::int32_t filled, std::int32_t reserved) {
    snapshot.blocks[id] = {
        .state = BlockState::kUsed, .ref_count = ref_count, .filled = filled, .reserved = reserved};
  };
  use(0, 2, 4, 0);
  use(1, 2, 4, 0);
  use(3, 1, 2, 1);
  use(4, 1, 2, 0);
  snapshot.blocks[5] = {.state = BlockState::kCached, .filled = 4, .findable = true};
  snapshot.sequences = {{.sequence_id = SequenceId{1},
                         .request_id = RequestId{1},
                         .state = SequenceState::kRunning,
                         .num_tokens = 11,
                         .num_computed_tokens = 10,
                         .block_table = blocks({0, 1, 3})},
                        {.sequence_id = SequenceId{2},
                         .request_id = RequestId{1},
                         .state = SequenceState::kRunning,
                         .num_tokens = 10,
                         .num_computed_tokens = 9,
                         .block_table = blocks({0, 1, 4})},
                        {.sequence_id = SequenceId{3},
                         .request_id = RequestId{2},
                         .state = SequenceState::kSwapped,
                         .num_tokens = 6,
                         .num_computed_tokens = 5,
                         .block_table = blocks({2, 0})},
                        {.sequence_id = SequenceId{4},
                         .request_id = RequestId{3},
                         .state = SequenceState::kWaiting,
                         .block_table = {}}};
  return snapshot;
}

TEST(KvFigures, AreWhatTheirDefinitionsSay) {
  const KvFigures figures = recount_figures(example());
  EXPECT_EQ(figures.used_blocks, 4);
  EXPECT_EQ(figures.cached_blocks, 1);
  EXPECT_EQ(figures.free_blocks, 3);
  EXPECT_EQ(figures.logical_blocks, 6);  // what is swapped out does not count
  EXPECT_DOUBLE_EQ(figures.sharing_ratio, 1.5);
  EXPECT_EQ(figures.saved_bytes, 200);
  EXPECT_EQ(figures.filled_slots, 12);
  EXPECT_EQ(figures.reserved_ahead_slots, 1);
  EXPECT_EQ(figures.unfilled_slots, 3);
  EXPECT_DOUBLE_EQ(figures.internal_fragmentation, 3.0 / 16.0);
  EXPECT_EQ(figures.host_used_blocks, 2);
}

TEST(KvFigures, UseCountsEachSlotThatSomebodyReadsOnce) {
  const KvUse use = measure_use(example());
  EXPECT_DOUBLE_EQ(use.effective_use, 11.0 / 16.0);  // block 4 has two filled slots, and one is read
  EXPECT_DOUBLE_EQ(use.tokens_held, 11.0 / 32.0);
  EXPECT_EQ(use.external_fragmentation, 0.0);
  EXPECT_EQ(use.longest_free_run, 2);
  EXPECT_EQ(use.host_free_blocks, 1);
}

TEST(KvFigures, AnEmptyPoolHasNoDivisions) {
  KvSnapshot snapshot;
  snapshot.totals = {.block_size = 4};
  const KvFigures figures = recount_figures(snapshot);
  EXPECT_EQ(figures.sharing_ratio, 1.0);
  EXPECT_EQ(figures.internal_fragmentation, 0.0);
  EXPECT_EQ(measure_use(snapshot).effective_use, 0.0);
  EXPECT_EQ(measure_use(snapshot).tokens_held, 0.0);
}

TEST(KvFigures, ScatterCountsRunsOfNeighbours) {
  KvSnapshot snapshot = example();
  snapshot.sequences[1].block_table = blocks({4, 3, 0, 1});
  const std::vector<Scatter> scatters = measure_scatter(snapshot);
  ASSERT_EQ(scatters.size(), 2u);
  EXPECT_EQ(scatters[0].num_runs, 2);  // 0-1, 3
  EXPECT_DOUBLE_EQ(scatters[0].share(), 2.0 / 3.0);
  EXPECT_EQ(scatters[1].num_runs, 3);  // 4, 3, 0-1
  EXPECT_DOUBLE_EQ(scatters[1].share(), 0.75);
}

TEST(KvFigures, OtherRulesHoldMore) {
  const Counterfactuals other = measure_counterfactuals(example(), 30);
  EXPECT_EQ(other.contiguous_blocks, 16);  // two running sequences, each 30 tokens in 8 blocks
  EXPECT_EQ(other.contiguous_bytes, 1'600);
  EXPECT_EQ(other.unshared_blocks, 6);
  EXPECT_EQ(other.unshared_bytes, 600);
}

TEST(KvFigures, PrefixHitsOfAWindow) {
  const std::vector<StepRecord> steps = {{.num_prefill_tokens = 20},
                                         {.num_prefill_tokens = 10, .num_decode_tokens = 9}};
  const PrefixHits hits = measure_prefix_hits({.prefix_hit_tokens = 100}, {.prefix_hit_tokens = 190}, steps);
  EXPECT_EQ(hits.num_reused, 90);
  EXPECT_EQ(hits.num_computed, 30);
  EXPECT_DOUBLE_EQ(hits.share(), 0.75);
  EXPECT_EQ(measure_prefix_hits({}, {}, {}).share(), 0.0);
}

TEST(SwapMeter, KnowsWhatCameBackTooSoon) {
  SwapMeter meter(1'000);
  const auto add = [&](Kind kind, std::int32_t host_block, std::int64_t time_us) {
    meter.add({.time_us = time_us, .sequence = 1, .block = 0, .aux = host_block, .kind = kind});
  };
  add(Kind::kSwapOut, 3, 100);
  add(Kind::kSwapOut, 0, 100);
  add(Kind::kSwapOut, 1, 100);
  add(Kind::kFill, 7, 100);
  add(Kind::kSwapIn, 3, 1'100);
  add(Kind::kSwapDrop, 3, 1'100);
  add(Kind::kSwapIn, 0, 1'101);
  add(Kind::kSwapDrop, 0, 1'101);
  add(Kind::kSwapDrop, 1, 2'000);
  add(Kind::kSwapOut, 3, 3'000);  // the same host block again
  add(Kind::kSwapDrop, 3, 3'001);
  EXPECT_EQ(meter.num_out(), 4);
  EXPECT_EQ(meter.num_in(), 2);
  EXPECT_EQ(meter.num_thrashed(), 1);
  EXPECT_EQ(meter.num_dropped(), 2);
}

}  // namespace
}  // namespace octavo::metrics
