// Steps and events, folded into the lines of the log and the lanes of the timeline.

#include "app/window/memory/memory_timeline.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

namespace octavo::app {
namespace {

const MemoryTimeline::MomentAt kNoMoments = [](std::uint64_t) { return nullptr; };

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
  timeline.add(trace_of(events, 100), kNoMoments);
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
                           {.step = 1, .sequence = 1, .block = 2, .aux = 4, .kind = kind}}),
                 kNoMoments);
    EXPECT_EQ(timeline.state().log.size(), 2u);
  }
  MemoryTimeline timeline;
  const BlockEvent preempt{.step = 1, .sequence = 1, .block = -1, .kind = BlockEventKind::kPreempt};
  timeline.add(trace_of({preempt, preempt}), kNoMoments);
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
                         at(30, BlockEventKind::kAlloc), at(50, BlockEventKind::kUnref)}),
               kNoMoments);
  std::vector<SequenceState> states;
  for (const ui::ScheduleSpan& span : timeline.state().spans)
    if (span.end_us != span.begin_us) states.push_back(span.state);
  EXPECT_EQ(states, (std::vector{SequenceState::kRunning, SequenceState::kSwapped, SequenceState::kRunning}));
  EXPECT_EQ(timeline.state().spans.back().end_us, 50);
}

// ---- stories

std::vector<ui::Story> told(const std::vector<BlockEvent>& events) {
  MemoryTimeline timeline;
  timeline.add(trace_of(events), kNoMoments);
  return {timeline.state().stories.begin(), timeline.state().stories.end()};
}

TEST(MemoryStories, AnAnswerThatGrowsIsOneStory) {
  std::vector<BlockEvent> events;
  for (int i = 0; i < 40; ++i)
    events.push_back({.step = 16 * i, .sequence = 1, .block = i, .kind = BlockEventKind::kAlloc});
  const auto stories = told(events);
  ASSERT_EQ(stories.size(), 1u);
  EXPECT_EQ(stories[0].kind, ui::StoryKind::kComputes);
  EXPECT_EQ(stories[0].count, 40);
  EXPECT_EQ(stories[0].last_mark, 39u);
}

TEST(MemoryStories, ReuseTellsWhoComputedTheBlocks) {
  std::vector<BlockEvent> events;
  for (int i = 0; i < 3; ++i) {
    events.push_back({.step = 1, .sequence = 1, .block = i, .kind = BlockEventKind::kAlloc});
    events.push_back({.step = 1, .sequence = 1, .block = i, .kind = BlockEventKind::kSeal});
  }
  for (int i = 0; i < 3; ++i)
    events.push_back({.step = 2, .sequence = 1, .block = i, .kind = BlockEventKind::kUnref});
  for (int i = 0; i < 2; ++i)
    events.push_back({.step = 3, .sequence = 2, .block = i, .aux = 1, .kind = BlockEventKind::kHit});
  events.push_back({.step = 3, .sequence = 2, .block = 2, .kind = BlockEventKind::kEvict});
  const auto stories = told(events);
  ASSERT_EQ(stories.size(), 4u);
  EXPECT_EQ(stories[1].kind, ui::StoryKind::kEnded);
  EXPECT_EQ(stories[1].count, 3);
  EXPECT_EQ(stories[1].kept, 3);
  EXPECT_EQ(stories[2].kind, ui::StoryKind::kReused);
  EXPECT_EQ(stories[2].count, 2);
  EXPECT_EQ(stories[2].other, 1u);
  EXPECT_EQ(stories[3].kind, ui::StoryKind::kMadeRoom);
  EXPECT_EQ(stories[3].other, 1u);
}

TEST(MemoryStories, WhatIsSwappedOutHasNotEnded) {
  const auto stories =
      told({{.step = 1, .sequence = 1, .block = 0, .kind = BlockEventKind::kAlloc},
            {.step = 2, .sequence = 1, .block = 0, .aux = 3, .kind = BlockEventKind::kSwapOut},
            {.step = 2, .sequence = 1, .block = 0, .kind = BlockEventKind::kUnref},
            {.step = 2, .sequence = 1, .block = 0, .kind = BlockEventKind::kFree},
            {.step = 2, .sequence = 1, .block = -1, .aux = 1, .kind = BlockEventKind::kPreempt}});
  ASSERT_EQ(stories.size(), 2u);
  EXPECT_EQ(stories[1].kind, ui::StoryKind::kSwappedOut);
}

TEST(MemoryTimeline, TheEngineBeforeStaysOnTheSameClockAndOnlyTheLastOne) {
  const auto with_step = [](std::int64_t begin_us) {
    metrics::Trace trace;
    trace.steps.push_back({});
    trace.steps.back().begin_us = begin_us;
    trace.step_event_marks = {0};
    return trace;
  };
  MemoryTimeline first("First"), second("Second"), third("Third");
  first.add(with_step(1'000), kNoMoments);
  second.follow(first.shared());
  second.add(with_step(9'000), kNoMoments);
  third.follow(second.shared());
  ASSERT_NE(second.state().before, nullptr);
  EXPECT_EQ(second.state().before->name, "First");
  EXPECT_EQ(second.state().origin_us, 1'000);
  ASSERT_NE(third.state().before, nullptr);
  EXPECT_EQ(third.state().before->name, "Second");
  EXPECT_EQ(third.state().before->before, nullptr);
  EXPECT_EQ(third.state().origin_us, 1'000);
}

}  // namespace
}  // namespace octavo::app
