// Steps and events, folded into the lines of the log and the lanes of the timeline.

#include "app/window/memory/memory_timeline.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

namespace octavo::app {
namespace {

metrics::Trace trace_of(std::vector<BlockEvent> events, std::uint64_t first_mark = 0) {
  metrics::Trace trace;
  trace.next_event_mark = first_mark + events.size();
  trace.block_events = std::move(events);
  return trace;
}

TEST(MemoryTimeline, EqualEventsOfAStepBecomeOneLine) {
  MemoryTimeline timeline;
  std::vector<BlockEvent> events;
  for (int i = 0; i < 61; ++i)
    events.push_back({.step = 3, .sequence = 1, .block = i, .kind = BlockEventKind::kHit});
  events.push_back({.step = 3, .sequence = 1, .block = 2, .kind = BlockEventKind::kFill});
  events.push_back({.step = 4, .sequence = 1, .block = 6, .kind = BlockEventKind::kAlloc});
  timeline.add(trace_of(events, 100));
  const auto& log = timeline.state().log;
  ASSERT_EQ(log.size(), 2u);
  EXPECT_EQ(log[0].count, 61);
  EXPECT_EQ(log[0].mark, 100u);
  EXPECT_EQ(log[0].last_mark, 160u);
  EXPECT_EQ(log[0].last_block, 60);
  EXPECT_EQ(log[1].first_block, 6);
  EXPECT_EQ(log[1].mark, 162u) << "a fill is not told, but it happened";
  EXPECT_EQ(timeline.state().newest_mark, 163u);
}

// Each copy has a target of its own, and a preemption has no block.
TEST(MemoryTimeline, CopiesAndPreemptionsHaveALineEach) {
  for (const BlockEventKind kind : {BlockEventKind::kCopyOnWrite, BlockEventKind::kCopyPartial}) {
    MemoryTimeline timeline;
    timeline.add(trace_of({{.step = 1, .sequence = 1, .block = 2, .aux = 3, .kind = kind},
                           {.step = 1, .sequence = 1, .block = 2, .aux = 4, .kind = kind}}));
    EXPECT_EQ(timeline.state().log.size(), 2u);
  }
  MemoryTimeline timeline;
  const BlockEvent preempt{.step = 1, .sequence = 1, .block = -1, .kind = BlockEventKind::kPreempt};
  timeline.add(trace_of({preempt, preempt}));
  EXPECT_EQ(timeline.state().log.size(), 2u);
}

TEST(MemoryTimeline, SequencesAreCalledWhatTheyWereNamedLast) {
  MemoryTimeline timeline;
  EXPECT_EQ(ui::sequence_name(timeline.state(), 7), "sequence 7");
  timeline.name(7, {.label = "Poems"});
  timeline.name(7, {.label = "Poems · sample 1"});
  EXPECT_EQ(ui::sequence_name(timeline.state(), 7), "Poems · sample 1");
}

TEST(MemoryTimeline, ASequenceRunsWaitsAndRunsAgain) {
  MemoryTimeline timeline;
  const auto at = [](std::int64_t us, BlockEventKind kind, std::int32_t block = 0, std::int32_t aux = 0) {
    return BlockEvent{.time_us = us, .sequence = 1, .block = block, .aux = aux, .kind = kind};
  };
  timeline.add(trace_of({at(10, BlockEventKind::kAlloc), at(20, BlockEventKind::kPreempt, -1, 1),
                         at(20, BlockEventKind::kUnref), at(30, BlockEventKind::kResume, -1),
                         at(30, BlockEventKind::kAlloc), at(50, BlockEventKind::kUnref)}));
  std::vector<SequenceState> states;
  for (const ui::ScheduleSpan& span : timeline.state().spans)
    if (span.end_us != span.begin_us) states.push_back(span.state);
  EXPECT_EQ(states, (std::vector{SequenceState::kRunning, SequenceState::kSwapped, SequenceState::kRunning}));
  EXPECT_EQ(timeline.state().spans.back().end_us, 50);
}

}  // namespace
}  // namespace octavo::app
