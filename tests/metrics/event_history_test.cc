#include "engine/metrics/event_history.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <string>
#include <thread>
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
    EngineTraffic traffic(seed);
    const std::size_t capacity = 1 + traffic.below(400), segment_events = 1 + traffic.below(100);
    EventHistory history(traffic.pool(), capacity, segment_events);
    std::vector<KvState> states = {KvState(traffic.pool())};  // index = mark
    std::uint64_t event_mark = 0;
    std::size_t longest = segment_events;
    for (int i = 0; i < 80; ++i) {
      traffic.step();
      const Trace trace = traffic.core().recorder().read_since(0, event_mark);
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
