// The history of the pools: whatever moment is asked for, it is what the engine itself said at that moment.

#include "app/window/memory/memory_history.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "app/window/memory/memory_tree.h"
#include "tests/metrics/engine_traffic.h"

namespace octavo::app {
namespace {

struct Remembered {
  std::uint64_t mark = 0;
  KvSnapshot snapshot;
};

std::vector<BlockId> table_of(const KvSnapshot& snapshot, SequenceId id, SequenceState state) {
  for (const SequenceSnapshot& sequence : snapshot.sequences) {
    if (sequence.sequence_id == id && sequence.state == state) return sequence.block_table;
  }
  return {};
}

void expect_equal(const KvSnapshot& replayed, const KvSnapshot& engine) {
  ASSERT_EQ(replayed.blocks.size(), engine.blocks.size());
  for (std::size_t i = 0; i < engine.blocks.size(); ++i) {
    SCOPED_TRACE("block " + std::to_string(i));
    ASSERT_EQ(replayed.blocks[i].state, engine.blocks[i].state);
    ASSERT_EQ(replayed.blocks[i].ref_count, engine.blocks[i].ref_count);
    ASSERT_EQ(replayed.blocks[i].filled, engine.blocks[i].filled);
    ASSERT_EQ(replayed.blocks[i].findable, engine.blocks[i].findable);
  }
  for (const SequenceSnapshot& sequence : engine.sequences) {
    if (sequence.block_table.empty()) continue;
    SCOPED_TRACE("sequence " + std::to_string(sequence.sequence_id.value));
    ASSERT_EQ(table_of(replayed, sequence.sequence_id, sequence.state), sequence.block_table);
  }
  EXPECT_EQ(replayed.figures.used_blocks, engine.figures.used_blocks);
  EXPECT_EQ(replayed.figures.logical_blocks, engine.figures.logical_blocks);
  EXPECT_EQ(replayed.figures.saved_bytes, engine.figures.saved_bytes);
  EXPECT_EQ(replayed.figures.host_used_blocks, engine.figures.host_used_blocks);
}

TEST(MemoryHistory, AnyMomentIsWhatTheEngineSaidThen) {
  for (unsigned seed = 1; seed <= 12; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    metrics::EngineTraffic traffic(seed);
    MemoryHistory history(traffic.pool(), 64);
    std::vector<Remembered> remembered;
    std::uint64_t step_mark = 0, event_mark = 0;
    for (int step = 0; step < 250; ++step) {
      traffic.step();
      const metrics::Trace trace = traffic.core().recorder().read_since(step_mark, event_mark);
      step_mark = trace.next_step_mark;
      event_mark = trace.next_event_mark;
      const KvSnapshot snapshot = traffic.core().snapshot();
      history.learn(snapshot);
      history.add(trace);
      remembered.push_back({history.newest_mark(), snapshot});
    }
    for (int i = 0; i < 60; ++i) {
      const Remembered& then = remembered[traffic.below(static_cast<std::uint32_t>(remembered.size()))];
      const auto moment = history.at(then.mark);
      ASSERT_TRUE(moment) << moment.error().message;
      expect_equal(*moment->snapshot, then.snapshot);
      if (HasFatalFailure()) return;
    }
    const auto newest = history.at(history.newest_mark());
    ASSERT_TRUE(newest);
    expect_equal(*newest->snapshot, remembered.back().snapshot);
    // Events forget the order of children, but not who continues whom.
    for (std::size_t i = 0; i < newest->snapshot->blocks.size(); ++i) {
      const BlockSnapshot& engine = remembered.back().snapshot.blocks[i];
      if (engine.findable && engine.state == BlockState::kUsed && engine.parent >= 0) {
        EXPECT_GE(newest->snapshot->blocks[i].parent, 0) << i;
      }
    }
  }
}

TEST(MemoryHistory, MomentThatIsGoneIsOneSentence) {
  metrics::EngineTraffic traffic(3);
  MemoryHistory history(traffic.pool(), 64, {.num_steps = 64, .num_events = 64, .num_segment_events = 16});
  for (int step = 0; step < 400; ++step) traffic.step();
  std::uint64_t step_mark = 0, event_mark = 0;
  const metrics::Trace trace = traffic.core().recorder().read_since(step_mark, event_mark);
  history.add(trace);
  EXPECT_TRUE(history.at(history.oldest_mark()));
  if (history.oldest_mark() == 0) return;
  const auto gone = history.at(history.oldest_mark() - 1);
  ASSERT_FALSE(gone);
  EXPECT_NE(gone.error().message.find("not kept any more"), std::string::npos);
}

TEST(MemoryHistory, GoesOnAfterALoss) {
  metrics::EngineTraffic traffic(5);
  MemoryHistory history(traffic.pool(), 64);
  for (int step = 0; step < 100; ++step) traffic.step();
  const metrics::Trace lost = traffic.core().recorder().read_since(0, 0);
  const auto before = traffic.core().recorder().state_at(lost.next_event_mark);
  ASSERT_TRUE(before);
  for (int step = 0; step < 50; ++step) traffic.step();
  metrics::Trace trace = traffic.core().recorder().read_since(lost.next_step_mark, lost.next_event_mark);
  trace.num_lost = 7;
  history.add(trace, *before);
  const KvSnapshot snapshot = traffic.core().snapshot();
  history.learn(snapshot);
  const auto moment = history.at(history.newest_mark());
  ASSERT_TRUE(moment);
  for (std::size_t i = 0; i < snapshot.blocks.size(); ++i) {
    EXPECT_EQ(moment->snapshot->blocks[i].ref_count, snapshot.blocks[i].ref_count) << i;
  }
}

BlockSnapshot cached(std::int32_t parent, std::int64_t last_step,
                     RetentionClass retention = RetentionClass::kChat) {
  BlockSnapshot block;
  block.state = BlockState::kCached;
  block.findable = true;
  block.parent = parent;
  block.last_step = last_step;
  block.retention = retention;
  return block;
}

TEST(PrefixTree, RunsEndWhereTheTreeForks) {
  KvSnapshot snapshot;
  snapshot.blocks = {cached(-1, 1), cached(0, 2), cached(1, 3), cached(1, 9)};
  PoolStory story;
  story.blocks.resize(4);
  const auto runs =
      make_prefix_tree(snapshot, story, [](BlockId block) { return std::to_string(block.value); });
  ASSERT_EQ(runs.size(), 3u);
  EXPECT_EQ(runs[0].blocks.size(), 2u);
  EXPECT_EQ(runs[0].text, "01");
  EXPECT_EQ(runs[1].parent, 0);
  EXPECT_EQ(runs[2].depth, 1);
}

TEST(PrefixTree, ParentsInACircleEnd) {
  KvSnapshot snapshot;
  snapshot.blocks = {cached(1, 1), cached(0, 2)};
  PoolStory story;
  EXPECT_TRUE(make_prefix_tree(snapshot, story, [](BlockId) { return std::string(); }).empty());
}

}  // namespace
}  // namespace octavo::app
