// Every slot of the tour's pools: the word that is really there, what the step computed and reused, what was
// copied where.

#include "app/window/memory/slot_map.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "app/window/memory/explain_tour.h"
#include "app/window/memory/history_source.h"
#include "app/window/memory/tour_trial.h"

namespace octavo::app {
namespace {

using ui::SlotUse;

// All chapters of ours, and what a visitor may try.
std::vector<TourChapter> chapters() {
  std::vector<TourChapter> all;
  for (std::size_t i = 0; i + 1 < tour_titles().size(); ++i) all.push_back(play_tour_chapter(i));
  for (const auto answers :
       {ui::TrialAnswers::kOneSample, ui::TrialAnswers::kThreeSamples, ui::TrialAnswers::kTwoBeams}) {
    ui::TourTrial trial = first_trial();
    trial.answers = answers;
    all.push_back(*play_trial(trial));
  }
  return all;
}

// A source and its moments, as the workspace shows them.
class Walk {
 public:
  explicit Walk(const TourChapter& chapter) : source_(tour_source(chapter)) {}

  struct Seen {
    MemoryHistory::Moment moment;
    ui::SlotMap slots;
  };
  Seen at(std::uint64_t mark) {
    auto moment = source_->history.at(mark);
    EXPECT_TRUE(moment.has_value());
    ui::SlotMap slots = slot_map(source_->history, mark, *moment->snapshot, source_->words);
    return {*std::move(moment), std::move(slots)};
  }
  const HistorySource& source() const { return *source_; }

 private:
  std::unique_ptr<HistorySource> source_;
};

std::vector<std::string> words_of_cell(const ui::ShownCell& cell) {
  std::vector<std::string> words;
  for (const ui::ShownSlot& slot : cell.slots) words.push_back(slot.word);
  return words;
}

std::int64_t count_slots(const ui::SlotMap& map, SlotUse use) {
  std::int64_t count = 0;
  for (const ui::ShownCell& cell : map.device)
    count += std::ranges::count(cell.slots, use, &ui::ShownSlot::use);
  return count;
}

// Whoever wrote a block, forked it, copied it or swapped it: along its table every sequence reads its own
// words, in order.
TEST(SlotMap, ASequenceReadsItsOwnWordsAlongItsTable) {
  std::int64_t num_shared = 0, num_swapped = 0;
  for (const TourChapter& chapter : chapters()) {
    SCOPED_TRACE(chapter.title);
    Walk walk(chapter);
    for (const TourStop& stop : chapter.stops) {
      const Walk::Seen seen = walk.at(stop.mark);
      for (const SequenceSnapshot& sequence : seen.moment.snapshot->sequences) {
        const bool is_swapped = sequence.state == SequenceState::kSwapped;
        std::vector<std::string> read;
        for (const BlockId block : sequence.block_table) {
          const auto& cells = is_swapped ? seen.slots.host : seen.slots.device;
          const ui::ShownCell& cell = cells.at(index_of(block));
          for (const std::string& word : words_of_cell(cell)) read.push_back(word);
          num_shared += cell.owners.size() > 1 ? 1 : 0;
        }
        num_swapped += is_swapped ? 1 : 0;
        const std::vector<std::string>& said = chapter.words.at(sequence.sequence_id.value);
        ASSERT_EQ(static_cast<std::int32_t>(read.size()), sequence.num_computed_tokens);
        ASSERT_LE(read.size(), said.size());
        EXPECT_TRUE(std::equal(read.begin(), read.end(), said.begin())) << sequence.sequence_id.value;
      }
    }
  }
  EXPECT_GT(num_shared, 20);
  EXPECT_GT(num_swapped, 0);
}

TEST(SlotMap, FilledSlotsReferencesAndOwnersAreThoseOfThePool) {
  for (const TourChapter& chapter : chapters()) {
    SCOPED_TRACE(chapter.title);
    Walk walk(chapter);
    const std::uint64_t end = walk.source().history.newest_mark();
    for (std::uint64_t mark = 0; mark <= end; ++mark) {
      const Walk::Seen seen = walk.at(mark);
      for (std::size_t i = 0; i < seen.slots.device.size(); ++i) {
        const ui::ShownCell& cell = seen.slots.device[i];
        const BlockSnapshot& block = seen.moment.snapshot->blocks[i];
        ASSERT_EQ(cell.state, block.state) << "block " << i << " at " << mark;
        ASSERT_EQ(static_cast<std::int32_t>(cell.slots.size()), block.filled)
            << "block " << i << " at " << mark;
        ASSERT_LE(static_cast<std::int32_t>(cell.owners.size()), cell.ref_count);
      }
      for (std::size_t i = 0; i < seen.slots.host.size(); ++i)
        ASSERT_EQ(static_cast<std::int32_t>(seen.slots.host[i].slots.size()), seen.moment.host[i].num_filled);
    }
  }
}

// By hand: in the tour nobody asks for a text that another one left in the middle of a block.
TEST(SlotMap, AMatchingPartOfABlockIsCopiedAndCountsAsReused) {
  using Kind = BlockEventKind;
  const std::vector<BlockEvent> first = {
      {.step = 1, .kind = Kind::kStepBegin},
      {.step = 1, .sequence = 1, .block = 0, .kind = Kind::kAlloc},
      {.step = 1, .sequence = 1, .block = 0, .aux = 4, .kind = Kind::kFill},
      {.step = 1, .aux = 1, .kind = Kind::kStepEnd},
      {.step = 1, .sequence = 1, .block = 0, .kind = Kind::kUnref}};
  const std::vector<BlockEvent> second = {
      {.step = 2, .kind = Kind::kStepBegin},
      {.step = 2, .block = 0, .aux = 1, .kind = Kind::kPin},
      {.step = 2, .sequence = 2, .block = 1, .kind = Kind::kAlloc},
      {.step = 2, .sequence = 2, .block = 0, .aux = 1, .kind = Kind::kCopyPartial},
      {.step = 2, .sequence = 2, .block = 1, .aux = 2, .kind = Kind::kFill},
      {.step = 2, .sequence = 2, .block = 1, .aux = 3, .kind = Kind::kFill},
      {.step = 2, .aux = 2, .kind = Kind::kStepEnd}};
  auto recorder =
      std::make_shared<metrics::StepRecorder>(metrics::PoolShape{.block_size = 4, .num_blocks = 2});
  recorder->record(StepRecord{.step = 1}, first);
  recorder->record(StepRecord{.step = 2}, second);
  MemoryHistory history(recorder, {.bytes_per_block = 64});
  history.follow_to(first.size() + second.size());
  const auto moment = history.at(history.newest_mark());
  ASSERT_TRUE(moment.has_value()) << moment.error().message;
  const WordsOfSequences words = {{1, {"a", "b", "c", "d"}}, {2, {"a", "b", "x"}}};
  const ui::SlotMap slots = slot_map(history, history.newest_mark(), *moment->snapshot, words);
  EXPECT_EQ(slots.arrows, (std::vector<ui::BlockArrow>{{ui::CopyKind::kCopy, 0, 1}}));
  EXPECT_EQ(words_of_cell(slots.device[1]), (std::vector<std::string>{"a", "b", "x"}));
  EXPECT_EQ(slot_figures(slots), "This step: computed 1 word, reused 2 · 5 words computed so far");
  EXPECT_EQ(slots.device[1].slots[1].use, SlotUse::kReused);
  EXPECT_EQ(slots.device[1].slots[2].use, SlotUse::kComputed);
}

// The engine's own record of the step says the same.
TEST(SlotMap, WhatAStepComputedIsWhatItsRecordSays) {
  for (const TourChapter& chapter : chapters()) {
    SCOPED_TRACE(chapter.title);
    Walk walk(chapter);
    const metrics::Trace trace = chapter.recorder->read_since(0, 0);
    const bool has_beams = std::ranges::any_of(
        trace.block_events, [](const BlockEvent& event) { return event.kind == BlockEventKind::kPrune; });
    std::int64_t num_so_far = 0;
    std::size_t next = 0;
    for (std::size_t mark = 1; mark <= trace.block_events.size(); ++mark) {
      if (trace.block_events[mark - 1].kind != BlockEventKind::kStepEnd) continue;
      ASSERT_LT(next, trace.steps.size());
      const StepRecord& record = trace.steps[next++];
      ASSERT_EQ(record.step, trace.block_events[mark - 1].step);
      const ui::SlotMap slots = walk.at(mark).slots;
      const std::int32_t num_computed = record.num_prefill_tokens + record.num_decode_tokens;
      EXPECT_EQ(slots.num_computed, num_computed) << "step " << record.step;
      num_so_far += num_computed;
      EXPECT_EQ(slots.num_computed_so_far, num_so_far);
      const std::int64_t num_marked = count_slots(slots, SlotUse::kComputed);
      const std::int64_t num_read = count_slots(slots, SlotUse::kReused);
      if (has_beams) {  // what a pruned beam computed and read is gone
        EXPECT_LE(num_marked, slots.num_computed);
        EXPECT_LE(num_read, slots.num_reused);
      } else {
        EXPECT_EQ(num_marked, slots.num_computed);
        EXPECT_EQ(num_read, slots.num_reused);
      }
      EXPECT_EQ(std::ranges::count(slots.arrows, ui::CopyKind::kCopy, &ui::BlockArrow::kind),
                record.num_block_copies);
      EXPECT_EQ(std::ranges::count(slots.arrows, ui::CopyKind::kSwapOut, &ui::BlockArrow::kind),
                record.num_swapped_out);
      EXPECT_EQ(std::ranges::count(slots.arrows, ui::CopyKind::kSwapIn, &ui::BlockArrow::kind),
                record.num_swapped_in);
    }
    EXPECT_EQ(next, trace.steps.size());
  }
}

TEST(SlotMap, WithoutACacheNothingIsReusedAndWithOneAllThatWasComputedIs) {
  const TourChapter without = play_tour_chapter(0), with = play_tour_chapter(1);
  Walk walk_without(without), walk_with(with);
  for (const TourStop& stop : without.stops) EXPECT_EQ(walk_without.at(stop.mark).slots.num_reused, 0);
  EXPECT_EQ(slot_figures(walk_without.at(without.stops[2].mark).slots),
            "This step: computed 7 words, reused 0 · 13 words computed so far");
  EXPECT_EQ(slot_figures(walk_with.at(with.stops[2].mark).slots),
            "This step: computed 1 word, reused 6 · 7 words computed so far");
  EXPECT_EQ(slot_figures(walk_with.at(with.stops[0].mark).slots), "Nothing is computed yet.");
}

TEST(SlotMap, AnArrowJoinsBlocksWithTheSameWords) {
  const TourChapter chapter = play_tour_chapter(4);
  Walk walk(chapter);
  std::int64_t num_arrows = 0;
  for (const TourStop& stop : chapter.stops) {
    const ui::SlotMap slots = walk.at(stop.mark).slots;
    for (const ui::BlockArrow& arrow : slots.arrows) {
      ++num_arrows;
      const auto from = words_of_cell(slots.device.at(static_cast<std::size_t>(arrow.from)));
      const auto to = words_of_cell(slots.device.at(static_cast<std::size_t>(arrow.to)));
      ASSERT_GE(from.size(), 2u);
      EXPECT_TRUE(std::equal(from.begin(), from.begin() + 2, to.begin())) << "the prompt's last two words";
    }
  }
  EXPECT_EQ(num_arrows, 2);
}

TEST(SlotMap, NoTwoSequencesAtOneMomentHaveOneColour) {
  for (const TourChapter& chapter : chapters()) {
    SCOPED_TRACE(chapter.title);
    std::size_t most = 0;
    for (const KvSnapshot& snapshot : chapter.snapshots) {
      std::set<std::uint32_t> colours;
      for (const SequenceSnapshot& sequence : snapshot.sequences)
        colours.insert(chapter.colours.at(sequence.sequence_id.value));
      EXPECT_EQ(colours.size(), snapshot.sequences.size());
      most = std::max(most, colours.size());
    }
    if (chapter.title == "Beams of 4") {
      EXPECT_EQ(most, 4u);
    }
  }
}

}  // namespace
}  // namespace octavo::app
