// The history of the pools: whatever moment is asked for, it is what the engine itself said at that moment.

#include "app/window/memory/memory_history.h"

#include <gtest/gtest.h>

#include <memory>
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
  ASSERT_EQ(replayed.states.size(), engine.states.size());
  for (std::size_t i = 0; i < engine.states.size(); ++i) {
    SCOPED_TRACE("state " + std::to_string(i));
    ASSERT_EQ(replayed.states[i].state, engine.states[i].state);
    ASSERT_EQ(replayed.states[i].ref_count, engine.states[i].ref_count);
    ASSERT_EQ(replayed.states[i].is_checkpoint, engine.states[i].is_checkpoint);
    ASSERT_EQ(replayed.states[i].first_owner, engine.states[i].first_owner);
    if (!engine.states[i].is_checkpoint) continue;
    ASSERT_EQ(replayed.states[i].position, engine.states[i].position);
    ASSERT_EQ(replayed.states[i].reason, engine.states[i].reason);
  }
  EXPECT_EQ(replayed.figures.used_states, engine.figures.used_states);
  EXPECT_EQ(replayed.figures.host_used_states, engine.figures.host_used_states);
  EXPECT_EQ(replayed.figures.checkpoints, engine.figures.checkpoints);
  EXPECT_EQ(replayed.figures.used_blocks, engine.figures.used_blocks);
  EXPECT_EQ(replayed.figures.logical_blocks, engine.figures.logical_blocks);
  EXPECT_EQ(replayed.figures.saved_bytes, engine.figures.saved_bytes);
  EXPECT_EQ(replayed.figures.host_used_blocks, engine.figures.host_used_blocks);
}

std::uint64_t newest_mark(metrics::EngineTraffic& traffic) {
  return traffic.core().recorder()->read_since(~0ull, ~0ull).next_event_mark;
}

TEST(MemoryHistory, AnyMomentIsWhatTheEngineSaidThen) {
  for (unsigned seed = 1; seed <= 12; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    metrics::EngineTraffic traffic(seed, metrics::layers_of(seed));
    MemoryHistory history(traffic.core().recorder(), {.bytes_per_block = 64, .bytes_per_state = 640});
    std::vector<Remembered> remembered;
    for (int step = 0; step < 250; ++step) {
      traffic.step();
      const KvSnapshot snapshot = traffic.core().snapshot();
      history.learn(snapshot);
      history.follow_to(newest_mark(traffic));
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
  const auto recorder = std::make_shared<metrics::StepRecorder>(
      metrics::PoolShape{.num_blocks = 4}, metrics::HistorySizes{.num_events = 64, .num_segment_events = 16});
  MemoryHistory history(recorder, {.bytes_per_block = 64});
  const std::vector<BlockEvent> events(1);
  for (std::uint64_t mark = 1; mark <= 400; ++mark) {
    recorder->record(std::nullopt, events);
    history.follow_to(mark);
  }
  ASSERT_GT(history.oldest_mark(), 0u);
  EXPECT_TRUE(history.at(history.oldest_mark()));
  const auto gone = history.at(history.oldest_mark() - 1);
  ASSERT_FALSE(gone);
  EXPECT_NE(gone.error().message.find("no longer in the history"), std::string::npos);
}

// The recorder is the engine's own: it may be ahead of what the window has read, and it may have dropped all
// of it.
TEST(MemoryHistory, GoesOnAfterALoss) {
  metrics::EngineTraffic traffic(5);
  const auto recorder = std::make_shared<metrics::StepRecorder>(
      traffic.pool(), metrics::HistorySizes{.num_events = 64, .num_segment_events = 16});
  MemoryHistory history(recorder, {.bytes_per_block = 64});
  std::uint64_t event_mark = 0;
  const auto run = [&](int num_steps) {
    for (int i = 0; i < num_steps; ++i) {
      traffic.step();
      const metrics::Trace trace = traffic.core().recorder()->read_since(0, event_mark);
      event_mark = trace.next_event_mark;
      recorder->record(std::nullopt, trace.block_events);
    }
  };
  run(20);
  history.follow_to(event_mark);
  const std::uint64_t read = event_mark;
  run(100);
  ASSERT_GT(recorder->oldest_event_mark(), read) << "what was read is no longer in the history";
  EXPECT_FALSE(history.at(read)) << "before the loss is noticed, nothing is shown wrong";
  history.follow_to(event_mark);
  const KvSnapshot snapshot = traffic.core().snapshot();
  history.learn(snapshot);
  for (const std::uint64_t mark : {history.newest_mark(), history.oldest_mark(), history.newest_mark()})
    ASSERT_TRUE(history.at(mark)) << mark;
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
  metrics::PoolStory story;
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
  metrics::PoolStory story;
  EXPECT_TRUE(make_prefix_tree(snapshot, story, [](BlockId) { return std::string(); }).empty());
}

}  // namespace
}  // namespace octavo::app
