#include "engine/scheduler/measured_costs.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace octavo::scheduler {
namespace {

// A device: a row takes 1,000 us, and 0.5 us more for each token that it attends to.
double true_us(const StepWork& work) {
  return 1000.0 * static_cast<double>(work.num_rows) + 0.5 * static_cast<double>(work.num_context_tokens);
}

// A prompt in chunks, on a machine that is `slowdown` times as slow.
void learn_prompt(StepCosts& costs, std::int32_t begin, std::int32_t end, std::int32_t num_rows,
                  double slowdown = 1.0) {
  for (std::int32_t position = begin; position < end; position += num_rows) {
    const StepWork chunk = StepWork::of_rows(position, num_rows);
    costs.learn(chunk, slowdown * true_us(chunk));
  }
}

void expect_known(const StepCosts& costs, const StepWork& work, double tolerance) {
  EXPECT_NEAR(costs.us_of(work) / true_us(work), 1.0, tolerance)
      << work.num_rows << " rows on " << work.num_context_tokens;
}

TEST(StepWork, CountsWhatEachRowAttendsTo) {
  EXPECT_EQ(StepWork::of_rows(0, 1).num_context_tokens, 1);
  EXPECT_EQ(StepWork::of_rows(10, 3).num_context_tokens, 11 + 12 + 13);
  EXPECT_EQ((StepWork::of_rows(0, 2) + StepWork::of_rows(7, 1)).num_context_tokens, 1 + 2 + 8);
  EXPECT_EQ((StepWork::of_rows(0, 2) + StepWork::of_rows(7, 1)).num_rows, 3);
}

TEST(StepCosts, OneStepIsEnoughForAnotherLikeIt) {
  StepCosts costs;
  EXPECT_FALSE(costs.is_known());
  costs.learn(StepWork::of_rows(0, 16), true_us(StepWork::of_rows(0, 16)));
  EXPECT_TRUE(costs.is_known());
  expect_known(costs, StepWork::of_rows(16, 16), 0.05);
}

// A row at 7,000 takes four and a half times what one at the start takes; a new prompt is at the start again.
TEST(StepCosts, APromptTellsWhatContextCosts) {
  StepCosts costs;
  learn_prompt(costs, 0, 7000, 50);
  for (const std::int32_t position : {0, 2000, 7000}) {
    expect_known(costs, StepWork::of_rows(position, 40), 0.05);
  }
}

TEST(StepCosts, AreTheSameForStepsOfAnySize) {
  StepCosts costs;
  learn_prompt(costs, 0, 4096, 512);
  expect_known(costs, StepWork::of_rows(0, 16) + StepWork::of_rows(3000, 1), 0.1);
}

// Twice as slow, then as before: either way a few steps are enough, and what context costs is not forgotten.
TEST(StepCosts, FollowAMachineThatOthersUse) {
  StepCosts costs;
  learn_prompt(costs, 0, 2000, 50);
  learn_prompt(costs, 2000, 2250, 50, 2.0);
  const StepWork next = StepWork::of_rows(2250, 50);
  EXPECT_NEAR(costs.us_of(next) / true_us(next), 2.0, 0.1);
  learn_prompt(costs, 2250, 2500, 50);
  expect_known(costs, StepWork::of_rows(2500, 50), 0.1);
  expect_known(costs, StepWork::of_rows(0, 50), 0.2);
}

// One step took a hundred times as long, as after a laptop was closed.
TEST(StepCosts, OneStepThatWasHeldUpIsForgottenSoon) {
  StepCosts costs;
  learn_prompt(costs, 0, 2000, 50);
  learn_prompt(costs, 2000, 2050, 50, 100.0);
  const StepWork next = StepWork::of_rows(2050, 50);
  EXPECT_LT(costs.us_of(next) / true_us(next), 10.0);
  learn_prompt(costs, 2050, 2500, 50);
  EXPECT_LT(costs.us_of(next) / true_us(next), 1.3);
}

// From a few neighbouring chunks, one of them slow by chance, no row is promised for free.
TEST(StepCosts, ANoisyStartPromisesNothing) {
  StepCosts costs;
  costs.learn(StepWork::of_rows(6000, 16), 0.9 * true_us(StepWork::of_rows(6000, 16)));
  costs.learn(StepWork::of_rows(6016, 16), 1.1 * true_us(StepWork::of_rows(6016, 16)));
  EXPECT_GT(costs.us_of(StepWork::of_rows(0, 16)), true_us(StepWork::of_rows(0, 16)));
}

TEST(StepCosts, AClockThatStandsStillIsNoDivisionByZero) {
  StepCosts costs;
  for (int count = 0; count < 100; ++count) costs.learn(StepWork::of_rows(count, 1), 0.0);
  EXPECT_GT(costs.us_of(StepWork::of_rows(0, 1)), 0.0);
  EXPECT_LT(costs.us_of(StepWork::of_rows(0, 1)), 1.0);
}

}  // namespace
}  // namespace octavo::scheduler
