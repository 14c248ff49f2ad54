#include "engine/scheduler/scheduler.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/scheduler/harness.h"
#include "tests/scheduler/requests.h"

namespace octavo::scheduler {
namespace {

// ---- refusals

Result<void> add(Scheduler& scheduler, std::int32_t num_prompt, std::int32_t n = 1,
                 std::int32_t max_tokens = 16) {
  NewRequest request{
      .request_id = RequestId{1}, .prompt_token_ids = random_like_tokens(1, num_prompt), .sampling = {}};
  request.sampling.n = n;
  request.sampling.max_tokens = max_tokens;
  return scheduler.add(std::move(request));
}

TEST(Scheduler, RefusesAPromptThatLeavesNoRoomForAToken) {
  Scheduler scheduler(options_with(1000));
  const auto refused = add(scheduler, 9000);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kTooLong);
  EXPECT_NE(refused.error().message.find("prompt has 9,000 tokens; the limit is 8,192"), std::string::npos);
  EXPECT_FALSE(add(scheduler, 8192));
  EXPECT_FALSE(scheduler.has_work());
  EXPECT_TRUE(add(scheduler, 8191));
}

TEST(Scheduler, RefusesWhatCanNeverFitThePool) {
  Scheduler scheduler(options_with(10));
  const auto refused = add(scheduler, 161);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kTooLong);
  EXPECT_NE(refused.error().message.find("at least 11 KV blocks"), std::string::npos);
  EXPECT_NE(refused.error().message.find("the pool has 10"), std::string::npos);
  EXPECT_TRUE(add(scheduler, 160));
}

TEST(Scheduler, CountsALastBlockForEachOutputOfAGroup) {
  EXPECT_FALSE(add(*std::make_unique<Scheduler>(options_with(10)), 7, /*n=*/11));
  EXPECT_TRUE(add(*std::make_unique<Scheduler>(options_with(10)), 7, /*n=*/10));
  EXPECT_FALSE(add(*std::make_unique<Scheduler>(options_with(10)), 16, /*n=*/10));
  EXPECT_TRUE(add(*std::make_unique<Scheduler>(options_with(10)), 16, /*n=*/9));
  EXPECT_TRUE(add(*std::make_unique<Scheduler>(options_with(10)), 7, /*n=*/11, /*max_tokens=*/1))
      << "a single token each needs no block past the prompt";
}

TEST(Scheduler, RefusesMoreOutputsThanMayRunAndAnEmptyPrompt) {
  Scheduler scheduler(options_with(1000));
  const auto refused = add(scheduler, 4, 65);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(refused.error().subject, "n");
  EXPECT_FALSE(add(scheduler, 4, 0));
  EXPECT_FALSE(add(scheduler, 0));
}

// ---- steps and chunks

TEST(Scheduler, ComputesAPromptInChunksThenATokenAStep) {
  Harness harness(options_with(64, 100));
  harness.submit(request_of(1, 250, 3));
  std::vector<std::size_t> rows;
  while (harness.scheduler.has_work()) {
    const auto step = harness.step();
    ASSERT_EQ(step.sequences.size(), 1u);
    rows.push_back(step.sequences[0].token_ids.size());
    EXPECT_EQ(step.sequences[0].samples.size(), rows.size() < 3 ? 0u : 1u);
  }
  EXPECT_EQ(rows, (std::vector<std::size_t>{100, 100, 50, 1, 1}));
}

TEST(Scheduler, SchedulesDecodesBeforeChunksGetTheRest) {
  Harness harness(options_with(256, 64));
  for (std::uint64_t i = 1; i <= 3; ++i) harness.submit(request_of(i, 20, 20));
  harness.step();
  harness.submit(request_of(4, 300, 20));
  harness.submit(request_of(5, 10, 20));
  const auto step = harness.step();
  EXPECT_EQ(requests_in(step), (Requests{1, 2, 3, 4}));
  EXPECT_EQ(step.num_decode_tokens, 3);
  EXPECT_EQ(step.num_prefill_tokens, 61);
  EXPECT_EQ(harness.start_order.size(), 4u) << "request 5 waits: no token is left in this step";
}

TEST(Scheduler, WithPrefillFirstNoOutputGrowsWhileAPromptIsComputed) {
  auto options = options_with(256, 64);
  options.prefill_first = true;
  Harness harness(options);
  harness.submit(request_of(1, 20, 20));
  harness.step();
  harness.submit(request_of(2, 150, 20));
  for (const std::size_t rows : {64u, 64u, 22u}) {
    const auto step = harness.step();
    EXPECT_EQ(requests_in(step), (Requests{2}));
    EXPECT_EQ(step.sequences.front().token_ids.size(), rows);
  }
  EXPECT_EQ(requests_in(harness.step()), (Requests{1, 2}));
  harness.run_until_idle();
}

TEST(Scheduler, SharesAStepAmongSeveralPrompts) {
  Harness harness(options_with(256, 64));
  for (std::uint64_t i = 1; i <= 4; ++i) harness.submit(request_of(i, 20, 2));
  const auto step = harness.step();
  EXPECT_EQ(requests_in(step), (Requests{1, 2, 3, 4}));
  EXPECT_EQ(step.sequences.back().token_ids.size(), 4u);
  harness.run_until_idle();
}

TEST(Scheduler, ABudgetBelowTheSequencesLetsFewerRunAndEachAdvanceEveryStep) {
  Harness harness(options_with(256, 3));
  for (std::uint64_t i = 1; i <= 8; ++i) harness.submit(request_of(i, 5, 6));
  std::map<std::uint64_t, int> idle_steps;
  while (harness.scheduler.has_work()) {
    const auto step = harness.step();
    EXPECT_LE(harness.scheduler.num_running(), 3);
    for (auto& [request, idle] : idle_steps) ++idle;
    for (const ScheduledSequence& row : step.sequences) {
      if (row.samples.empty()) continue;
      if (idle_steps.contains(row.request_id.value)) {
        EXPECT_EQ(idle_steps[row.request_id.value], 1);
      }
      idle_steps[row.request_id.value] = 0;
    }
  }
  EXPECT_EQ(harness.outputs.size(), 8u);
}

TEST(Scheduler, OutputsThatHaveNotForkedYetCountAgainstTheBudgetToo) {
  Harness harness(options_with(256, 4));
  for (std::uint64_t i = 1; i <= 3; ++i) harness.submit(request_of(i, 2, 6, /*n=*/3));
  harness.submit(request_of(4, 2, 6));
  EXPECT_EQ(requests_in(harness.step()), Requests{1}) << "3 and 3 would be more decodes than a step has rows";
  harness.run_until_idle();
  EXPECT_EQ(harness.outputs.size(), 10u);
}

TEST(Scheduler, AGroupLargerThanTheBudgetTakesTurns) {
  Harness harness(options_with(256, 2));
  const RequestId request_id = harness.submit(request_of(1, 5, 9, /*n=*/5));
  while (harness.scheduler.has_work()) {
    harness.step();
    std::vector<std::size_t> lengths;
    for (const auto& view : harness.scheduler.sequences_of(request_id))
      lengths.push_back(view.token_ids.size());
    if (lengths.empty()) break;
    EXPECT_LE(*std::ranges::max_element(lengths) - *std::ranges::min_element(lengths), 1u);
  }
  EXPECT_EQ(harness.outputs.size(), 5u);
}

TEST(Scheduler, CountsEveryOutputAgainstTheMostSequences) {
  auto options = options_with(256);
  options.max_num_seqs = 8;
  Harness harness(options);
  harness.submit(request_of(1, 5, 4, /*n=*/5));
  harness.submit(request_of(2, 5, 4, /*n=*/4));
  harness.submit(request_of(3, 5, 4));
  harness.step();
  EXPECT_EQ(harness.scheduler.num_running(), 1);
  EXPECT_EQ(harness.scheduler.num_waiting(), 2) << "request 3 would fit, but came later";
  harness.run_until_idle();
}

// ---- admission

TEST(Scheduler, ARequestThatDoesNotFitHoldsUpThoseBehindIt) {
  Harness harness(options_with(20));
  harness.submit(request_of(1, 160, 4));
  harness.submit(request_of(2, 160, 4));
  harness.submit(request_of(3, 5, 4));
  EXPECT_EQ(requests_in(harness.step()), Requests{1});
  harness.run_until_idle();
  EXPECT_EQ(harness.start_order, (std::vector<RequestId>{{1}, {2}, {3}}));
}

TEST(Scheduler, AdmissionLeavesTheWatermark) {
  for (const std::int32_t num_blocks : {21, 22}) {  // 10 run; 10 more must leave 1 % and 1
    Harness harness(options_with(num_blocks));
    harness.submit(request_of(1, 160, 2));
    harness.submit(request_of(2, 160, 2));
    EXPECT_EQ(harness.step().sequences.size(), num_blocks == 22 ? 2u : 1u);
    harness.run_until_idle();
  }
}

TEST(Scheduler, WhatFillsThePoolStartsWhenNothingRuns) {
  Harness harness(options_with(10));
  harness.submit(request_of(1, 160, 1));
  EXPECT_EQ(harness.step().sequences.size(), 1u);
  EXPECT_EQ(harness.outputs.size(), 1u);
}

TEST(Scheduler, BlocksThatAGroupNeedsWhenItForksAreNotGivenAway) {
  Harness harness(options_with(24, 40));
  harness.submit(request_of(1, 100, 4, /*n=*/8));  // 6 shared blocks and 8 more
  harness.submit(request_of(2, 100, 4));           // 7 blocks would fit beside the first's 7
  for (int i = 0; i < 3; ++i) EXPECT_EQ(requests_in(harness.step()), Requests{1});
  harness.run_until_idle();
  EXPECT_TRUE(harness.preemptions.empty());
}

// ---- prefix cache

TEST(Scheduler, ReusesASharedStartOf500Tokens) {
  Harness harness(options_with(512));
  const Tokens shared = random_like_tokens(7, 500);
  for (std::uint64_t i = 1; i <= 3; ++i) {
    SimulatedRequest request = request_of(100 + i, 30);
    request.prompt.insert(request.prompt.begin(), shared.begin(), shared.end());
    const RequestId request_id = harness.submit(request);
    const std::int32_t before = harness.num_prefill_tokens;
    harness.run_until_idle();
    EXPECT_EQ(harness.num_cached_tokens[request_id], i == 1 ? 0 : 500)
        << "31 blocks and 4 tokens of the next";
    EXPECT_EQ(harness.num_prefill_tokens - before, i == 1 ? 530 : 30);
  }
  EXPECT_EQ(harness.scheduler.totals().prefix_hit_tokens, 1000);
}

TEST(Scheduler, ReusesBlocksOfARequestThatStillRuns) {
  Harness harness(options_with(512));
  SimulatedRequest first = request_of(1, 200, 50);
  harness.submit(first);
  for (int i = 0; i < 30; ++i) harness.step();
  SimulatedRequest second = first;  // prompt and what was generated so far
  for (const TokenId token : Harness::expected_output(first, Harness::seed_of(RequestId{1}), 0, 25)) {
    second.prompt.push_back(token);
  }
  const RequestId request_id = harness.submit(second);
  const std::int32_t used = harness.scheduler.figures().used_blocks;
  harness.step();
  EXPECT_EQ(harness.num_cached_tokens[request_id], 224) << "14 of 14 full blocks, generated ones too";
  EXPECT_EQ(harness.scheduler.figures().used_blocks, used + 1);
  harness.run_until_idle();
}

TEST(Scheduler, ComputesAtLeastOneTokenOfAKnownPrompt) {
  Harness harness(options_with(64));
  for (const std::int32_t num_prompt : {31, 32, 33}) {
    harness.submit(request_of(1, num_prompt));
    harness.run_until_idle();
    const std::int32_t before = harness.num_prefill_tokens;
    const RequestId again = harness.submit(request_of(1, num_prompt));
    harness.run_until_idle();
    EXPECT_EQ(harness.num_cached_tokens[again], num_prompt - 1);
    EXPECT_EQ(harness.num_prefill_tokens - before, 1);
  }
}

TEST(Scheduler, PromptLogprobsDoNotReadTheCacheButFillIt) {
  Harness harness(options_with(64));
  for (int i = 0; i < 2; ++i) {
    SimulatedRequest request = request_of(1, 100);
    request.prompt_logprobs = true;
    const RequestId request_id = harness.submit(request);
    harness.run_until_idle();
    EXPECT_EQ(harness.num_cached_tokens[request_id], 0);
  }
  const RequestId reader = harness.submit(request_of(1, 100));
  harness.run_until_idle();
  EXPECT_EQ(harness.num_cached_tokens[reader], 96);
}

TEST(Scheduler, SaltsAndTheSwitchKeepRequestsApart) {
  Harness harness(options_with(64));
  SimulatedRequest request = request_of(1, 100);
  for (const char* salt : {"anna", "ben", "anna"}) {
    request.salt = salt;
    harness.submit(request);
    harness.run_until_idle();
  }
  EXPECT_EQ(harness.num_cached_tokens, (std::map<RequestId, std::int32_t>{{{1}, 0}, {{2}, 0}, {{3}, 96}}));

  auto options = options_with(64);
  options.enable_prefix_caching = false;
  Harness uncached(options);
  for (int i = 0; i < 2; ++i) uncached.submit(request), uncached.run_until_idle();
  EXPECT_EQ(uncached.num_prefill_tokens, 200);
  EXPECT_EQ(uncached.scheduler.figures().free_blocks, 64);
}

TEST(Scheduler, ResetDropsTheCachedBlocks) {
  Harness harness(options_with(64));
  harness.submit(request_of(1, 100));
  harness.run_until_idle();
  EXPECT_GT(harness.scheduler.figures().cached_blocks, 0);
  harness.scheduler.reset_prefix_cache();
  EXPECT_EQ(harness.scheduler.figures().cached_blocks, 0);
  const RequestId again = harness.submit(request_of(1, 100));
  harness.run_until_idle();
  EXPECT_EQ(harness.num_cached_tokens[again], 0);
}

// ---- several outputs

TEST(Scheduler, ComputesTheTokensOfASharedPromptOnce) {
  for (const std::int32_t num_prompt : {1, 7, 15, 16, 17, 31, 32, 33, 100}) {
    for (const std::int32_t n : {1, 2, 6, 8}) {
      Harness harness(options_with(256, 40));
      harness.submit(request_of(1, num_prompt, 5, n));
      harness.run_until_idle();
      EXPECT_EQ(harness.num_prefill_tokens, num_prompt);
      EXPECT_EQ(harness.outputs.size(), static_cast<std::size_t>(n));
      EXPECT_EQ(harness.scheduler.totals().cow_copies, num_prompt % 16 == 0 ? 0 : n - 1)
          << num_prompt << " tokens, n = " << n;
    }
  }
}

TEST(Scheduler, TheEndOfASharedPromptIsSampledOnceForEachOutput) {
  Harness harness(options_with(256));
  harness.submit(request_of(1, 40, 5, /*n=*/3));
  const auto first = harness.step();
  ASSERT_EQ(first.sequences.size(), 1u);
  ASSERT_EQ(first.sequences[0].samples.size(), 3u);
  for (std::uint32_t i = 0; i < 3; ++i) {
    EXPECT_EQ(first.sequences[0].samples[i].output_index, i);
    EXPECT_EQ(first.sequences[0].samples[i].seed, Harness::seed_of(RequestId{1}));
  }
  EXPECT_EQ(harness.scheduler.figures().used_blocks, 3);
  EXPECT_EQ(harness.scheduler.figures().logical_blocks, 9);
  EXPECT_EQ(harness.scheduler.figures().saved_bytes, 6000);
  EXPECT_EQ(harness.step().sequences.size(), 3u);
}

TEST(Scheduler, EightOutputsOfA512TokenPromptShareItsBlocks) {
  const std::int32_t max_tokens = 40;
  Harness harness(options_with(256));
  harness.submit(request_of(1, 512, max_tokens, /*n=*/8));
  harness.run_until_idle();
  const std::int32_t generated_blocks = (max_tokens - 1 + 15) / 16;
  EXPECT_EQ(harness.scheduler.totals().peak_used_blocks, 32 + 8 * generated_blocks);
  EXPECT_EQ(harness.scheduler.totals().peak_logical_blocks, 8 * (32 + generated_blocks));
}

TEST(Scheduler, AnOutputMayEndWhileItsSiblingsGoOn) {
  Harness harness(options_with(256));
  const RequestId request_id = harness.submit(request_of(1, 40, 20, /*n=*/3));
  harness.step();
  harness.finish_early(harness.scheduler.sequences_of(request_id)[0].sequence_id);
  EXPECT_EQ(harness.step().sequences.size(), 2u);
  EXPECT_EQ(harness.scheduler.totals().cow_copies, 1) << "two owners are left";
  harness.run_until_idle();
  EXPECT_EQ(harness.outputs.size(), 2u);
}

// ---- preemption

TEST(Scheduler, PreemptsTheLatestArrivedAndResumesItBeforeNewerOnes) {
  Harness harness(options_with(12));
  for (std::uint64_t i = 1; i <= 3; ++i) harness.submit(request_of(i, 45, 60));
  harness.submit(request_of(4, 16, 2));
  harness.run_until_idle();
  ASSERT_FALSE(harness.preemptions.empty());
  EXPECT_EQ(harness.preemptions[0].request_id, RequestId{3}) << "the latest of three that ran";
  EXPECT_GT(harness.preemptions[0].num_tokens_dropped, 45);
  EXPECT_EQ(harness.scheduler.totals().preempted_recompute,
            static_cast<std::int64_t>(harness.preemptions.size()));
  EXPECT_EQ(harness.start_order, (std::vector<RequestId>{{1}, {2}, {3}, {4}}));
  EXPECT_EQ(harness.outputs.size(), 4u) << "with the tokens that each gives alone";
}

TEST(Scheduler, TheGroupThatNeedsABlockGivesWayWhenItIsTheLatest) {
  Harness harness(options_with(7));
  harness.submit(request_of(1, 40, 30));  // 3 blocks, a fourth at 49 tokens
  harness.submit(request_of(2, 32, 30));  // 2 blocks, a third at 33 tokens, a fourth at 49
  std::optional<SchedulerOutput> preempting;
  for (int i = 0; i < 100 && harness.scheduler.has_work(); ++i) {
    auto step = harness.step();
    if (step.preemptions.empty()) continue;
    preempting = std::move(step);
    break;
  }
  ASSERT_TRUE(preempting.has_value());
  EXPECT_EQ(preempting->preemptions[0].request_id, RequestId{2});
  EXPECT_EQ(requests_in(*preempting), Requests{1}) << "the older one goes on in the same step";
  harness.run_until_idle();
  EXPECT_EQ(harness.outputs.size(), 2u);
}

TEST(Scheduler, APreemptedRequestFindsItsOwnBlocksAgain) {
  Harness harness(options_with(12));
  harness.submit(request_of(1, 70, 30));
  harness.submit(request_of(2, 70, 30));
  harness.run_until_idle();
  ASSERT_EQ(harness.preemptions.size(), 1u);
  EXPECT_LT(harness.num_prefill_tokens, 140 + harness.preemptions[0].num_tokens_dropped)
      << "part of what was dropped was not computed again";
}

TEST(Scheduler, AResumedSequenceGetsARowInTheStepThatResumesIt) {
  Harness harness(options_with(7));
  const RequestId older = harness.submit(request_of(1, 40, 30));
  harness.submit(request_of(2, 32, 30));  // gives way at 49 tokens, with three full blocks
  while (harness.preemptions.empty()) harness.step();
  harness.abort(older);
  const auto resuming = harness.step();
  EXPECT_EQ(requests_in(resuming), Requests{2});
  EXPECT_EQ(resuming.num_decode_tokens, 1);
  harness.run_until_idle();
}

TEST(Scheduler, RecomputingAGroupRebuildsItsSharing) {
  for (const bool caches : {true, false}) {
    auto options = options_with(22, 64);
    options.enable_prefix_caching = caches;
    Harness harness(options);
    harness.submit(request_of(1, 100, 100));
    const RequestId group = harness.submit(request_of(2, 100, 30, /*n=*/3));
    while (harness.preemptions.empty()) harness.step();
    EXPECT_EQ(harness.preemptions[0].request_id, group);
    const std::int32_t dropped = harness.preemptions[0].num_tokens_dropped;
    EXPECT_GT(dropped, 100);
    EXPECT_LT(dropped, 3 * 100) << "shared tokens count once";
    const std::int32_t before = harness.num_prefill_tokens;
    harness.run_until_idle();
    if (!caches && harness.preemptions.size() == 1) {
      EXPECT_EQ(harness.num_prefill_tokens - before, dropped);
    }
    EXPECT_EQ(harness.outputs.size(), 4u);
  }
}

TEST(Scheduler, AGroupThatOutgrowsThePoolAloneIsListed) {
  Harness harness(options_with(4));
  const RequestId request_id = harness.submit(request_of(1, 30, 100));
  harness.submit(request_of(2, 30, 100));
  SchedulerOutput step;
  while (step.out_of_memory.empty()) step = harness.step();
  EXPECT_TRUE(step.empty());
  EXPECT_TRUE(step.preemptions.empty());
  EXPECT_TRUE(harness.scheduler.sequences_of(request_id).empty()) << "the harness ended it";
  harness.run_until_idle();
  EXPECT_EQ(harness.num_out_of_memory, 2);
  EXPECT_EQ(harness.scheduler.figures().used_blocks, 0);
}

TEST(Scheduler, AGroupThatOutgrewThePoolWhileItWaitedComesBackAsFarAsItFits) {
  for (const std::int32_t num_host_blocks : {0, 8}) {
    auto options = options_with(8);
    options.num_host_blocks = num_host_blocks;
    options.preemption_mode = PreemptionPolicy::kSwap;
    Harness harness(options);
    const RequestId older = harness.submit(request_of(1, 2, 14));
    // One shared block and four own ones; at 33 tokens each, one and eight. It gives way to the older one
    // first, and does not fit any more as a whole. Each output alone fits the pool exactly.
    const auto asked = request_of(2, 26, 103, /*n=*/4);
    const RequestId group = harness.submit(asked);
    harness.run_until_idle();
    ASSERT_GE(harness.preemptions.size(), 1u);
    EXPECT_EQ(harness.preemptions[0].request_id, group);
    EXPECT_EQ(harness.preemptions[0].first_output_index, 0u);
    EXPECT_EQ(harness.preemptions[0].is_swap, num_host_blocks > 0);
    EXPECT_EQ(harness.num_out_of_memory, 0);
    EXPECT_TRUE(harness.outputs.contains({older, 0}));
    for (std::uint32_t i = 0; i < 4; ++i) {
      EXPECT_EQ((harness.outputs[{group, i}]),
                Harness::expected_output(asked, Harness::seed_of(group), i, 103));
    }
  }
}

// ---- ends

TEST(Scheduler, AFailedStepEndsWhoHadAPartInItAndNobodyElse) {
  Harness harness(options_with(64, 24));
  const RequestId first = harness.submit(request_of(1, 40, 6, /*n=*/3));
  const RequestId second = harness.submit(request_of(2, 20, 6));
  const RequestId third = harness.submit(request_of(3, 20, 6));
  harness.step();                       // the first one's chunk
  harness.step(/*device_fails=*/true);  // its end, and a start of the second
  EXPECT_EQ(harness.failed, (std::vector{first, second}));
  EXPECT_EQ(harness.num_used_blocks(), 0);
  EXPECT_FALSE(harness.abort(first)) << "it has ended";
  harness.run_until_idle();
  EXPECT_EQ(harness.outputs.size(), 1u);
  EXPECT_TRUE(harness.outputs.contains({third, 0}));
}

TEST(Scheduler, StopsAtWhatNoCallerMayDo) {
  auto options = options_with(64);
  options.max_model_len = 10;
  Scheduler scheduler(options);
  ASSERT_TRUE(add(scheduler, 9));
  const auto step = scheduler.schedule();
  EXPECT_DEATH(scheduler.schedule(), "is not committed");
  EXPECT_DEATH(scheduler.abort(RequestId{1}), "is not committed");
  const SequenceId sequence_id = step.sequences[0].sequence_id;
  EXPECT_DEATH(scheduler.finish(sequence_id), "is not committed");
  const CommittedToken unknown{SequenceId{99}, 1};
  EXPECT_DEATH(scheduler.commit(step, {&unknown, 1}), "sequence 99 does not run");
  const CommittedToken token{sequence_id, 1};
  scheduler.commit(step, {&token, 1});
  EXPECT_DEATH(scheduler.commit(step, {&token, 1}), "is not in flight");
  EXPECT_DEATH(scheduler.discard(step), "is not in flight");
  EXPECT_DEATH(scheduler.schedule(), "the limit is 10") << "a sequence at max_model_len must be ended";
  scheduler.finish(sequence_id);
  EXPECT_DEATH(scheduler.finish(sequence_id), "has ended");
  EXPECT_DEATH(scheduler.prompt_account(RequestId{1}), "request 1 is not known");
  options.max_num_batched_tokens = 0;
  EXPECT_DEATH(Scheduler{options}, "0 tokens, 64 sequences");
  options.max_num_batched_tokens = 1;
  options.max_num_seqs = 0;
  EXPECT_DEATH(Scheduler{options}, "1 tokens, 0 sequences");
}

TEST(Scheduler, AnEmptyStepNeedsNoCommit) {
  Scheduler scheduler(options_with(4));
  const auto step = scheduler.schedule();
  EXPECT_TRUE(step.empty());
  scheduler.commit(step, {});
  scheduler.discard(step);
  EXPECT_TRUE(scheduler.schedule().empty());
}

// ---- what is told

TEST(Scheduler, StampsEventsWithTheirStep) {
  Harness harness(options_with(64));
  Scheduler& scheduler = harness.scheduler;
  ASSERT_TRUE(add(scheduler, 20));
  const auto step = scheduler.schedule();
  const CommittedToken token{step.sequences[0].sequence_id, 1};
  scheduler.commit(step, {&token, 1});
  const auto events = scheduler.take_events();
  ASSERT_EQ(events.size(), 7u);
  for (const BlockEvent& event : events) EXPECT_EQ(event.step, 1);
  using enum BlockEventKind;
  const BlockEventKind expected[] = {kStepBegin, kAlloc, kAlloc, kFill, kFill, kSeal, kStepEnd};
  for (std::size_t i = 0; i < events.size(); ++i) EXPECT_EQ(events[i].kind, expected[i]) << i;
  EXPECT_EQ(events.front().aux, 20) << "scheduled tokens";
  EXPECT_EQ(events.back().aux, 2) << "blocks in use";
  EXPECT_EQ(events[4].aux, 4) << "filled slots";
  EXPECT_TRUE(scheduler.take_events().empty());
}

TEST(Scheduler, TellsPreemptionAndResumeOfEachSequence) {
  Harness harness(options_with(12));
  harness.submit(request_of(1, 70, 40));
  harness.submit(request_of(2, 70, 40));
  std::map<BlockEventKind, int> counts;
  Scheduler& scheduler = harness.scheduler;
  while (scheduler.has_work()) {
    const auto step = scheduler.schedule();
    std::vector<CommittedToken> tokens;
    for (const auto& row : step.sequences) {
      for (const auto& target : row.samples) tokens.push_back({target.sequence_id, 1});
    }
    scheduler.commit(step, tokens);
    for (const auto& event : scheduler.take_events()) ++counts[event.kind];
    for (const auto& token : tokens) {
      for (const auto& sequence : scheduler.snapshot().sequences) {
        if (sequence.sequence_id == token.sequence_id && sequence.num_tokens == 110)
          scheduler.finish(token.sequence_id);
      }
    }
  }
  EXPECT_GT(counts[BlockEventKind::kPreempt], 0);
  EXPECT_EQ(counts[BlockEventKind::kPreempt], counts[BlockEventKind::kResume]);
  EXPECT_EQ(counts[BlockEventKind::kEvict], scheduler.totals().evicted_cached_blocks);
  EXPECT_EQ(counts[BlockEventKind::kStepBegin], counts[BlockEventKind::kStepEnd]);
}

TEST(Scheduler, TheSnapshotShowsBlocksSequencesAndFigures) {
  Harness harness(options_with(30, 64));
  const RequestId running = harness.submit(request_of(1, 40, 20, /*n=*/2));
  const RequestId waiting = harness.submit(request_of(2, 400, 20));
  harness.step();
  const KvSnapshot snapshot = harness.scheduler.snapshot();
  EXPECT_EQ(snapshot.step, 1);
  EXPECT_EQ(snapshot.totals.num_blocks, 30);
  ASSERT_EQ(snapshot.sequences.size(), 3u);
  EXPECT_EQ(snapshot.sequences[0].request_id, running);
  EXPECT_TRUE(snapshot.sequences[1].state == SequenceState::kRunning);
  EXPECT_EQ(snapshot.sequences[1].output_index, 1);
  EXPECT_EQ(snapshot.sequences[1].num_tokens, 41);
  EXPECT_EQ(snapshot.sequences[1].num_computed_tokens, 40);
  EXPECT_EQ(snapshot.sequences[2].request_id, waiting);
  EXPECT_FALSE(snapshot.sequences[2].state == SequenceState::kRunning);
  EXPECT_TRUE(snapshot.sequences[2].block_table.empty());
  const auto& table = snapshot.sequences[0].block_table;
  const auto& second = snapshot.blocks[static_cast<std::size_t>(table[1].value)];
  EXPECT_EQ(second.parent, table[0].value);
  EXPECT_EQ(second.ref_count, 2);
  EXPECT_EQ(snapshot.blocks[static_cast<std::size_t>(table[2].value)].filled, 8);
  EXPECT_EQ(snapshot.figures.unfilled_slots, 8);
}

TEST(Scheduler, TheSameCallsGiveTheSameDecisions) {
  std::vector<BlockEvent> events[2];
  for (auto& recorded : events) {
    Scheduler scheduler(options_with(20, 50));
    for (std::uint64_t i = 1; i <= 10; ++i) {
      NewRequest request{
          .request_id = {i}, .prompt_token_ids = random_like_tokens(i % 3, 60), .sampling = {}};
      request.sampling.n = 1 + static_cast<std::int32_t>(i % 3);
      ASSERT_TRUE(scheduler.add(std::move(request)));
    }
    for (int i = 0; i < 20; ++i) {
      const auto step = scheduler.schedule();
      std::vector<CommittedToken> tokens;
      for (const auto& row : step.sequences) {
        for (const auto& target : row.samples) tokens.push_back({target.sequence_id, 7});
      }
      scheduler.commit(step, tokens);
    }
    recorded = scheduler.take_events();
  }
  ASSERT_EQ(events[0].size(), events[1].size());
  for (std::size_t i = 0; i < events[0].size(); ++i) {
    EXPECT_EQ(events[0][i].block, events[1][i].block);
    EXPECT_EQ(events[0][i].kind, events[1][i].kind);
  }
}

}  // namespace
}  // namespace octavo::scheduler
