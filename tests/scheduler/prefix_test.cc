// What requests find of each other's blocks, and how each prompt token is accounted for.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/scheduler/harness.h"
#include "tests/scheduler/requests.h"

namespace octavo::scheduler {
namespace {

SimulatedRequest continued(SimulatedRequest request, std::uint64_t content, std::int32_t num_more) {
  const Tokens more = random_like_tokens(content, num_more);
  request.prompt.insert(request.prompt.end(), more.begin(), more.end());
  return request;
}

// ---- the account of a prompt's tokens

TEST(PromptAccount, OfAFirstRequestIsAllComputed) {
  Harness harness(options_with(64));
  const RequestId request_id = harness.submit(request_of(1, 40));
  harness.run_until_idle();
  EXPECT_EQ(harness.account_of(request_id), (PromptAccount{.num_computed = 40}));
}

TEST(PromptAccount, TellsHitsOnCachedBlocksAndACopiedStart) {
  Harness harness(options_with(64));
  harness.submit(request_of(1, 40, 1));
  harness.run_until_idle();
  const RequestId next_turn = harness.submit(continued(request_of(1, 40), 9, 20));
  harness.run_until_idle();
  EXPECT_EQ(harness.account_of(next_turn),
            (PromptAccount{.num_computed = 20, .num_hit_cached = 32, .num_copied_partial = 8}));
}

TEST(PromptAccount, TellsHitsOnLiveBlocks) {
  Harness harness(options_with(64));
  harness.submit(request_of(1, 40, 20));
  harness.step();
  const RequestId second = harness.submit(continued(request_of(1, 40), 9, 20));
  harness.run_until_idle();
  EXPECT_EQ(harness.account_of(second), (PromptAccount{.num_computed = 28, .num_hit_live = 32}));
}

TEST(PromptAccount, TellsTokensRestoredFromTheHostPool) {
  SchedulerOptions options = options_with(12, /*max_num_batched_tokens=*/4);
  options.num_host_blocks = 12;
  options.preemption_mode = PreemptionPolicy::kSwap;
  options.enable_prefix_caching = false;
  options.admission_reserve = AdmissionReserve::kOnePercent;
  Harness harness(options);
  harness.submit(request_of(1, 32, 40));
  for (int i = 0; i < 20; ++i) harness.step();
  const RequestId chunked = harness.submit(request_of(2, 128, 4));  // all that the watermark leaves
  const auto step = harness.run_until_preempted(chunked);
  ASSERT_TRUE(step.preemptions[0].is_swap);
  const std::int32_t num_computed = harness.scheduler.sequences_of(chunked)[0].num_computed_tokens;
  ASSERT_GT(num_computed, 0);
  ASSERT_LT(num_computed, 128) << "in the middle of its prompt";
  harness.run_until_idle();
  EXPECT_EQ(harness.account_of(chunked),
            (PromptAccount{.num_computed = 128 - num_computed, .num_restored = num_computed}));
}

TEST(PromptAccount, OfARequestThatDoesNotReadTheCacheSaysSo) {
  Harness harness(options_with(64));
  harness.submit(request_of(1, 40));
  harness.run_until_idle();
  SimulatedRequest asked = request_of(1, 40);
  asked.prompt_logprobs = true;
  const RequestId request_id = harness.submit(asked);
  harness.step();
  EXPECT_EQ(harness.scheduler.prefix_miss(request_id).cause, MissCause::kNotRead);
  harness.run_until_idle();
  EXPECT_EQ(harness.account_of(request_id), (PromptAccount{.num_computed = 40}));
}

TEST(PromptAccount, SaysWhyTheHitEnded) {
  Harness harness(options_with(64));
  harness.submit(request_of(1, 40, 1));
  harness.run_until_idle();
  const auto miss_of = [&](const SimulatedRequest& request) {
    const RequestId request_id = harness.submit(request);
    harness.step();
    const PrefixMiss miss = harness.scheduler.prefix_miss(request_id);
    harness.run_until_idle();
    return miss;
  };
  EXPECT_EQ(miss_of(request_of(1, 40, 2)).cause, MissCause::kNone)
      << "all but the token that must be computed";
  SimulatedRequest different = request_of(1, 40);
  different.prompt[21] = 5000;
  EXPECT_EQ(miss_of(different).cause, MissCause::kDifferingToken);
  different.prompt[20] = 5000;
  EXPECT_EQ(miss_of(different).position, 20);
  SimulatedRequest salted = request_of(1, 40);
  salted.salt = "anna";
  EXPECT_EQ(miss_of(salted).cause, MissCause::kOtherSalt);
  EXPECT_EQ(miss_of(request_of(77, 40)).cause, MissCause::kFirstUse);
  harness.scheduler.reset_prefix_cache();
  EXPECT_EQ(miss_of(request_of(77, 40)).cause, MissCause::kEvicted);
}

TEST(PromptAccount, NamesWhoEvictedAndWhen) {
  Harness harness(options_with(8));
  harness.submit(request_of(1, 40, 1));
  harness.run_until_idle();
  const RequestId greedy = harness.submit(request_of(2, 128, 1));
  const SequenceId greedy_sequence = harness.scheduler.sequences_of(greedy)[0].sequence_id;
  const std::int64_t evicting_step = harness.step().step;
  const RequestId again = harness.submit(request_of(1, 40, 2));
  harness.step();
  const PrefixMiss miss = harness.scheduler.prefix_miss(again);
  EXPECT_EQ(miss.cause, MissCause::kEvicted);
  EXPECT_EQ(miss.evicted_step, evicting_step);
  EXPECT_EQ(miss.evicted_by, greedy_sequence.value);
  harness.run_until_idle();
}

// ---- n samples of a short prompt

TEST(PromptAccount, SixSamplesOfASevenTokenPromptComputeSevenTokens) {
  Harness harness(options_with(64));
  const RequestId request_id = harness.submit(request_of(1, 7, 20, /*n=*/6));
  harness.run_until_idle();
  EXPECT_EQ(harness.num_prefill_tokens, 7);
  EXPECT_EQ(harness.account_of(request_id), (PromptAccount{.num_computed = 7}));
  EXPECT_EQ(harness.outputs.size(), 6u);
}

// ---- no double work

TEST(SamePrefix, ARequestWaitsForWhatAnOlderOneIsAboutToComputeAndThenFindsIt) {
  Harness harness(options_with(64, 32));
  harness.submit(request_of(1, 100, 20));
  const RequestId second = harness.submit(continued(request_of(1, 100), 9, 20));
  for (int i = 0; i < 3; ++i) EXPECT_EQ(requests_in(harness.step()), Requests{1});
  harness.run_until_idle();
  EXPECT_EQ(harness.account_of(second).num_hit_live, 96);
  EXPECT_EQ(harness.num_prefill_tokens, 100 + 24);
}

TEST(SamePrefix, ASystemPromptOfTwoChatsIsComputedOnce) {
  Harness harness(options_with(128, 64));
  const SimulatedRequest shared = request_of(7, 160, 10);
  harness.submit(continued(shared, 1, 30));
  harness.submit(continued(shared, 2, 30));
  harness.submit(continued(shared, 3, 30));
  harness.run_until_idle();
  EXPECT_EQ(harness.num_prefill_tokens, 160 + 3 * 30);
}

TEST(SamePrefix, NobodyWaitsWhenThereIsNothingToShare) {
  const auto both_start = [](SchedulerOptions options, SimulatedRequest first, SimulatedRequest second) {
    Harness harness(options);
    harness.submit(first);
    harness.submit(second);
    return harness.step().sequences.size() == 2;
  };
  const SimulatedRequest request = request_of(1, 40);
  SchedulerOptions uncached = options_with(64);
  uncached.enable_prefix_caching = false;
  SimulatedRequest salted = request, reading = request, different = request, short_of_a_block = request;
  salted.salt = "anna";
  reading.prompt_logprobs = true;
  different.prompt[15] = 5000;
  short_of_a_block.prompt.resize(16);
  EXPECT_FALSE(both_start(options_with(64), request, request));
  EXPECT_TRUE(both_start(uncached, request, request));
  EXPECT_TRUE(both_start(options_with(64), request, salted));
  EXPECT_TRUE(both_start(options_with(64), request, reading)) << "it computes every row itself";
  EXPECT_TRUE(both_start(options_with(64), request, different));
  EXPECT_TRUE(both_start(options_with(64), request, short_of_a_block)) << "its last token must be computed";
}

TEST(SamePrefix, WhatCanBeFoundAlreadyIsNotWaitedFor) {
  Harness harness(options_with(64, 40));
  harness.submit(request_of(1, 100, 10));
  harness.step();  // forty tokens: two blocks can be found
  SimulatedRequest second = request_of(1, 100, 10);
  second.prompt.resize(36);
  harness.submit(second);
  EXPECT_EQ(requests_in(harness.step()), Requests{1}) << "no row is left";
  harness.run_until_idle();
  EXPECT_EQ(harness.account_of(RequestId{2}).num_hit_live, 32);
}

// ---- lookups

TEST(SamePrefix, AWaitingRequestChangesNothingInTheCache) {
  Harness harness(options_with(10));
  harness.submit(request_of(1, 32, 1));  // older
  harness.run_until_idle();
  harness.submit(request_of(2, 32, 1));  // younger
  harness.run_until_idle();
  harness.submit(request_of(3, 90, 40));
  harness.step();
  const RequestId waiting = harness.submit(continued(request_of(1, 32), 9, 100));  // asks in each step
  for (int i = 0; i < 5; ++i) harness.step();
  EXPECT_FALSE(harness.num_cached_tokens.contains(waiting));
  const KvSnapshot snapshot = harness.scheduler.snapshot();
  for (const BlockSnapshot& block : snapshot.blocks) {
    if (block.state == BlockState::kCached) {
      EXPECT_LE(block.last_step, 2);
    }
  }
  harness.abort(waiting);
  harness.run_until_idle();
}

// ---- retention

TEST(RetentionOfRequests, AChatIsStillThereAfterScratchThatCameLater) {
  Harness harness(options_with(12));
  SimulatedRequest chat = request_of(1, 48, 1);
  chat.retention = RetentionClass::kChat;
  harness.submit(chat);
  harness.run_until_idle();
  harness.submit(request_of(2, 48, 1));
  harness.run_until_idle();
  harness.submit(request_of(3, 112, 1));  // takes the place of one of them
  harness.run_until_idle();
  const RequestId again = harness.submit(chat);
  harness.run_until_idle();
  EXPECT_EQ(harness.num_cached_tokens[again], 47);
}

TEST(RetentionOfRequests, WhatIsPinnedGivesWayToTheOnlyRequestThatCouldStart) {
  Harness harness(options_with(8));
  SimulatedRequest pinned = request_of(1, 32, 1);
  pinned.retention = RetentionClass::kPinned;
  harness.submit(pinned);
  harness.run_until_idle();
  harness.submit(request_of(2, 128, 1));  // the whole pool
  EXPECT_EQ(harness.step().sequences.size(), 1u);
  harness.run_until_idle();
  EXPECT_EQ(harness.num_out_of_memory, 0);
}

TEST(RetentionOfRequests, WhatIsPinnedGivesWayToTheOnlyRequestThatCouldGoOn) {
  Harness harness(options_with(8));
  SimulatedRequest pinned = request_of(1, 32, 1);
  pinned.retention = RetentionClass::kPinned;
  harness.submit(pinned);
  harness.run_until_idle();
  harness.submit(request_of(2, 90, 30));  // six blocks, and in the end eight
  harness.run_until_idle();
  EXPECT_EQ(harness.num_out_of_memory, 0);
  EXPECT_EQ(harness.outputs.size(), 2u);
}

TEST(RetentionOfRequests, PinsStayWhileOthersCanStart) {
  Harness harness(options_with(12));
  SimulatedRequest pinned = request_of(1, 32, 1);
  pinned.retention = RetentionClass::kPinned;
  harness.submit(pinned);
  harness.run_until_idle();
  for (std::uint64_t content = 2; content < 12; ++content) {
    harness.submit(request_of(content, 80, 4));
    harness.run_until_idle();
  }
  const RequestId again = harness.submit(pinned);
  harness.run_until_idle();
  EXPECT_EQ(harness.num_cached_tokens[again], 31);
  harness.scheduler.release_pins();
  EXPECT_EQ(harness.scheduler.broken_invariant(), std::nullopt);
}

}  // namespace
}  // namespace octavo::scheduler
