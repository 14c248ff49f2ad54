#include "engine/metrics/event_history.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "engine/metrics/step_recorder.h"
#include "tests/block/seed.h"
#include "tests/metrics/engine_traffic.h"

namespace octavo::metrics {
namespace {

using Kind = BlockEventKind;

// A history that overflows all the time, beside everything that ever happened.
TEST(EventHistory, ReplaysToEveryEventThatIsKept) {
  const unsigned first_seed = test_seed();
  std::int64_t num_marks = 0, num_too_old = 0;
  for (unsigned seed = first_seed; seed < first_seed + 25; ++seed) {
    SCOPED_TRACE("--gtest_random_seed=" + std::to_string(seed));
    EngineTraffic traffic(seed, layers_of(seed));
    const std::size_t capacity = 1 + traffic.below(400), segment_events = 1 + traffic.below(100);
    EventHistory history(traffic.pool(), capacity, segment_events);
    std::vector<KvState> states = {KvState(traffic.pool())};  // index = mark
    std::uint64_t event_mark = 0;
    std::size_t longest = segment_events;
    for (int i = 0; i < 80; ++i) {
      traffic.step();
      const Trace trace = traffic.core().recorder()->read_since(0, event_mark);
      event_mark = trace.next_event_mark;
      history.append(trace.block_events);
      longest = std::max(longest, trace.block_events.size());
      for (const BlockEvent& event : trace.block_events) {
        states.push_back(states.back());
        ASSERT_TRUE(states.back().apply(event));
      }
      ASSERT_EQ(states.back().difference(KvState::from(traffic.core().snapshot())), std::nullopt);
      ASSERT_EQ(history.next_mark(), event_mark);
      const std::uint64_t oldest = history.oldest_mark();
      ASSERT_LE(event_mark - oldest, capacity + longest - 1);
      ASSERT_TRUE(oldest == 0 || event_mark - oldest >= capacity);
      for (int tries = 0; tries < 20; ++tries) {
        const std::uint64_t mark = traffic.below(static_cast<std::uint32_t>(event_mark) + 1);
        const auto state = history.state_at(mark);
        ASSERT_EQ(state.has_value(), mark >= oldest);
        ++(state.has_value() ? num_marks : num_too_old);
        if (!state.has_value()) continue;
        ASSERT_EQ(state->difference(states[mark]), std::nullopt) << "mark " << mark;
      }
    }
  }
  EXPECT_GT(num_marks, 1'000);
  EXPECT_GT(num_too_old, 1'000);
}

// Two stories are the same story, and the states too.
void expect_equal(const PoolMoment& told, const PoolMoment& expected) {
  ASSERT_EQ(told.mark, expected.mark);
  ASSERT_EQ(told.state.difference(expected.state), std::nullopt) << "mark " << told.mark;
  ASSERT_TRUE(told.story == expected.story) << "mark " << told.mark;
}

// Whoever reads, forwards or back, is told what one who saw every event knows, for one reader has followed.
TEST(EventHistory, AStoryThatSomebodyFollowedIsWholeForEveryReader) {
  const unsigned first_seed = test_seed();
  std::uint64_t num_dropped = 0;
  for (unsigned seed = first_seed; seed < first_seed + 12; ++seed) {
    SCOPED_TRACE("--gtest_random_seed=" + std::to_string(seed));
    EngineTraffic traffic(seed, layers_of(seed));
    EventHistory history(traffic.pool(), 200 + traffic.below(300), 1 + traffic.below(60));
    const KvState nothing(traffic.pool());
    std::vector<PoolMoment> all = {{0, nothing, story_of(nothing)}};  // index = mark
    std::optional<PoolMoment> follower, other;
    std::uint64_t event_mark = 0;
    for (int i = 0; i < 60; ++i) {
      traffic.step();
      const Trace trace = traffic.core().recorder()->read_since(0, event_mark);
      event_mark = trace.next_event_mark;
      history.append(trace.block_events);
      for (const BlockEvent& event : trace.block_events) {
        PoolMoment next = all.back();
        tell(next.story, next.state, event);
        ASSERT_TRUE(next.state.apply(event));
        ++next.mark;
        all.push_back(std::move(next));
      }
      ASSERT_TRUE(history.move_to(follower, event_mark));
      expect_equal(*follower, all.back());
      for (int tries = 0; tries < 5; ++tries) {
        const std::uint64_t oldest = history.oldest_mark();
        const std::uint64_t mark =
            oldest + traffic.below(static_cast<std::uint32_t>(event_mark - oldest) + 1);
        ASSERT_TRUE(history.move_to(other, mark));
        expect_equal(*other, all[mark]);
        if (HasFatalFailure()) return;
      }
    }
    num_dropped += history.oldest_mark();
  }
  EXPECT_GT(num_dropped, 0u);
}

// Chains go by contents: also behind blocks that sequences computed twice, and that took each other's places.
TEST(EventHistory, AStoryTellsTheChainsThatTheCacheHas) {
  const unsigned first_seed = test_seed();
  std::int64_t num_linked = 0, num_replaced = 0, num_elsewhere = 0;
  for (unsigned seed = first_seed; seed < first_seed + 120; ++seed) {
    SCOPED_TRACE("--gtest_random_seed=" + std::to_string(seed));
    EngineTraffic traffic(seed, layers_of(seed));
    PoolMoment moment = {0, KvState(traffic.pool()), story_of(KvState(traffic.pool()))};
    std::uint64_t event_mark = 0;
    for (int i = 0; i < 100; ++i) {
      traffic.step();
      const Trace trace = traffic.core().recorder()->read_since(0, event_mark);
      event_mark = trace.next_event_mark;
      for (const BlockEvent& event : trace.block_events) {
        if (event.kind == Kind::kSeal) {
          num_replaced += is_instead_of(event.aux) ? 1 : 0;
          const std::int32_t before = moment.story.blocks[static_cast<std::size_t>(event.block)].parent;
          num_elsewhere += event.aux > 0 && sealed_after(event.aux) != before ? 1 : 0;
        }
        tell(moment.story, moment.state, event);
        ASSERT_TRUE(moment.state.apply(event));
      }
      const KvSnapshot snapshot = traffic.core().snapshot();
      for (std::size_t block = 0; block < snapshot.blocks.size(); ++block) {
        if (!snapshot.blocks[block].findable) continue;
        ASSERT_EQ(moment.story.blocks[block].parent, snapshot.blocks[block].parent)
            << "block " << block << " in step " << i;
        num_linked += snapshot.blocks[block].parent >= 0 ? 1 : 0;
      }
    }
  }
  EXPECT_GT(num_linked, 1'000);
  EXPECT_GT(num_replaced, 10);
  EXPECT_GT(num_elsewhere, 0);
}

// Nobody followed: the story begins with the oldest state that is kept, and goes on from there for everybody.
TEST(EventHistory, AStoryThatNobodyFollowedBeginsWithTheOldestKeyframe) {
  EngineTraffic traffic(7);
  EventHistory history(traffic.pool(), 150, 20);
  std::uint64_t event_mark = 0;
  std::vector<BlockEvent> events;
  for (int i = 0; i < 60; ++i) {
    traffic.step();
    const Trace trace = traffic.core().recorder()->read_since(0, event_mark);
    event_mark = trace.next_event_mark;
    history.append(trace.block_events);
    events.insert(events.end(), trace.block_events.begin(), trace.block_events.end());
  }
  const std::uint64_t oldest = history.oldest_mark();
  ASSERT_GT(oldest, 0u);
  KvState state = *history.state_at(oldest);
  PoolMoment expected{oldest, state, story_of(state)};
  for (; expected.mark < event_mark; ++expected.mark) {
    const BlockEvent& event = events[expected.mark];
    tell(expected.story, expected.state, event);
    ASSERT_TRUE(expected.state.apply(event));
  }
  std::optional<PoolMoment> late;
  ASSERT_TRUE(history.move_to(late, event_mark));
  expect_equal(*late, expected);
  EXPECT_FALSE(history.move_to(late, oldest - 1)) << "it is gone";
}

TEST(EventHistory, StretchesAreTheEventsThatAreKeptInOrder) {
  EventHistory history({.num_blocks = 4}, 8, 3);
  std::int64_t time_us = 0;
  for (int i = 0; i < 10; ++i) {
    const std::vector<BlockEvent> events = {{.time_us = time_us++}, {.time_us = time_us++}};
    history.append(events);
  }
  for (std::uint64_t first = 0; first <= 21; ++first) {
    for (std::uint64_t end = first; end <= 22; ++end) {
      std::uint64_t next = std::max(first, history.oldest_mark());
      for (const auto& stretch : history.stretches(first, end)) {
        ASSERT_EQ(stretch.first_mark, next);
        for (const BlockEvent& event : stretch.events)
          ASSERT_EQ(event.time_us, static_cast<std::int64_t>(next++));
      }
      ASSERT_EQ(next, std::max(std::min<std::uint64_t>(end, 20), std::max(first, history.oldest_mark())))
          << first << " to " << end;
    }
  }
}

TEST(EventHistory, SaysWhenAMarkIsTooOldOrNotThereYet) {
  EventHistory history({.num_blocks = 4}, 4, 2);
  const std::vector<BlockEvent> events(2);
  for (int i = 0; i < 10; ++i) history.append(events);
  EXPECT_EQ(history.oldest_mark(), 16u);
  const auto old = history.state_at(15);
  ASSERT_FALSE(old.has_value());
  EXPECT_EQ(old.error().message,
            "event 15 is too old: the history starts at event 16; use --record to keep all of it");
  ASSERT_FALSE(history.state_at(21).has_value());
  EXPECT_TRUE(history.state_at(20).has_value());
  std::vector<BlockEvent> read;
  EXPECT_EQ(history.copy_since(3, read).num_lost, 13u);
  EXPECT_EQ(read.size(), 4u);
  read.clear();
  EXPECT_EQ(history.copy_since(17, read).num_lost, 0u);
  EXPECT_EQ(read.size(), 3u);
  read.clear();
  EXPECT_EQ(history.copy_since(100, read).next_mark, 20u);
  EXPECT_TRUE(read.empty());
}

TEST(EventHistory, AContradictionIsToldFromThereOn) {
  EventHistory history({.num_blocks = 4}, 100, 1);
  const std::vector<BlockEvent> good = {{.sequence = 1, .block = 0, .kind = Kind::kAlloc}};
  const std::vector<BlockEvent> bad = {{.sequence = 1, .block = 0, .kind = Kind::kAlloc}};
  const std::vector<BlockEvent> more = {{.sequence = 1, .block = 1, .kind = Kind::kAlloc}};
  history.append(good);
  history.append(bad);
  history.append(more);
  EXPECT_TRUE(history.state_at(1).has_value());
  const auto after = history.state_at(3);
  ASSERT_FALSE(after.has_value());
  EXPECT_NE(after.error().message.find("the block is not free"), std::string::npos);
}

// For ThreadSanitizer, and for torn reads: readers see whole events in order while the writer drops segments.
TEST(EventHistory, IsReadWhileItIsWritten) {
  StepRecorder recorder({.num_blocks = 4}, {.num_steps = 64, .num_events = 256, .num_segment_events = 50});
  std::atomic<bool> done = false;
  std::vector<std::thread> readers;
  for (int reader = 0; reader < 2; ++reader) {
    readers.emplace_back([&] {
      std::uint64_t step_mark = 0, event_mark = 0;
      std::optional<PoolMoment> moment;
      while (!done) {
        const Trace trace = recorder.read_since(step_mark, event_mark);
        ASSERT_LE(trace.block_events.size(), trace.next_event_mark - event_mark);
        const std::uint64_t first = trace.next_event_mark - trace.block_events.size();
        for (std::size_t i = 0; i < trace.block_events.size(); ++i) {
          ASSERT_EQ(trace.block_events[i].time_us, static_cast<std::int64_t>(first + i));
        }
        // What made a step is there when the step is.
        if (!trace.steps.empty()) {
          ASSERT_LE(trace.step_event_marks.back(), trace.next_event_mark);
        }
        step_mark = trace.next_step_mark;
        event_mark = trace.next_event_mark;
        const auto state = recorder.state_at(event_mark);
        ASSERT_TRUE(state.has_value() || event_mark < recorder.oldest_event_mark());
        const auto told = recorder.move_to(moment, event_mark);
        ASSERT_TRUE(told.has_value() || event_mark < recorder.oldest_event_mark());
      }
    });
  }
  std::int64_t time_us = 0;
  for (std::int64_t step = 1; step < 100'000; ++step) {
    std::vector<BlockEvent> events(static_cast<std::size_t>(step % 7));
    for (BlockEvent& event : events) event = {.step = step, .time_us = time_us++, .kind = Kind::kStepBegin};
    recorder.record(StepRecord{.step = step}, events);
  }
  done = true;
  for (std::thread& reader : readers) reader.join();
}

}  // namespace
}  // namespace octavo::metrics
