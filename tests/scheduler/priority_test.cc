// The rules between the interactive line and the background one.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>

#include "engine/scheduler/background_turns.h"
#include "tests/scheduler/requests.h"

namespace octavo::scheduler {
namespace {

SimulatedRequest background_of(std::uint64_t content, std::int32_t num_prompt, std::int32_t max_tokens = 8,
                               std::int32_t n = 1) {
  SimulatedRequest request = request_of(content, num_prompt, max_tokens, n);
  request.priority = RequestPriority::kBackground;
  return request;
}

// A row takes as long as any other: 17 of them 17 times as long as one.
std::int64_t us_by_rows(const SchedulerOutput& step) {
  return 100 * (step.num_prefill_tokens + step.num_decode_tokens + step.num_draft_tokens);
}

bool has_rows(const SchedulerOutput& step, RequestId request_id) {
  return std::ranges::find(step.sequences, request_id, &ScheduledSequence::request_id) !=
         step.sequences.end();
}

TEST(Priority, AnInteractiveRequestStartsBeforeBackgroundOnesThatCameEarlier) {
  SchedulerOptions options = options_with(64);
  options.max_num_seqs = 1;
  Harness harness(options);
  const RequestId running = harness.submit(request_of(1, 20));
  harness.step();
  const RequestId first = harness.submit(background_of(2, 20)), second = harness.submit(background_of(3, 20));
  const RequestId interactive = harness.submit(request_of(4, 20));
  harness.run_until_idle();
  EXPECT_EQ(harness.start_order, (std::vector{running, interactive, first, second}));
}

TEST(Priority, TheOutputsOfBothLinesAreThoseOfEachAlone) {
  Harness harness(options_with(200));
  harness.us_of_step = us_by_rows;
  std::vector<RequestId> requests;
  for (std::uint64_t i = 0; i < 6; ++i)
    requests.push_back(harness.submit(i % 2 == 0 ? request_of(i, 30, 40) : background_of(i, 30, 40)));
  harness.run_until_idle();
  for (const RequestId request_id : requests) {
    EXPECT_EQ(harness.outputs.at({request_id, 0}),
              Harness::expected_output(harness.request(request_id), Harness::seed_of(request_id), 0, 40));
  }
}

// 16 programs and a person: the steps that she notices are few.
TEST(Priority, APersonsTokensComeNearlyAsOftenAsAlone) {
  SchedulerOptions options = options_with(600);
  options.target_step_us = 100'000;
  Harness harness(options);
  harness.us_of_step = us_by_rows;
  for (std::uint64_t i = 1; i <= 16; ++i) harness.submit(background_of(i, 40, 4000));
  for (int step = 0; step < 300; ++step) harness.step();  // all of them decode
  const RequestId person = harness.submit(request_of(99, 40, 400));
  std::int64_t us = 0, num_tokens = 0, first_token_us = 0, num_background_rows = 0;
  while (!harness.outputs.contains({person, 0}) && !HasFailure()) {
    const SchedulerOutput step = harness.step();
    us += us_by_rows(step);
    EXPECT_TRUE(has_rows(step, person)) << "it has a part in every step";
    num_background_rows += step.num_decode_tokens - (num_tokens > 0 ? 1 : 0);
    EXPECT_TRUE(step.num_decode_tokens <= 1 || step.num_decode_tokens == 17) << "all of them in a turn";
    if (num_tokens++ == 0) first_token_us = us;
  }
  EXPECT_EQ(num_tokens, 400);
  EXPECT_LE(first_token_us, 40 * 100) << "as on an idle engine";
  const double us_per_token = static_cast<double>(us - first_token_us) / 399.0;
  EXPECT_LT(us_per_token, 1.3 * 100.0);
  EXPECT_GT(us_per_token, 1.2 * 100.0) << "and what may be had is had";
  EXPECT_GT(num_background_rows, 16 * 4);
}

TEST(Priority, BackgroundRequestsHaveAllStepsWhereNobodyInteractiveIs) {
  Harness harness(options_with(64));
  harness.us_of_step = us_by_rows;
  const RequestId first = harness.submit(background_of(1, 20, 30)),
                  second = harness.submit(background_of(2, 20, 30));
  harness.step();
  for (int step = 0; step < 20; ++step) {
    const SchedulerOutput plan = harness.step();
    EXPECT_TRUE(has_rows(plan, first) && has_rows(plan, second));
  }
}

TEST(Priority, BackgroundRequestsNeverStarve) {
  Harness harness(options_with(600));
  harness.us_of_step = [](const SchedulerOutput& step) {
    const bool is_shared = step.sequences.size() > 1;
    return is_shared ? 1'000'000 : 100;  // dear, so that no turn is ever paid for
  };
  const RequestId background = harness.submit(background_of(1, 20, 400));
  harness.submit(request_of(2, 20, 4000));
  int wait = 0, num_turns = 0;
  for (int step = 0; step < 1000; ++step) {
    const bool is_turn = has_rows(harness.step(), background);
    wait = is_turn ? 0 : wait + 1;
    num_turns += is_turn ? 1 : 0;
    ASSERT_LE(wait, kMostStepsBetweenTurns);
  }
  EXPECT_GE(num_turns, 1000 / (kMostStepsBetweenTurns + 1));
}

// Prompts that come one after the other take all rows of their steps, and a turn comes all the same.
TEST(Priority, AStreamOfPromptsDoesNotStarveABackgroundPrompt) {
  Harness harness(options_with(4000, /*max_num_batched_tokens=*/64));
  harness.us_of_step = us_by_rows;
  const RequestId background = harness.submit(background_of(1, 300, 1));
  harness.step();  // it has its blocks
  for (std::uint64_t i = 2; i < 40; ++i) harness.submit(request_of(i, 200, 1));
  int num_steps = 0;
  while (!harness.outputs.contains({background, 0}) && !HasFailure()) {
    harness.step();
    ASSERT_LT(++num_steps, 75 * (kMostStepsBetweenTurns + 1));
  }
  EXPECT_TRUE(harness.scheduler.has_work()) << "it did not wait for all others";
}

// One that never ends leaves no row over, and in a turn it waits.
TEST(Priority, ALongPromptLeavesABackgroundPromptItsTurns) {
  Harness harness(options_with(4000, /*max_num_batched_tokens=*/64));
  harness.us_of_step = us_by_rows;
  const RequestId background = harness.submit(background_of(1, 300, 1));
  harness.step();  // it has its blocks
  const RequestId person = harness.submit(request_of(2, 8000, 1));
  while (!harness.outputs.contains({background, 0}) && harness.scheduler.has_work() && !HasFailure())
    harness.step();
  EXPECT_FALSE(harness.outputs.contains({person, 0})) << "it did not wait for the long one";
}

TEST(Priority, BackgroundGroupsGiveUpTheirBlocksLatestFirstAndNoMoreThanIsNeeded) {
  SchedulerOptions options = options_with(40);
  options.enable_prefix_caching = false;
  Harness harness(options);
  const RequestId first = harness.submit(background_of(1, 150, 40)),
                  second = harness.submit(background_of(2, 150, 40)),
                  third = harness.submit(background_of(3, 150, 40));
  harness.step();
  const RequestId person = harness.submit(request_of(4, 150, 10));  // 10 blocks; 10 are left, and a watermark
  const SchedulerOutput way = harness.step();
  ASSERT_EQ(way.preemptions.size(), 1u);
  EXPECT_EQ(way.preemptions.front().request_id, third);
  EXPECT_TRUE(way.admissions.empty());
  const SchedulerOutput start = harness.step();
  ASSERT_EQ(start.admissions.size(), 1u);
  EXPECT_EQ(start.admissions.front().request_id, person);
  harness.run_until_idle();
  EXPECT_EQ(harness.outputs.size(), 4u);
  EXPECT_TRUE(harness.outputs.contains({first, 0}) && harness.outputs.contains({second, 0}));
}

TEST(Priority, ASeatIsGivenUpToo) {
  SchedulerOptions options = options_with(100);
  options.max_num_seqs = 2;
  Harness harness(options);
  harness.submit(background_of(1, 20, 100));
  const RequestId second = harness.submit(background_of(2, 20, 100));
  harness.step();
  const RequestId person = harness.submit(request_of(3, 20, 10));
  EXPECT_EQ(harness.step().preemptions.front().request_id, second);
  EXPECT_TRUE(has_rows(harness.step(), person));
}

TEST(Priority, AnInteractiveGroupTakesBlocksFromABackgroundOneThatCameEarlier) {
  SchedulerOptions options = options_with(16);
  options.enable_prefix_caching = false;
  Harness harness(options);
  const RequestId background = harness.submit(background_of(1, 60, 150));
  harness.step();
  const RequestId person = harness.submit(request_of(2, 60, 150));
  harness.run_until_idle();
  ASSERT_FALSE(harness.preemptions.empty());
  for (const Preemption& preemption : harness.preemptions) EXPECT_EQ(preemption.request_id, background);
  EXPECT_TRUE(harness.outputs.contains({person, 0}) && harness.outputs.contains({background, 0}));
}

// It has rows in its turns only: whoever a person waits for does not wait for what it computes.
TEST(Priority, NobodyInteractiveWaitsForAPrefixThatABackgroundGroupComputes) {
  SchedulerOptions options = options_with(200, /*max_num_batched_tokens=*/64);
  Harness harness(options);
  harness.us_of_step = us_by_rows;
  harness.submit(background_of(1, 1000));
  harness.step();
  const RequestId person = harness.submit(request_of(1, 1000));
  EXPECT_TRUE(has_rows(harness.step(), person));
}

// What comes meanwhile waits until the step has ended.
TEST(Priority, ABackgroundPromptKeepsToTheTargetAlone) {
  SchedulerOptions options = options_with(600);
  options.target_step_us = 10'000;
  Harness harness(options);
  MeasuredCosts costs;
  costs.steps.learn({.num_rows = 1}, 100.0);
  harness.scheduler.set_costs(costs);
  harness.submit(background_of(1, 2000));
  EXPECT_EQ(harness.step().num_prefill_tokens, 100);
  Harness alone(options);
  alone.scheduler.set_costs(costs);
  alone.submit(request_of(1, 2000));
  EXPECT_EQ(alone.step().num_prefill_tokens, 512);
}

// The baselines neither preempt nor join a batch: the line is an order there.
TEST(Priority, UnderABaselineTheLineIsAnOrder) {
  SchedulerOptions options = options_with(600);
  options.batching_policy = BatchingPolicy::kStatic;
  Harness harness(options);
  harness.us_of_step = us_by_rows;
  const RequestId background = harness.submit(background_of(1, 20, 30));
  harness.step();
  const RequestId person = harness.submit(request_of(2, 20, 10));
  for (int step = 0; step < 20; ++step) EXPECT_TRUE(has_rows(harness.step(), background));
  harness.run_until_idle();
  EXPECT_EQ(harness.start_order, (std::vector{background, person}));
  EXPECT_TRUE(harness.preemptions.empty());
}

// ---- an output that nobody wants any more

SequenceId sequence_of(const Harness& harness, RequestId request_id, std::uint32_t output_index) {
  const auto views = harness.scheduler.sequences_of(request_id);
  return std::ranges::find(views, output_index, &Scheduler::SequenceView::output_index)->sequence_id;
}

// The lead computes the prompt for all, and goes on with it.
TEST(EndedOutputs, BeforeItsPromptIsComputedAnOutputGetsNoToken) {
  for (const std::uint32_t ended : {0u, 1u, 2u}) {
    Harness harness(options_with(100, /*max_num_batched_tokens=*/32));
    const RequestId request_id = harness.submit(request_of(1, 100, 10, /*n=*/3));
    harness.step();
    harness.finish_early(sequence_of(harness, request_id, ended));
    harness.run_until_idle();
    EXPECT_EQ(harness.outputs.size(), 2u);
    EXPECT_FALSE(harness.outputs.contains({request_id, ended}));
    for (const auto& [output, tokens] : harness.outputs) {
      EXPECT_EQ(tokens, Harness::expected_output(harness.request(request_id), Harness::seed_of(request_id),
                                                 output.second, 10));
    }
    EXPECT_EQ(harness.num_prefill_tokens, 100) << "the prompt was computed once";
    EXPECT_EQ(harness.num_used_blocks(), 0);
  }
}

TEST(EndedOutputs, WhileItWaitsToBeComputedAgain) {
  SchedulerOptions options = options_with(22);
  options.preemption_mode = PreemptionPolicy::kRecompute;
  for (const std::uint32_t ended : {0u, 1u, 2u}) {
    Harness harness(options);
    harness.submit(request_of(1, 100, 100, /*n=*/2));
    const RequestId second = harness.submit(request_of(2, 100, 30, /*n=*/3));
    harness.run_until_preempted(second);
    harness.finish_early(sequence_of(harness, second, ended));
    harness.run_until_idle();
    EXPECT_EQ(harness.outputs.size(), 4u);
    EXPECT_FALSE(harness.outputs.contains({second, ended}));
  }
}

TEST(EndedOutputs, WhileItIsSwappedOut) {
  SchedulerOptions options = options_with(22);
  options.num_host_blocks = 22;
  options.preemption_mode = PreemptionPolicy::kSwap;
  for (const std::uint32_t ended : {0u, 1u, 2u}) {
    Harness harness(options);
    harness.submit(request_of(1, 100, 100, /*n=*/2));
    const RequestId second = harness.submit(request_of(2, 100, 30, /*n=*/3));
    harness.run_until_preempted(second);
    harness.finish_early(sequence_of(harness, second, ended));
    harness.run_until_idle();
    EXPECT_EQ(harness.outputs.size(), 4u);
    EXPECT_FALSE(harness.outputs.contains({second, ended}));
  }
}

TEST(EndedOutputs, NotTheLastThatTheirPromptIsComputedFor) {
  Harness harness(options_with(100, /*max_num_batched_tokens=*/32));
  const RequestId request_id = harness.submit(request_of(1, 100, 10, /*n=*/2));
  harness.step();
  harness.finish_early(sequence_of(harness, request_id, 0));
  EXPECT_DEATH(harness.scheduler.finish(sequence_of(harness, request_id, 1)), "computes a prompt for nobody");
}

}  // namespace
}  // namespace octavo::scheduler
