// Beams as the scheduler sees them: seats that fork, are pruned, and are preempted like any group.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "tests/scheduler/harness.h"
#include "tests/scheduler/requests.h"

namespace octavo::scheduler {
namespace {

// A scheduler with one beam request of twenty tokens, and the caller's side by hand.
class Beams : public ::testing::Test {
 protected:
  void add(std::int32_t width) {
    NewRequest request{.request_id = kFirst, .prompt_token_ids = random_like_tokens(1, 20), .sampling = {}};
    request.sampling.beam_width = width;
    request.num_beam_candidates = 2 * width;
    ASSERT_TRUE(scheduler_.add(std::move(request)));
  }

  SchedulerOutput step() {
    const SchedulerOutput step = scheduler_.schedule();
    scheduler_.commit(step, {});
    EXPECT_EQ(scheduler_.broken_invariant(), std::nullopt);
    return step;
  }

  std::vector<SequenceId> advance(std::vector<BeamContinuation> continuations) {
    const auto seats = scheduler_.advance_beams(kFirst, continuations);
    EXPECT_EQ(scheduler_.broken_invariant(), std::nullopt);
    return seats;
  }

  Tokens output_of(SequenceId seat) const {
    const auto views = scheduler_.sequences_of(kFirst);
    const auto view = std::ranges::find(views, seat, &Scheduler::SequenceView::sequence_id);
    return {view->token_ids.begin() + view->num_prompt_tokens, view->token_ids.end()};
  }

  std::map<BlockEventKind, int> count_events() {
    std::map<BlockEventKind, int> counts;
    for (const BlockEvent& event : scheduler_.take_events()) ++counts[event.kind];
    return counts;
  }

  Scheduler scheduler_{options_with(32)};
  const SequenceId a_{1}, b_{2}, c_{3};
};

TEST_F(Beams, AskForTheirContinuationsAndDrawNoToken) {
  add(3);
  const auto step = this->step();
  ASSERT_EQ(step.sequences.size(), 1u) << "the prompt is computed once";
  ASSERT_EQ(step.sequences[0].samples.size(), 1u);
  EXPECT_EQ(step.sequences[0].samples[0].num_candidates, 6);
}

TEST_F(Beams, GoOnInTheirParentsSeatOrForkIntoAFreeOne) {
  add(3);
  step();
  EXPECT_EQ(advance({{a_, 5}, {a_, 6}, {a_, 7}}), (std::vector{a_, b_, c_}));
  EXPECT_EQ(scheduler_.figures().used_blocks, 2);
  EXPECT_EQ(scheduler_.figures().logical_blocks, 6);
  EXPECT_EQ(output_of(b_), Tokens{6});
  EXPECT_EQ(count_events()[BlockEventKind::kFork], 2);
  const auto step = this->step();
  EXPECT_EQ(step.sequences.size(), 3u);
  EXPECT_EQ(step.block_copies.size(), 2u) << "the last writer writes in place";
  EXPECT_EQ(step.num_decode_tokens, 3);
}

TEST_F(Beams, ThatDoNotGoOnArePrunedAndTheirSeatsUsedAgain) {
  add(3);
  step();
  advance({{a_, 5}, {a_, 6}, {a_, 7}});
  step();
  EXPECT_EQ(advance({{b_, 1}, {b_, 2}, {c_, 3}}), (std::vector{b_, a_, c_}));
  EXPECT_EQ(output_of(a_), (Tokens{6, 2})) << "the seat carries another beam now";
  EXPECT_EQ(output_of(b_), (Tokens{6, 1}));
  EXPECT_EQ(output_of(c_), (Tokens{7, 3}));
  EXPECT_EQ(scheduler_.figures().used_blocks, 3) << "the pruned one's own block is gone";
  EXPECT_EQ(count_events()[BlockEventKind::kPrune], 1);
}

TEST_F(Beams, MayBecomeFewerAndMoreAgain) {
  add(3);
  step();
  advance({{a_, 5}, {a_, 6}, {a_, 7}});
  step();
  EXPECT_EQ(advance({{c_, 1}}), std::vector{c_});
  EXPECT_EQ(scheduler_.figures().logical_blocks, 2);
  EXPECT_EQ(step().sequences.size(), 1u);
  EXPECT_EQ(advance({{c_, 1}, {c_, 2}, {c_, 3}}), (std::vector{c_, a_, b_}));
  EXPECT_EQ(output_of(b_), (Tokens{7, 1, 3}));
}

TEST_F(Beams, AreForgottenWithTheirRequest) {
  add(3);
  step();
  advance({{a_, 5}, {a_, 6}});
  EXPECT_TRUE(scheduler_.abort(kFirst));
  EXPECT_FALSE(scheduler_.has_work());
  EXPECT_EQ(scheduler_.figures().used_blocks, 0);
}

TEST_F(Beams, EndOneByOneToo) {
  add(2);
  step();
  advance({{a_, 5}, {a_, 6}});
  scheduler_.finish(a_);
  EXPECT_TRUE(scheduler_.has_work());
  scheduler_.finish(b_);
  EXPECT_FALSE(scheduler_.has_work());
}

TEST_F(Beams, StopAtWhatNoCallerMayDo) {
  add(2);
  const auto step = scheduler_.schedule();
  const BeamContinuation one{a_, 5};
  EXPECT_DEATH(scheduler_.advance_beams(kFirst, {&one, 1}), "is not committed");
  scheduler_.commit(step, {});
  EXPECT_DEATH(scheduler_.advance_beams(kFirst, {}), "0 beams for 2 seats");
  EXPECT_DEATH(scheduler_.advance_beams(kSecond, {&one, 1}), "request 2 is not known");
}

TEST_F(Beams, AreRefusedByTheNumberOfSeatsThePoolAndAManagerThatCannotShare) {
  NewRequest request{.request_id = kFirst, .prompt_token_ids = random_like_tokens(1, 20), .sampling = {}};
  request.sampling.beam_width = 65;
  const auto too_wide = scheduler_.add(request);
  ASSERT_FALSE(too_wide);
  EXPECT_EQ(too_wide.error().subject, "beam_width");
  EXPECT_NE(too_wide.error().message.find("beam_width is 65"), std::string::npos);
  request.sampling.beam_width = 32;
  const auto too_big = scheduler_.add(request);
  ASSERT_FALSE(too_big) << "one shared block and thirty-two of their own";
  EXPECT_NE(too_big.error().message.find("at least 33 KV blocks"), std::string::npos);
  request.sampling.beam_width = 2;
  SchedulerOptions contiguous = options_with(1024);
  contiguous.memory_manager = MemoryManager::kOrcaMax;
  EXPECT_FALSE(Scheduler(contiguous).add(request));
}

// ---- whole searches, through the harness: each ends with what the model says alone

TEST(BeamSearches, RunBesideSamplesOnOnePool) {
  Harness harness(options_with(128));
  harness.submit(beams_of(1, 40, 30, 4));
  harness.submit(request_of(2, 50, 30, /*n=*/3));
  harness.submit(beams_of(3, 7, 30, 6));
  harness.run_until_idle();
  EXPECT_TRUE(harness.preemptions.empty());
  EXPECT_TRUE(harness.outputs.contains({RequestId{3}, 0}));
  EXPECT_EQ(harness.num_prefill_tokens, 97);
}

TEST(BeamSearches, AnIdleSeatCountsAgainstTheMostSequences) {
  SchedulerOptions options = options_with(64);
  options.max_num_seqs = 5;
  Harness harness(options);
  harness.submit(beams_of(1, 20, 10, 4));
  harness.submit(request_of(2, 20, 10, /*n=*/2));
  harness.step();
  EXPECT_EQ(harness.scheduler.num_running(), 1) << "the next step may fill all seats";
  harness.run_until_idle();
}

TEST(BeamSearches, OfABudgetBelowTheirWidthTakeTurns) {
  for (const std::int32_t budget : {1, 2, 3}) {
    Harness harness(options_with(64, budget));
    harness.submit(beams_of(1, 20, 12, 4));
    harness.submit(request_of(2, 20, 12));
    harness.run_until_idle();
    EXPECT_TRUE(harness.outputs.contains({kFirst, 0}));
    EXPECT_TRUE(harness.outputs.contains({kSecond, 0}));
  }
}

struct PreemptedSearch {
  PreemptionPolicy mode;
  bool caches;
  std::int32_t budget;
};

class PreemptedBeams : public ::testing::TestWithParam<PreemptedSearch> {
 protected:
  SchedulerOptions options() const {
    SchedulerOptions options = options_with(20, GetParam().budget);
    options.block_size = 4;  // many forks, deep trees
    options.num_host_blocks = 20;
    options.preemption_mode = GetParam().mode;
    options.enable_prefix_caching = GetParam().caches;
    return options;
  }
};

TEST_P(PreemptedBeams, GoOnAsIfNothingHadBeen) {
  Harness harness(options());
  harness.submit(request_of(1, 20, 40));
  harness.submit(beams_of(2, 10, 24, 4));
  const auto step = harness.run_until_preempted(kSecond);
  EXPECT_EQ(step.preemptions[0].is_swap, GetParam().mode == PreemptionPolicy::kSwap);
  const auto num_generated = [&] {
    std::int32_t longest = 0;
    for (const auto& view : harness.scheduler.sequences_of(kSecond)) {
      longest = std::max(longest, static_cast<std::int32_t>(view.token_ids.size()) - view.num_prompt_tokens);
    }
    return longest;
  };
  EXPECT_GT(num_generated(), 0) << "in the middle of the search";
  harness.run_until_idle();
  EXPECT_TRUE(harness.outputs.contains({kSecond, 0})) << "compared with the search alone when it ended";
}

TEST_P(PreemptedBeams, RebuildTheTreeOfSharedBlocks) {
  Harness harness(options());
  const RequestId older = harness.submit(request_of(1, 20, 40));
  harness.submit(beams_of(2, 10, 24, 4));
  std::int32_t num_distinct = 0, num_logical = 0;
  SchedulerOutput step;
  while (step.preemptions.empty() &&
         harness.scheduler.has_work()) {  // full blocks of the group before it is preempted
    std::set<BlockId> distinct;
    num_logical = 0;
    for (const SequenceSnapshot& sequence : harness.scheduler.snapshot().sequences) {
      if (sequence.request_id != kSecond) continue;
      for (std::int32_t i = 0; i < sequence.num_computed_tokens / 4; ++i) {
        distinct.insert(sequence.block_table[static_cast<std::size_t>(i)]);
        ++num_logical;
      }
    }
    num_distinct = static_cast<std::int32_t>(distinct.size());
    step = harness.step();
  }
  ASSERT_FALSE(step.preemptions.empty());
  ASSERT_LT(num_distinct, num_logical) << "there is something to share";
  harness.abort(older);
  const auto is_rebuilt = [&] {
    return std::ranges::all_of(harness.scheduler.snapshot().sequences, [](const SequenceSnapshot& sequence) {
      return sequence.state == SequenceState::kRunning &&
             sequence.num_tokens - sequence.num_computed_tokens <= 1;
    });
  };
  do {
    step = harness.step();
  } while (!is_rebuilt() && harness.scheduler.has_work());
  // What was computed before it decoded again: the full blocks, each once, and beside them a started one
  // each.
  const KvFigures figures = harness.scheduler.figures();
  EXPECT_LT(figures.used_blocks, figures.logical_blocks);
  EXPECT_GE(figures.logical_blocks - figures.used_blocks, num_logical - num_distinct)
      << "as much is shared as before";
  harness.run_until_idle();
}

TEST_P(PreemptedBeams, CanBeCancelledWhileTheyAreAway) {
  Harness harness(options());
  const RequestId older = harness.submit(request_of(1, 20, 40));
  harness.submit(beams_of(2, 10, 24, 4));
  harness.run_until_preempted(kSecond);
  EXPECT_TRUE(harness.abort(kSecond));
  harness.abort(older);
  EXPECT_EQ(harness.num_used_blocks(), 0);
  EXPECT_EQ(harness.scheduler.figures().host_used_blocks, 0);
}

INSTANTIATE_TEST_SUITE_P(All, PreemptedBeams,
                         ::testing::Values(PreemptedSearch{PreemptionPolicy::kSwap, true, 64},
                                           PreemptedSearch{PreemptionPolicy::kSwap, false, 64},
                                           PreemptedSearch{PreemptionPolicy::kRecompute, true, 64},
                                           PreemptedSearch{PreemptionPolicy::kRecompute, false, 64},
                                           PreemptedSearch{PreemptionPolicy::kRecompute, false, 6}),
                         [](const auto& info) {
                           return std::string(info.param.mode == PreemptionPolicy::kSwap ? "Swap"
                                                                                         : "Recompute") +
                                  (info.param.caches ? "Cached" : "Uncached") +
                                  std::to_string(info.param.budget);
                         });

TEST(BeamSearches, OutOfMemoryListsTheBeamsUnderWay) {
  Harness harness(options_with(8));
  harness.submit(beams_of(1, 40, 100, 4));
  SchedulerOutput step;
  while (step.out_of_memory.empty() && harness.scheduler.has_work()) step = harness.step();
  EXPECT_FALSE(step.out_of_memory.empty());
  EXPECT_LE(step.out_of_memory.size(), 4u);
  EXPECT_FALSE(harness.scheduler.has_work());
}

TEST(BeamSearches, AFailedStepEndsThem) {
  Harness harness(options_with(64));
  harness.submit(beams_of(1, 40, 20, 4));
  for (int i = 0; i < 5; ++i) harness.step();
  harness.step(/*device_fails=*/true);
  EXPECT_EQ(harness.failed, std::vector{kFirst});
  EXPECT_EQ(harness.num_used_blocks(), 0);
}

}  // namespace
}  // namespace octavo::scheduler
