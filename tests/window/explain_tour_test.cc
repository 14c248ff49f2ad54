// The chapters of the tour: each shows what it says, on the real engine core.

#include "app/window/memory/explain_tour.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "app/window/memory/memory_history.h"

namespace octavo::app {
namespace {

constexpr std::size_t kNumChapters = 12;  // that are ours; in the last one the visitor types

std::int64_t count(const TourChapter& chapter, BlockEventKind kind) {
  return std::ranges::count(chapter.recorder->read_since(0, 0).block_events, kind, &BlockEvent::kind);
}

TourChapter play(const std::string& title) {
  const auto titles = tour_titles();
  const auto found = std::find(titles.begin(), titles.end(), title);
  EXPECT_NE(found, titles.end()) << title;
  return play_tour_chapter(static_cast<std::size_t>(found - titles.begin()));
}

std::int64_t prefilled(const TourChapter& chapter) {
  std::int64_t count = 0;
  const metrics::Trace trace = chapter.recorder->read_since(0, 0);
  for (const StepRecord& step : trace.steps) count += step.num_prefill_tokens;
  return count;
}

TEST(ExplainTour, EveryChapterCanBeWalkedStepByStep) {
  ASSERT_EQ(tour_titles().size(), 13u);
  for (std::size_t i = 0; i < kNumChapters; ++i) {
    const TourChapter chapter = play_tour_chapter(i);
    SCOPED_TRACE(chapter.title);
    ASSERT_GE(chapter.stops.size(), 4u);
    const metrics::Trace trace = chapter.recorder->read_since(0, 0);
    MemoryHistory history(chapter.recorder,
                          {chapter.bytes_per_block, chapter.bytes_per_state, chapter.bytes_per_window_block});
    history.follow_to(trace.next_event_mark);
    std::uint64_t mark = 0;
    for (const TourStop& stop : chapter.stops) {
      EXPECT_GE(stop.mark, mark);
      mark = stop.mark;
      EXPECT_FALSE(stop.sentence.empty());
      const auto moment = history.at(stop.mark);
      ASSERT_TRUE(moment) << moment.error().message;
    }
    for (const BlockEvent& event : trace.block_events) {
      if (event.sequence != 0) {
        EXPECT_TRUE(chapter.labels.contains(event.sequence)) << event.sequence;
      }
    }
  }
}

TEST(ExplainTour, WithoutACacheEveryWordCostsTheWholeText) {
  EXPECT_EQ(prefilled(play("Without a KV cache")), 6 + 7 + 8 + 9 + 10 + 11);
  EXPECT_EQ(prefilled(play("With a KV cache")), 6);
}

TEST(ExplainTour, SamplesShareTheirPromptAndCopyOneBlockEachButTheLast) {
  const TourChapter chapter = play("Samples share their prompt");
  EXPECT_EQ(count(chapter, BlockEventKind::kCopyOnWrite), 2);
  EXPECT_EQ(prefilled(chapter), 6);
}

TEST(ExplainTour, BeamsForkAndDie) {
  for (const char* title : {"Beams of 2", "Beams of 4"}) {
    const TourChapter chapter = play(title);
    EXPECT_GT(count(chapter, BlockEventKind::kFork), 0) << title;
    EXPECT_GT(count(chapter, BlockEventKind::kPrune), 0) << title;
    EXPECT_GT(count(chapter, BlockEventKind::kCopyOnWrite), 0) << title;
  }
}

TEST(ExplainTour, SecondRequestFindsTheTaskPrefix) {
  const TourChapter chapter = play("A shared task prefix");
  EXPECT_GE(count(chapter, BlockEventKind::kHit), 1);
  EXPECT_EQ(count(chapter, BlockEventKind::kCopyPartial), 1) << "the next turn, inside a block";
}

TEST(ExplainTour, SwappedBlocksComeBackAndRecomputedOnesDoNot) {
  const TourChapter swap = play("Preemption by swap");
  EXPECT_GT(count(swap, BlockEventKind::kSwapOut), 0);
  EXPECT_EQ(count(swap, BlockEventKind::kSwapOut), count(swap, BlockEventKind::kSwapIn));
  EXPECT_EQ(prefilled(swap), 6 + 7);
  const TourChapter recompute = play("Preemption by recompute");
  EXPECT_GT(count(recompute, BlockEventKind::kPreempt), 0);
  EXPECT_EQ(count(recompute, BlockEventKind::kSwapOut), 0);
  EXPECT_GT(prefilled(recompute), 6 + 7);
}

// A turn goes on from the state that the one before it left; a chat that parts earlier finds blocks, and no
// checkpoint.
TEST(ExplainTour, ATurnResumesAtACheckpointAndAnotherChatFindsNone) {
  const TourChapter chapter = play("States and checkpoints");
  EXPECT_EQ(count(chapter, BlockEventKind::kStateResume), 1);
  EXPECT_EQ(count(chapter, BlockEventKind::kStateMiss), 1);
  EXPECT_EQ(count(chapter, BlockEventKind::kStateCopy), 1) << "the checkpoint stays";
  EXPECT_GE(count(chapter, BlockEventKind::kStateKeep), 1);
  std::string told;
  for (const TourStop& stop : chapter.stops) told += stop.sentence + "\n";
  EXPECT_NE(told.find("Turn 1 leaves state 0 as a checkpoint behind word 22."), std::string::npos) << told;
  EXPECT_NE(told.find("Turn 2 finds the checkpoint behind word 22"), std::string::npos) << told;
  EXPECT_NE(told.find("The blocks of Another chat hold 12 words"), std::string::npos) << told;
}

// What a window has passed goes first; what stands at the end of a system prompt is still there when another
// chat begins with it. Who parts from a text in its middle finds blocks, and no window.
TEST(ExplainTour, WindowsPassAndChatsResumeWhereTheirPartsWereKept) {
  const TourChapter chapter = play("Windows");
  EXPECT_GE(count(chapter, BlockEventKind::kLeaveWindow), 6);
  EXPECT_EQ(count(chapter, BlockEventKind::kWindowSkip), 2) << "the next turn, and another chat";
  EXPECT_EQ(count(chapter, BlockEventKind::kWindowMiss), 1);
  std::string told;
  for (const TourStop& stop : chapter.stops) told += stop.sentence + "\n";
  for (const char* sentence :
       {"The window of Turn 1 has passed block 0.",
        "Turn 2 resumes there. It never needs those of its first 3 blocks.",
        "Another chat resumes there. It never needs those of its first block.",
        "No place in the window pool is free: the part of block 0, which nobody reads, gives up its own.",
        "4 more words of Else stand in a block, but their window part is gone: they are recomputed."})
    EXPECT_NE(told.find(sentence), std::string::npos) << sentence << "\n" << told;
  for (const KvSnapshot& snapshot : chapter.snapshots)
    EXPECT_LE(snapshot.figures.used_window_blocks, 5) << "a window, a step and what it ends in";
}

}  // namespace
}  // namespace octavo::app
