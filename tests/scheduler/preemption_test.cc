// What happens when blocks run out: who gives way, how, and how it comes back.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <set>

#include "tests/scheduler/harness.h"
#include "tests/scheduler/requests.h"

namespace octavo::scheduler {
namespace {

SchedulerOptions swapping(std::int32_t num_blocks, std::int32_t num_host_blocks,
                          PreemptionPolicy mode = PreemptionPolicy::kSwap) {
  SchedulerOptions options = options_with(num_blocks);
  options.num_host_blocks = num_host_blocks;
  options.preemption_mode = mode;
  return options;
}

// Two requests of five blocks that want more than the pool has: the second gives way.
void submit_two(Harness& harness) {
  harness.submit(request_of(1, 70, 40));
  harness.submit(request_of(2, 70, 60));
}

SequenceState state_of(const Harness& harness, RequestId request_id) {
  for (const SequenceSnapshot& sequence : harness.scheduler.snapshot().sequences) {
    if (sequence.request_id == request_id) return sequence.state;
  }
  ADD_FAILURE() << "request " << request_id.value << " is not there";
  return SequenceState::kWaiting;
}

// ---- who waits in place

// The pool is full when the second of 13 blocks wants its seventh; the first has nine tokens more to get
// then, or `num_more` beside these.
std::size_t num_preempted_where_one_ends(AdmissionReserve reserve, std::int32_t num_more) {
  SchedulerOptions options = options_with(13);
  options.admission_reserve = reserve;
  Harness harness(options);
  harness.submit(request_of(1, 81, 30 + num_more));
  harness.submit(request_of(2, 76, 40));
  harness.run_until_idle();
  EXPECT_EQ(harness.outputs.size(), 2u);
  return harness.preemptions.size();
}

TEST(Preemption, NobodyGivesWayForABlockThatSomebodyIsAboutToLetGo) {
  EXPECT_EQ(num_preempted_where_one_ends(AdmissionReserve::kLookAhead, 0), 0u);
  EXPECT_EQ(num_preempted_where_one_ends(AdmissionReserve::kLookAhead, 30), 1u) << "that is too far ahead";
  EXPECT_EQ(num_preempted_where_one_ends(AdmissionReserve::kBlockPerSequence, 0), 1u);
}

TEST(Preemption, WhoWaitsForAnEndKeepsWhatItHasAndGoesOnBehindIt) {
  Harness harness(looking_ahead(13));
  harness.submit(request_of(1, 81, 30));
  harness.submit(request_of(2, 76, 40));
  int num_alone = 0;
  while (!harness.outputs.contains({kFirst, 0})) {
    const bool is_alone = requests_in(harness.step()) == Requests{1};
    num_alone += is_alone ? 1 : 0;
    EXPECT_EQ(state_of(harness, kSecond), SequenceState::kRunning);
  }
  EXPECT_EQ(num_alone, 9);
  harness.run_until_idle();
  EXPECT_EQ(harness.num_prefill_tokens, 81 + 76) << "nothing is computed twice";
  EXPECT_EQ((harness.outputs.at({kSecond, 0})),
            Harness::expected_output(harness.request(kSecond), Harness::seed_of(kSecond), 0, 40));
}

TEST(Preemption, TheOldestWaitsForNobody) {
  Harness harness(looking_ahead(13));
  harness.submit(request_of(1, 76, 40));
  harness.submit(request_of(2, 81, 30));
  const auto step = harness.run_until_preempted(kSecond);
  EXPECT_EQ(requests_in(step), Requests{1});
  harness.run_until_idle();
  EXPECT_EQ(harness.outputs.size(), 2u);
}

// ---- swap

TEST(Preemption, BySwapComputesNothingTwice) {
  Harness harness(swapping(12, 12));
  submit_two(harness);
  const auto step = harness.run_until_preempted(kSecond);
  ASSERT_EQ(step.preemptions.size(), 1u);
  EXPECT_TRUE(step.preemptions[0].is_swap);
  EXPECT_EQ(step.preemptions[0].num_tokens_dropped, 0);
  EXPECT_FALSE(step.swap_outs.empty());
  EXPECT_EQ(state_of(harness, kSecond), SequenceState::kSwapped);
  EXPECT_EQ(harness.scheduler.num_swapped_out(), 1);
  EXPECT_EQ(harness.scheduler.figures().host_used_blocks, std::ssize(step.swap_outs));
  harness.run_until_idle();
  EXPECT_EQ(harness.num_prefill_tokens, 140);
  EXPECT_EQ(harness.outputs.size(), 2u);
  EXPECT_EQ(harness.scheduler.totals().preempted_swap, 1);
  EXPECT_EQ(harness.scheduler.totals().preempted_recompute, 0);
  EXPECT_GT(harness.scheduler.totals().swapped_in_blocks, 0);
  EXPECT_EQ(harness.scheduler.figures().host_used_blocks, 0);
}

TEST(Preemption, WhatSurvivedOnTheDeviceIsNotCopiedBack) {
  Harness harness(swapping(12, 12));
  const RequestId older = harness.submit(request_of(1, 70, 40));
  harness.submit(request_of(2, 70, 60));
  const auto num_out = harness.run_until_preempted(kSecond).swap_outs.size();
  harness.abort(older);  // at once: nothing was evicted
  const auto step = harness.step();
  EXPECT_EQ(requests_in(step), Requests{2});
  EXPECT_EQ(step.swap_ins.size(), 1u) << "of " << num_out << ", only the partly filled block";
  harness.run_until_idle();
}

TEST(Preemption, AGroupIsSwappedWholeAndASharedBlockOnce) {
  for (const bool caches : {true, false}) {
    SchedulerOptions options = swapping(22, 22, PreemptionPolicy::kAuto);
    options.enable_prefix_caching = caches;
    Harness harness(options);
    harness.submit(request_of(1, 100, 100));
    harness.submit(request_of(2, 100, 30, /*n=*/3));
    std::set<BlockId> held;
    SchedulerOutput step;
    while (step.preemptions.empty() && harness.scheduler.has_work()) {
      held.clear();
      for (const SequenceSnapshot& sequence : harness.scheduler.snapshot().sequences) {
        if (sequence.request_id == kSecond)
          held.insert(sequence.block_table.begin(), sequence.block_table.end());
      }
      step = harness.step();
    }
    EXPECT_TRUE(step.preemptions[0].is_swap) << "auto swaps what has several sequences";
    EXPECT_EQ(step.swap_outs.size(), held.size());
    EXPECT_EQ(harness.scheduler.figures().host_used_blocks, std::ssize(held));
    harness.run_until_idle();
    EXPECT_EQ(harness.num_prefill_tokens, 200);
    EXPECT_EQ(harness.outputs.size(), 4u);
    EXPECT_LE(harness.scheduler.totals().swapped_in_blocks, std::ssize(held));
  }
}

// Found by random traffic: the rest of the prompt was counted twice, so that a request that fits the pool
// exactly was ended for want of memory when it had been swapped out in the middle of its prompt.
TEST(Preemption, AGroupSwappedInItsPromptComesBackWhenItNeedsNearlyTheWholePool) {
  SchedulerOptions options = swapping(19, 19);
  options.max_num_batched_tokens = 4;  // two for the older requests, two for the prompt
  options.admission_reserve = AdmissionReserve::kOnePercent;
  Harness harness(options);
  harness.submit(request_of(1, 15, 200));
  harness.submit(request_of(2, 15, 200));
  harness.submit(request_of(3, 192, 3, /*n=*/2));  // twelve blocks, and one for each output
  EXPECT_TRUE(harness.run_until_preempted(kThird).preemptions[0].is_swap);
  EXPECT_FALSE(harness.outputs.contains({kThird, 0}));
  harness.abort(kFirst);
  harness.abort(kSecond);
  harness.run_until_idle();
  EXPECT_EQ(harness.num_out_of_memory, 0);
  EXPECT_EQ(harness.outputs.size(), 2u);
}

TEST(Preemption, AutoRecomputesASingleSequence) {
  Harness harness(swapping(12, 12, PreemptionPolicy::kAuto));
  submit_two(harness);
  const auto step = harness.run_until_preempted(kSecond);
  EXPECT_FALSE(step.preemptions[0].is_swap);
  EXPECT_EQ(state_of(harness, kSecond), SequenceState::kWaiting);
  harness.run_until_idle();
  EXPECT_EQ(harness.outputs.size(), 2u);
}

TEST(Preemption, RecomputeNeverUsesTheHostPool) {
  Harness harness(swapping(22, 22, PreemptionPolicy::kRecompute));
  harness.submit(request_of(1, 100, 100));
  harness.submit(request_of(2, 100, 30, /*n=*/3));
  EXPECT_FALSE(harness.run_until_preempted(kSecond).preemptions[0].is_swap);
  harness.run_until_idle();
  EXPECT_EQ(harness.scheduler.totals().peak_host_used_blocks, 0);
}

TEST(Preemption, AFullHostPoolFallsBackToRecompute) {
  Harness harness(swapping(12, 3));
  submit_two(harness);
  const auto step = harness.run_until_preempted(kSecond);
  EXPECT_FALSE(step.preemptions[0].is_swap);
  EXPECT_GT(step.preemptions[0].num_tokens_dropped, 70);
  EXPECT_TRUE(step.swap_outs.empty());
  harness.run_until_idle();
  EXPECT_EQ(harness.outputs.size(), 2u);
}

TEST(Preemption, AutoAndCostTakeWhatWasMeasuredToBeCheaper) {
  for (const auto mode : {PreemptionPolicy::kAuto, PreemptionPolicy::kCost}) {
    for (const bool swap_is_cheaper : {true, false}) {
      Harness harness(swapping(12, 12, mode));
      // Six blocks there and back against some 90 tokens.
      MeasuredCosts costs{.us_per_swapped_block = swap_is_cheaper ? 7.0 : 8.0, .steps = {}};
      costs.steps.learn(StepWork::of_rows(0, 1), 1.0);
      harness.scheduler.set_costs(costs);
      submit_two(harness);
      EXPECT_EQ(harness.run_until_preempted(kSecond).preemptions[0].is_swap, swap_is_cheaper);
      harness.run_until_idle();
      EXPECT_EQ(harness.outputs.size(), 2u);
    }
  }
}

// ---- order

TEST(Preemption, TakesTheLatestArrivedFirst) {
  Harness harness(swapping(14, 14));
  for (std::uint64_t i = 1; i <= 3; ++i) harness.submit(request_of(i, 45, 90));
  harness.run_until_preempted(kThird);
  EXPECT_EQ(harness.preemptions.size(), 1u);
  harness.run_until_preempted(kSecond);
  EXPECT_EQ(harness.scheduler.num_swapped_out(), 2);
  harness.run_until_idle();
  EXPECT_EQ(harness.outputs.size(), 3u);
}

TEST(Preemption, NothingNewStartsWhileAGroupIsSwappedOut) {
  Harness harness(swapping(12, 12));
  submit_two(harness);
  harness.run_until_preempted(kSecond);
  const RequestId small = harness.submit(request_of(3, 2, 2));  // one block, which there is
  while (harness.scheduler.num_swapped_out() > 0) {
    EXPECT_FALSE(harness.num_cached_tokens.contains(small));
    harness.step();
  }
  harness.run_until_idle();
  EXPECT_EQ(harness.start_order, (std::vector{kFirst, kSecond, kThird}));
}

// Whether the third request starts before the second, which was preempted and resumed, has ended.
bool starts_before_the_preempted_one_ends(AdmissionAfterPreemption rule, PreemptionPolicy mode) {
  SchedulerOptions options = swapping(12, 12, mode);
  options.admit_after_preemption = rule;
  Harness harness(options);
  submit_two(harness);
  harness.run_until_preempted(kSecond);
  harness.submit(request_of(3, 2, 2));
  while (!harness.num_cached_tokens.contains(kThird)) harness.step();
  const bool has_ended = harness.outputs.contains({kSecond, 0});
  harness.run_until_idle();
  return !has_ended;
}

TEST(Preemption, ResumedAdmitsOnceThePreemptedOnesRunAndCompletedOnceTheyHaveEnded) {
  for (const auto mode : {PreemptionPolicy::kSwap, PreemptionPolicy::kRecompute}) {
    EXPECT_TRUE(starts_before_the_preempted_one_ends(AdmissionAfterPreemption::kResumed, mode));
    EXPECT_FALSE(starts_before_the_preempted_one_ends(AdmissionAfterPreemption::kCompleted, mode));
  }
}

TEST(Preemption, UnderCompletedThePreemptedOnesThemselvesResume) {
  SchedulerOptions options = swapping(14, 14);
  options.admit_after_preemption = AdmissionAfterPreemption::kCompleted;
  Harness harness(options);
  for (std::uint64_t i = 1; i <= 4; ++i) harness.submit(request_of(i, 45, 90));
  harness.run_until_idle();
  EXPECT_GT(harness.preemptions.size(), 1u);
  EXPECT_EQ(harness.outputs.size(), 4u);
}

// An older request computes its tokens again when the group comes back: whatever its last chunk leaves of the
// budget, the group decodes as a whole, or begins in the next step.
TEST(Preemption, AGroupThatResumesBesideOthersHasARowForEachSequenceOrNone) {
  int num_with_rows = 0, num_without_rows = 0;
  for (std::int32_t budget = 7; budget < 30; ++budget) {
    SchedulerOptions options = swapping(22, 22, PreemptionPolicy::kAuto);
    options.max_num_batched_tokens = budget;
    options.enable_prefix_caching = false;
    options.admission_reserve = AdmissionReserve::kOnePercent;
    Harness harness(options);
    const RequestId oldest = harness.submit(request_of(1, 100, 150));
    harness.submit(request_of(2, 40, 200));
    while (harness.num_used_blocks() < 13) harness.step();
    harness.submit(request_of(3, 32, 30, /*n=*/5));
    harness.run_until_preempted(kThird);
    harness.run_until_preempted(kSecond);
    harness.abort(oldest);
    SchedulerOutput step;
    while (step.swap_ins.empty() && harness.scheduler.has_work()) step = harness.step();
    const Requests requests = requests_in(step);
    if (std::ranges::count(requests, kSecond.value) == 0)
      continue;  // it did not fit before the second had ended
    const auto num_rows = std::ranges::count(requests, kThird.value);
    EXPECT_TRUE(num_rows == 0 || num_rows == 5) << num_rows << " of five sequences have rows";
    ++(num_rows == 0 ? num_without_rows : num_with_rows);
    EXPECT_EQ(requests_in(harness.step()), (Requests{2, 3, 3, 3, 3, 3}));
    if (HasFailure()) return;
  }
  EXPECT_GT(num_with_rows, 0);
  EXPECT_GT(num_without_rows, 0);
}

// ---- out of memory

// Four outputs of 40 shared and 59 own tokens: two blocks, and five for each. The pool has them for three.
constexpr std::int32_t kPoolForThree = 17;

TEST(Preemption, AGroupThatOutgrowsThePoolPausesItsLastOutputAndEndsNobody) {
  for (const auto mode : {PreemptionPolicy::kSwap, PreemptionPolicy::kRecompute, PreemptionPolicy::kAuto}) {
    for (const bool caches : {true, false}) {
      SCOPED_TRACE(testing::Message() << static_cast<int>(mode) << caches);
      SchedulerOptions options = swapping(kPoolForThree, kPoolForThree, mode);
      options.enable_prefix_caching = caches;
      Harness harness(options);
      const auto asked = request_of(1, 40, 60, /*n=*/4);
      const RequestId group = harness.submit(asked);
      const auto step = harness.run_until_preempted(group);
      ASSERT_EQ(step.preemptions.size(), 1u);
      EXPECT_EQ(step.preemptions[0].first_output_index, 3u);
      EXPECT_EQ(step.preemptions[0].is_swap, mode == PreemptionPolicy::kSwap);
      EXPECT_EQ(requests_in(step), (Requests{1, 1, 1})) << "the others go on in the same step";
      const auto sequences = harness.scheduler.snapshot().sequences;
      ASSERT_EQ(sequences.size(), 4u);
      EXPECT_EQ(sequences[2].state, SequenceState::kRunning);
      EXPECT_EQ(sequences[3].state,
                mode == PreemptionPolicy::kSwap ? SequenceState::kSwapped : SequenceState::kWaiting);
      harness.run_until_idle();
      EXPECT_EQ(harness.num_out_of_memory, 0);
      for (std::uint32_t i = 0; i < 4; ++i) {
        EXPECT_EQ((harness.outputs[{group, i}]),
                  Harness::expected_output(asked, Harness::seed_of(group), i, 60));
      }
      auto num_dropped =
          static_cast<std::int32_t>(harness.preemptions.size());  // and each one's newest token
      for (const Preemption& preemption : harness.preemptions) num_dropped += preemption.num_tokens_dropped;
      EXPECT_LE(harness.num_prefill_tokens - 40,
                num_dropped - (caches && mode != PreemptionPolicy::kSwap ? 32 : 0))
          << "what it shares with the others is found";
    }
  }
}

TEST(Preemption, APausedOutputComesBackAsSoonAsASiblingHasEndedAndBeforeAnybodyNewer) {
  Harness harness(swapping(kPoolForThree, kPoolForThree, PreemptionPolicy::kRecompute));
  const RequestId group = harness.submit(request_of(1, 40, 60, /*n=*/4));
  harness.run_until_preempted(group);
  const RequestId newer = harness.submit(request_of(2, 2, 2));
  for (int i = 0; i < 3; ++i) EXPECT_EQ(requests_in(harness.step()), (Requests{1, 1, 1}));
  harness.finish_early(harness.scheduler.sequences_of(group)[1].sequence_id);
  EXPECT_EQ(requests_in(harness.step()), (Requests{1, 1, 1})) << "the first, the third and the paused one";
  EXPECT_EQ(harness.scheduler.snapshot().sequences[2].output_index, 3);
  EXPECT_EQ(harness.scheduler.snapshot().sequences[2].state, SequenceState::kRunning);
  EXPECT_FALSE(harness.num_cached_tokens.contains(newer));
  harness.run_until_idle();
  EXPECT_TRUE(harness.outputs.contains({group, 3}));
  EXPECT_TRUE(harness.outputs.contains({newer, 0}));
}

// 40 tokens and 100 more fit no pool of eight blocks.
TEST(Preemption, WhatCouldNotRunAloneEndsAloneAndTheOthersGoOn) {
  Harness harness(swapping(8, 8));
  const RequestId group = harness.submit(request_of(1, 40, 100, /*n=*/3));
  std::vector<std::uint32_t> ended;
  while (harness.scheduler.has_work()) {
    const auto step = harness.step();
    ASSERT_LE(step.out_of_memory.size(), 1u);
    if (step.out_of_memory.empty()) continue;
    EXPECT_TRUE(step.empty());
    EXPECT_EQ(step.out_of_memory[0].request_id, group);
    ended.push_back(step.out_of_memory[0].output_index);
  }
  EXPECT_EQ(ended, (std::vector<std::uint32_t>{0, 1, 2})) << "each when it was alone";
  EXPECT_EQ(harness.num_used_blocks(), 0);
}

// Five beams need a block each, and the one block of the younger request does not make up for them.
void submit_beams_and_single(Harness& harness) {
  harness.submit(beams_of(1, 16, 100, 5));
  harness.submit(request_of(2, 4, 60));
}

SchedulerOptions for_beams_and_single() {
  SchedulerOptions options = swapping(8, 8);
  options.admission_reserve = AdmissionReserve::kOnePercent;
  return options;
}

TEST(Preemption, AStepMayMoveMemoryWithoutComputingAnything) {
  Harness harness(for_beams_and_single());
  submit_beams_and_single(harness);
  const auto step = harness.run_until_preempted(kSecond);
  EXPECT_TRUE(step.empty());
  EXPECT_TRUE(step.moves_memory());
  EXPECT_FALSE(step.out_of_memory.empty()) << "beams advance together and cannot pause";
  EXPECT_EQ(harness.scheduler.num_swapped_out(), 1);
  harness.run_until_idle();
  EXPECT_TRUE(harness.outputs.contains({kSecond, 0}));
}

// ---- cancels, in every state

struct CancelState {
  const char* name;
  std::function<RequestId(Harness&)> reach;
};

TEST(Preemption, CancelFreesEverythingInEveryState) {
  const auto crowd = [](Harness& harness) {  // a group of samples that gives way to an older request
    harness.submit(request_of(1, 100, 100));
    const RequestId group = harness.submit(request_of(2, 100, 60, /*n=*/3));
    harness.run_until_preempted(group);
    return group;
  };
  const auto paused = [](Harness& harness) {  // the last output of a group that has outgrown the pool
    const RequestId group = harness.submit(request_of(2, 100, 200, /*n=*/4));
    EXPECT_EQ(harness.run_until_preempted(group).preemptions[0].first_output_index, 3u);
    return group;
  };
  const CancelState cases[] = {
      {"waiting", [](Harness& harness) { return harness.submit(request_of(2, 300, 10)); }},
      {"computing a chunk",
       [](Harness& harness) {
         const RequestId request_id = harness.submit(request_of(2, 200, 10));
         harness.step();
         return request_id;
       }},
      {"decoding",
       [](Harness& harness) {
         const RequestId request_id = harness.submit(request_of(2, 50, 10, /*n=*/4));
         harness.step(), harness.step();
         return request_id;
       }},
      {"preempted", crowd},
      {"an output paused", paused},
      {"an output paused, its siblings ended",
       [&](Harness& harness) {
         const RequestId group = paused(harness);
         for (const SequenceSnapshot& one : harness.scheduler.snapshot().sequences) {
           if (one.state == SequenceState::kRunning) harness.finish_early(one.sequence_id);
         }
         EXPECT_EQ(harness.scheduler.sequences_of(group).size(), 1u);
         return group;
       }},
      {"rebuilding",
       [&](Harness& harness) {
         const RequestId group = crowd(harness);
         harness.abort(kFirst);
         harness.step();
         return group;
       }},
  };
  for (const auto mode : {PreemptionPolicy::kSwap, PreemptionPolicy::kRecompute}) {
    for (const CancelState& state : cases) {
      SCOPED_TRACE(state.name);
      SchedulerOptions options = swapping(22, 22, mode);
      options.max_num_batched_tokens = 64;
      Harness harness(options);
      const RequestId request_id = state.reach(harness);
      EXPECT_TRUE(harness.abort(request_id));
      EXPECT_FALSE(harness.abort(request_id)) << "it is forgotten";
      harness.abort(kFirst);
      EXPECT_EQ(harness.num_used_blocks(), 0);
      EXPECT_EQ(harness.scheduler.figures().host_used_blocks, 0);
      EXPECT_FALSE(harness.scheduler.has_work());
    }
  }
}

// ---- a certain step

// The number of the first step that fulfils a condition.
template <typename Condition>
int steps_until(const SchedulerOptions& options, void (*submit)(Harness&), Condition condition) {
  Harness harness(options);
  submit(harness);
  for (int i = 0; harness.scheduler.has_work(); ++i) {
    if (condition(harness.step())) return i;
  }
  ADD_FAILURE() << "no such step";
  return 0;
}

TEST(Preemption, NothingStartsInAStepThatPreempted) {
  const SchedulerOptions options = options_with(12);
  const int num_before =
      steps_until(options, submit_two, [](const SchedulerOutput& step) { return !step.preemptions.empty(); });
  Harness harness(options);
  submit_two(harness);
  for (int i = 0; i < num_before; ++i) harness.step();
  harness.submit(request_of(9, 1, 1));
  const auto step = harness.step();
  ASSERT_EQ(step.preemptions.size(), 1u);
  EXPECT_TRUE(step.admissions.empty());
  const KvFigures figures = harness.scheduler.figures();
  EXPECT_GE(figures.free_blocks + figures.cached_blocks, 3) << "it would fit and leave the watermark";
  harness.run_until_idle();
}

TEST(Preemption, WhoWasSwappedOutByAFailedStepRecomputes) {
  const SchedulerOptions options = swapping(12, 12);
  const int num_before =
      steps_until(options, submit_two, [](const SchedulerOutput& step) { return !step.swap_outs.empty(); });
  Harness harness(options);
  submit_two(harness);
  for (int i = 0; i < num_before; ++i) harness.step();
  EXPECT_FALSE(harness.step(/*device_fails=*/true).swap_outs.empty());
  EXPECT_EQ(harness.failed, std::vector{kFirst}) << "who had rows";
  EXPECT_EQ(state_of(harness, kSecond), SequenceState::kWaiting);
  EXPECT_EQ(harness.scheduler.figures().host_used_blocks, 0);
  harness.run_until_idle();
  EXPECT_TRUE(harness.outputs.contains({kSecond, 0}));
}

TEST(Preemption, AFailedStepThatOnlyMovedMemoryEndsNobody) {
  const int num_before = steps_until(for_beams_and_single(), submit_beams_and_single,
                                     [](const SchedulerOutput& step) { return !step.swap_outs.empty(); });
  Harness harness(for_beams_and_single());
  submit_beams_and_single(harness);
  for (int i = 0; i < num_before; ++i) harness.step();
  harness.step(/*device_fails=*/true);
  EXPECT_TRUE(harness.failed.empty());
  EXPECT_EQ(state_of(harness, kSecond), SequenceState::kWaiting);
  harness.run_until_idle();
  EXPECT_TRUE(harness.outputs.contains({kSecond, 0}));
}

TEST(Preemption, AFailedStepEndsTheOutputsThatArePausedToo) {
  for (const auto mode : {PreemptionPolicy::kSwap, PreemptionPolicy::kRecompute}) {
    for (const bool in_the_step_that_pauses : {true, false}) {
      Harness harness(swapping(kPoolForThree, kPoolForThree, mode));
      const auto submit = [](Harness& to) { to.submit(request_of(1, 40, 60, /*n=*/4)); };
      const int num_before =
          steps_until(swapping(kPoolForThree, kPoolForThree, mode), submit,
                      [](const SchedulerOutput& step) { return !step.preemptions.empty(); });
      submit(harness);
      for (int i = 0; i < num_before; ++i) harness.step();
      harness.step(/*device_fails=*/in_the_step_that_pauses);
      if (!in_the_step_that_pauses) harness.step(/*device_fails=*/true);
      EXPECT_EQ(harness.failed, std::vector{kFirst});
      EXPECT_FALSE(harness.scheduler.has_work());
      EXPECT_EQ(harness.num_used_blocks(), 0);
      EXPECT_EQ(harness.scheduler.figures().host_used_blocks, 0);
    }
  }
}

TEST(Preemption, WhoWasComingBackInAFailedStepEnds) {
  const SchedulerOptions options = swapping(12, 12);
  const int num_before =
      steps_until(options, submit_two, [](const SchedulerOutput& step) { return !step.swap_ins.empty(); });
  Harness harness(options);
  submit_two(harness);
  for (int i = 0; i < num_before; ++i) harness.step();
  harness.step(/*device_fails=*/true);
  EXPECT_EQ(std::ranges::count(harness.failed, kSecond), 1);
  EXPECT_EQ(harness.scheduler.figures().host_used_blocks, 0);
  harness.run_until_idle();
}

TEST(Preemption, WhoseBlocksWereBeingCopiedInAFailedStepEnds) {
  const auto submit = [](Harness& harness) { harness.submit(request_of(1, 40, 6, /*n=*/3)); };
  const int num_before = steps_until(options_with(64), submit,
                                     [](const SchedulerOutput& step) { return !step.block_copies.empty(); });
  Harness harness(options_with(64));
  submit(harness);
  for (int i = 0; i < num_before; ++i) harness.step();
  EXPECT_EQ(harness.step(/*device_fails=*/true).block_copies.size(), 2u);
  EXPECT_EQ(harness.failed, std::vector{kFirst});
  EXPECT_EQ(harness.num_used_blocks(), 0);
}

TEST(Preemption, APartialBlockThatAFailedStepCopiedIsStillThereForOthers) {
  Harness harness(options_with(64));
  harness.submit(request_of(1, 40, 1));
  harness.run_until_idle();
  harness.submit(request_of(1, 60, 4));
  EXPECT_EQ(harness.step(/*device_fails=*/true).block_copies.size(), 1u);
  EXPECT_EQ(harness.num_used_blocks(), 0);
  const RequestId again = harness.submit(request_of(1, 60, 4));
  harness.run_until_idle();
  EXPECT_EQ(harness.num_cached_tokens[again], 40);
}

}  // namespace
}  // namespace octavo::scheduler
