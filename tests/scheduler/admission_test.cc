// Who may start: the watermark, batching policies, and managers that reserve contiguous runs.
#include <gtest/gtest.h>

#include "tests/scheduler/harness.h"
#include "tests/scheduler/requests.h"

namespace octavo::scheduler {
namespace {

// ---- the watermark

std::size_t num_started_of_two(AdmissionReserve reserve, std::int32_t num_blocks, std::int32_t max_tokens) {
  SchedulerOptions options = options_with(num_blocks);
  options.admission_reserve = reserve;
  Harness harness(options);
  harness.submit(request_of(1, 160, max_tokens));
  harness.submit(request_of(2, 160, max_tokens));
  const std::size_t num_started = harness.step().sequences.size();
  harness.run_until_idle();
  return num_started;
}

TEST(Admission, WithoutABlockPerSequenceTheWatermarkIsOnePercent) {
  EXPECT_EQ(num_started_of_two(AdmissionReserve::kBlockPerSequence, 21, 2), 1u) << "ten and ten leave one";
  EXPECT_EQ(num_started_of_two(AdmissionReserve::kOnePercent, 21, 2), 2u);
}

TEST(Admission, ALookAheadLeavesWhatIsTakenInTheNextStepsAndNoMore) {
  constexpr auto kLookAhead = AdmissionReserve::kLookAhead;
  EXPECT_EQ(num_started_of_two(kLookAhead, 20, 1), 2u) << "neither takes a block more";
  EXPECT_EQ(num_started_of_two(kLookAhead, 21, 2), 1u) << "each takes one with its second token";
  EXPECT_EQ(num_started_of_two(kLookAhead, 22, 2), 2u);
  EXPECT_EQ(num_started_of_two(kLookAhead, 23, 40), 1u) << "each takes two in 17 steps";
  EXPECT_EQ(num_started_of_two(kLookAhead, 24, 40), 2u);
}

TEST(Admission, ALookAheadCountsOnWhoEnds) {
  for (const std::int32_t num_left : {8, 40}) {
    Harness harness(looking_ahead(20));
    harness.submit(request_of(1, 150, 10 + num_left));
    for (int i = 0; i < 10; ++i) harness.step();
    harness.submit(request_of(2, 128, 40));
    EXPECT_EQ(harness.step().sequences.size(), num_left == 8 ? 2u : 1u);
    harness.run_until_idle();
    EXPECT_TRUE(harness.preemptions.empty());
  }
}

TEST(Admission, ALookAheadDoesNotCountOnBlocksThatOthersHoldToo) {
  for (const std::int32_t num_blocks : {20, 21}) {
    Harness harness(looking_ahead(num_blocks));
    harness.submit(request_of(1, 144, 40));
    harness.step();
    SimulatedRequest second = request_of(1, 144, 8);  // ends soon, and has one block of its own
    second.prompt.push_back(3);
    harness.submit(second);
    harness.step();
    harness.submit(request_of(2, 128, 40));
    EXPECT_EQ(harness.step().sequences.size(), num_blocks == 20 ? 2u : 3u);
    harness.run_until_idle();
  }
}

TEST(Admission, BlocksThatOthersUseAlreadyCostNothing) {
  Harness harness(options_with(16));
  harness.submit(request_of(1, 160, 40));
  harness.step();
  SimulatedRequest second = request_of(1, 160, 4);
  second.prompt.push_back(3);  // ten blocks found in use, one more
  harness.submit(second);
  EXPECT_EQ(harness.step().sequences.size(), 2u);
  harness.run_until_idle();
}

TEST(Admission, PinnedBlocksAreNotThereToBeTaken) {
  Harness harness(options_with(20));
  SimulatedRequest pinned = request_of(1, 80, 1);
  pinned.retention = RetentionClass::kPinned;
  harness.submit(pinned);
  harness.run_until_idle();  // five blocks of twenty are pinned
  harness.submit(request_of(2, 100, 4));
  harness.submit(request_of(3, 100, 4));
  EXPECT_EQ(requests_in(harness.step()), Requests{2})
      << "seven and seven of fifteen leave one; two must stay";
  harness.run_until_idle();
}

// ---- batching policies

SchedulerOptions with_policy(BatchingPolicy policy) {
  SchedulerOptions options = options_with(64);
  options.batching_policy = policy;
  return options;
}

TEST(BatchingPolicies, IterationLevelStartsARequestInAnyStep) {
  Harness harness(with_policy(BatchingPolicy::kIteration));
  harness.submit(request_of(1, 20, 10));
  harness.step();
  harness.submit(request_of(2, 20, 10));
  EXPECT_EQ(requests_in(harness.step()), (Requests{1, 2}));
  harness.run_until_idle();
}

TEST(BatchingPolicies, AStaticBatchEndsBeforeTheNextOneStarts) {
  Harness harness(with_policy(BatchingPolicy::kStatic));
  harness.submit(request_of(1, 20, 4));
  harness.submit(request_of(2, 20, 8));
  EXPECT_EQ(requests_in(harness.step()), (Requests{1, 2}));
  harness.submit(request_of(3, 20, 4));
  harness.submit(request_of(4, 20, 4));
  for (int i = 1; i < 8; ++i) {
    EXPECT_EQ(requests_in(harness.step()), i < 4 ? (Requests{1, 2}) : Requests{2}) << "step " << i;
  }
  EXPECT_EQ(requests_in(harness.step()), (Requests{3, 4}));
  harness.run_until_idle();
}

TEST(BatchingPolicies, OneAtATimeRunsOneRequestWithAllItsOutputs) {
  Harness harness(with_policy(BatchingPolicy::kOneAtATime));
  harness.submit(request_of(1, 20, 3, /*n=*/2));
  harness.submit(request_of(2, 20, 3));
  for (int i = 0; i < 3; ++i) {
    for (const std::uint64_t request : requests_in(harness.step())) EXPECT_EQ(request, 1u);
  }
  EXPECT_EQ(requests_in(harness.step()), Requests{2});
  harness.run_until_idle();
}

TEST(BatchingPolicies, WhoWasPreemptedResumesUnderAnyOfThem) {
  for (const auto policy : {BatchingPolicy::kStatic, BatchingPolicy::kIteration}) {
    SchedulerOptions options = options_with(12);
    options.batching_policy = policy;
    Harness harness(options);
    harness.submit(request_of(1, 70, 60));
    harness.submit(request_of(2, 70, 60));
    harness.run_until_preempted(RequestId{2});
    harness.run_until_idle();
    EXPECT_EQ(harness.outputs.size(), 2u);
  }
}

// ---- contiguous managers (Orca's)

SchedulerOptions with_manager(MemoryManager manager, std::int32_t num_blocks) {
  SchedulerOptions options = options_with(num_blocks);
  options.memory_manager = manager;
  options.max_model_len = 2048;
  options.num_host_blocks = num_blocks;  // of no use to them
  return options;
}

std::int32_t blocks_reserved_by(MemoryManager manager, std::int32_t num_prompt, std::int32_t max_tokens,
                                std::int32_t n = 1) {
  Harness harness(with_manager(manager, 512));
  harness.submit(request_of(1, num_prompt, max_tokens, n));
  harness.step();
  return harness.num_used_blocks();
}

TEST(ContiguousManagers, ReserveARunOfAPowerOfTwoForPromptAndEstimate) {
  EXPECT_EQ(blocks_reserved_by(MemoryManager::kOrcaMax, 20, 25), 128);
  EXPECT_EQ(blocks_reserved_by(MemoryManager::kOrcaPow2, 20, 25), 4) << "52 tokens";
  EXPECT_EQ(blocks_reserved_by(MemoryManager::kOrcaPow2, 40, 25), 8) << "72 tokens";
  EXPECT_EQ(blocks_reserved_by(MemoryManager::kOrcaOracle, 40, 25), 8) << "65 tokens";
  EXPECT_EQ(blocks_reserved_by(MemoryManager::kOrcaOracle, 39, 25), 4) << "64 tokens";
}

TEST(ContiguousManagers, ShareNothing) {
  EXPECT_EQ(blocks_reserved_by(MemoryManager::kOrcaOracle, 39, 25, /*n=*/3), 12);
  Harness harness(with_manager(MemoryManager::kOrcaOracle, 64));
  harness.submit(request_of(1, 39, 5, /*n=*/3));
  harness.run_until_idle();
  EXPECT_EQ(harness.num_prefill_tokens, 3 * 39) << "each output computes the prompt itself";
  EXPECT_EQ(harness.scheduler.totals().cow_copies, 0);
  EXPECT_EQ(harness.scheduler.figures().free_blocks, 64) << "and nothing is kept";
  harness.submit(request_of(1, 39, 5));
  harness.run_until_idle();
  EXPECT_EQ(harness.num_prefill_tokens, 4 * 39);
  EXPECT_EQ(harness.outputs.size(), 4u);
}

TEST(ContiguousManagers, GiveAGroupAllItsRunsOrNone) {
  Harness harness(with_manager(MemoryManager::kOrcaOracle, 16));
  harness.submit(request_of(1, 39, 25));            // four blocks
  harness.submit(request_of(2, 100, 28, /*n=*/2));  // eight each: one would fit now
  harness.submit(request_of(3, 39, 25));            // would fit beside the first
  EXPECT_EQ(requests_in(harness.step()), Requests{1});
  EXPECT_EQ(harness.num_used_blocks(), 4);
  harness.run_until_idle();
  EXPECT_EQ(harness.outputs.size(), 4u);
  EXPECT_TRUE(harness.preemptions.empty()) << "what was reserved is enough";
}

TEST(ContiguousManagers, RefuseWithTheNumbersWhatCannotEverFit) {
  Scheduler scheduler(with_manager(MemoryManager::kOrcaMax, 255));
  NewRequest request{
      .request_id = RequestId{1}, .prompt_token_ids = random_like_tokens(1, 20), .sampling = {}};
  request.sampling.n = 2;
  const auto refused = scheduler.add(request);
  ASSERT_FALSE(refused) << "a pool of 255 has one run of 128";
  EXPECT_NE(refused.error().message.find("at least 256 KV blocks"), std::string::npos)
      << refused.error().message;
  EXPECT_NE(refused.error().message.find("the pool has 255"), std::string::npos);
  request.sampling.n = 1;
  EXPECT_TRUE(scheduler.add(request));
}

TEST(ContiguousManagers, EndWhenAnOutputOutgrowsItsEstimateOnlyAtTheModelsLength) {
  SchedulerOptions options = with_manager(MemoryManager::kOrcaMax, 16);
  options.max_model_len = 100;
  Harness harness(options);
  harness.submit(request_of(1, 20, 1000));
  harness.run_until_idle();
  EXPECT_EQ(harness.outputs.begin()->second.size(), 80u);
}

}  // namespace
}  // namespace octavo::scheduler
