#include "engine/scheduler/step_budget.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <utility>

#include "tests/scheduler/requests.h"

namespace octavo::scheduler {
namespace {

constexpr std::int64_t kTarget = 1000;  // us

// A row takes 10 us, wherever it is.
StepCosts ten_us_a_row() {
  StepCosts costs;
  costs.learn({.num_rows = 1}, 10.0);
  return costs;
}

TEST(StepBudget, APromptAloneGetsAllRows) {
  const StepCosts costs = ten_us_a_row();
  StepBudget budget(512, kTarget, costs);
  EXPECT_EQ(budget.take_chunk(0, 2000), 512);
  EXPECT_EQ(budget.num_left(), 0);
  EXPECT_FALSE(budget.has_rows_for_prompts());
}

TEST(StepBudget, BesideADecodeAPromptGetsWhatIsLeftOfTheTarget) {
  const StepCosts costs = ten_us_a_row();
  StepBudget budget(512, kTarget, costs);
  for (int row = 0; row < 3; ++row) budget.take_decode(7);
  EXPECT_EQ(budget.take_chunk(0, 2000), 97);
  EXPECT_EQ(budget.num_taken(), 100);
  EXPECT_FALSE(budget.has_rows_for_prompts());
  EXPECT_EQ(budget.take_chunk(0, 2000), 0);
}

TEST(StepBudget, PromptsShareTheTarget) {
  const StepCosts costs = ten_us_a_row();
  StepBudget budget(512, kTarget, costs);
  budget.take_decode(7);
  EXPECT_EQ(budget.take_chunk(0, 40), 40);
  EXPECT_TRUE(budget.has_rows_for_prompts());
  EXPECT_EQ(budget.take_chunk(0, 2000), 59);
}

TEST(StepBudget, RowsFarBackAreFewer) {
  StepCosts costs;
  for (int round = 0; round < 50; ++round) {
    costs.learn(StepWork::of_rows(0, 1), 10.0);
    costs.learn(StepWork::of_rows(5000, 1), 60.0);
  }
  std::int32_t before = 512;
  for (const std::int32_t position : {0, 2000, 5000}) {
    StepBudget budget(512, kTarget, costs);
    budget.take_decode(0);
    const std::int32_t num_rows = budget.take_chunk(position, 2000);
    EXPECT_LT(num_rows, before) << position;
    EXPECT_NEAR(costs.us_of(StepWork::of_rows(0, 1) + StepWork::of_rows(position, num_rows)), 1000.0, 60.0);
    before = num_rows;
  }
  EXPECT_LT(before, 25);
}

// As many decodes as take longer than the target: prompts go on all the same, and share the fewest rows.
TEST(StepBudget, APromptAlwaysGoesOn) {
  const StepCosts costs = ten_us_a_row();
  StepBudget budget(512, kTarget, costs);
  for (int row = 0; row < 300; ++row) budget.take_decode(7);
  EXPECT_TRUE(budget.has_rows_for_prompts());
  EXPECT_EQ(budget.take_chunk(0, 3), 3);
  EXPECT_EQ(budget.take_chunk(0, 2000), kFewestPromptRows - 3);
  EXPECT_FALSE(budget.has_rows_for_prompts());
}

TEST(StepBudget, BeforeAnythingWasMeasuredPromptsBesideDecodesGetTheFewestRows) {
  const StepCosts costs;
  StepBudget beside(512, kTarget, costs), alone(512, kTarget, costs);
  beside.take_decode(7);
  EXPECT_EQ(beside.take_chunk(0, 2000), kFewestPromptRows);
  EXPECT_EQ(alone.take_chunk(0, 2000), 512);
}

TEST(StepBudget, WithoutATargetItIsACount) {
  const StepCosts costs = ten_us_a_row();
  StepBudget budget(512, 0, costs);
  budget.take_decode(7);
  budget.take_draft(8, 3);
  EXPECT_EQ(budget.take_chunk(0, 2000), 508);
}

TEST(StepBudget, ADraftBesideAPromptEndsByTheTarget) {
  const StepCosts costs = ten_us_a_row();
  StepBudget alone(512, kTarget, costs), beside(512, kTarget, costs), late(512, kTarget, costs);
  for (StepBudget* budget : {&alone, &beside, &late}) budget->take_decode(7);
  EXPECT_EQ(alone.most_draft_rows(8), 511) << "an output by itself holds nobody up";
  beside.take_chunk(0, 92);
  EXPECT_EQ(beside.most_draft_rows(8), 7);
  beside.take_draft(8, 7);
  EXPECT_EQ(beside.most_draft_rows(15), 0);
  late.take_chunk(0, 2000);
  EXPECT_EQ(late.num_taken(), 100);
  EXPECT_EQ(late.most_draft_rows(8), 0);
}

TEST(StepBudget, BeforeAnythingWasMeasuredThereIsNoDraftBesideAPrompt) {
  const StepCosts costs;
  StepBudget budget(512, kTarget, costs);
  budget.take_decode(7);
  budget.take_chunk(0, 2);
  EXPECT_EQ(budget.most_draft_rows(8), 0);
}

// ---- in a step

SchedulerOptions with_target(std::int32_t target_step_us) {
  SchedulerOptions options = options_with(1000);
  options.target_step_us = target_step_us;
  return options;
}

MeasuredCosts ten_us() { return {.us_per_swapped_block = {}, .steps = ten_us_a_row()}; }

std::int32_t num_rows_of(const SchedulerOutput& step, RequestId request_id) {
  std::int32_t num_rows = 0;
  for (const ScheduledSequence& row : step.sequences) {
    if (row.request_id == request_id) num_rows += static_cast<std::int32_t>(row.token_ids.size());
  }
  return num_rows;
}

TEST(SharedStep, APromptThatArrivesBesideAnOutputGetsWhatTheTargetLeaves) {
  Harness harness(with_target(1000));
  harness.scheduler.set_costs(ten_us());
  harness.submit(request_of(1, 600, 50));
  EXPECT_EQ(num_rows_of(harness.step(), kFirst), 512) << "alone";
  harness.step();
  harness.submit(request_of(2, 600, 4));
  for (int step = 0; step < 6; ++step) {
    const SchedulerOutput plan = harness.step();
    EXPECT_EQ(num_rows_of(plan, kFirst), 1);
    EXPECT_EQ(num_rows_of(plan, kSecond), 99);
  }
  harness.run_until_idle();
  EXPECT_EQ(harness.outputs.size(), 2u);
}

// First come, first served: the later prompt starts with what the earlier one leaves.
TEST(SharedStep, ALaterPromptWaitsForRows) {
  Harness harness(with_target(1000));
  harness.scheduler.set_costs(ten_us());
  harness.submit(request_of(1, 10, 50));
  harness.step();
  harness.submit(request_of(2, 150, 4));
  harness.submit(request_of(3, 150, 4));
  EXPECT_EQ(requests_in(harness.step()), (Requests{1, 2}));
  const SchedulerOutput plan = harness.step();
  EXPECT_EQ(num_rows_of(plan, kSecond), 51);
  EXPECT_EQ(num_rows_of(plan, kThird), 48);
}

// A step of 5 rows has room for 3 guesses by their own rule, and none by the target.
TEST(SharedStep, AnOutputGuessesAgainWhenThePromptIsComputed) {
  SchedulerOptions options = with_target(50);
  options.speculative = Speculation::kNgram;
  Harness harness(options);
  harness.scheduler.set_costs(ten_us());
  SimulatedRequest repeating = request_of(1, 20, 400);
  repeating.period = 4;
  harness.submit(repeating);
  for (int step = 0; step < 30; ++step) harness.step();
  ASSERT_GT(std::exchange(harness.num_draft_tokens, 0), 0);
  harness.submit(request_of(2, 100, 1));
  for (int step = 0; step < 25; ++step) EXPECT_EQ(num_rows_of(harness.step(), kSecond), 4);
  EXPECT_EQ(harness.num_draft_tokens, 0);
  for (int step = 0; step < 30; ++step) harness.step();
  EXPECT_GT(harness.num_draft_tokens, 0);
}

// Measurements tell prompts and decodes apart: nobody shares.
TEST(SharedStep, PrefillFirstKnowsNoTarget) {
  SchedulerOptions options = with_target(1000);
  options.prefill_first = true;
  Harness harness(options);
  harness.scheduler.set_costs(ten_us());
  harness.submit(request_of(1, 10, 50));
  harness.step();
  harness.submit(request_of(2, 600, 4));
  const SchedulerOutput plan = harness.step();
  EXPECT_EQ(num_rows_of(plan, kFirst), 0);
  EXPECT_EQ(num_rows_of(plan, kSecond), 512);
}

// However the prompt is split, everybody gets the tokens that the model says alone (the harness compares).
TEST(SharedStep, TheSplitChangesNoToken) {
  for (const std::int32_t target_us : {0, 1, 700, 5000}) {
    Harness harness(with_target(target_us));
    harness.scheduler.set_costs(ten_us());
    for (std::uint64_t content = 1; content <= 4; ++content) {
      harness.submit(request_of(content, 300, 30));
      for (int step = 0; step < 3; ++step) harness.step();
    }
    harness.run_until_idle();
    ASSERT_EQ(harness.outputs.size(), 4u);
    for (const auto& [key, output] : harness.outputs) {
      const auto [request_id, index] = key;
      EXPECT_EQ(output, Harness::expected_output(harness.request(request_id), Harness::seed_of(request_id),
                                                 index, 30));
    }
  }
}

}  // namespace
}  // namespace octavo::scheduler
