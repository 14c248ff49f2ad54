#include "engine/scheduler/preemption_choice.h"

#include <gtest/gtest.h>

namespace octavo::scheduler {
namespace {

// A token takes a microsecond to compute again, if that was measured.
MeasuredCosts costs_of(std::optional<double> us_per_block, bool knows_tokens = true) {
  MeasuredCosts costs{.us_per_swapped_block = us_per_block, .steps = {}};
  if (knows_tokens) costs.steps.learn(StepWork::of_rows(0, 1), 1.0);
  return costs;
}

constexpr PreemptedGroup kSingle{.num_sequences = 1, .num_blocks = 6, .num_tokens = 90};
constexpr PreemptedGroup kSeveral{.num_sequences = 3, .num_blocks = 6, .num_tokens = 90};

TEST(PreemptionChoice, OrdersAreObeyedWhateverWasMeasured) {
  for (const double us_per_block : {0.0, 1000.0}) {
    const MeasuredCosts costs = costs_of(us_per_block);
    EXPECT_TRUE(prefers_swap(kSingle, PreemptionPolicy::kSwap, costs));
    EXPECT_FALSE(prefers_swap(kSeveral, PreemptionPolicy::kRecompute, costs));
  }
}

// Twelve moves against ninety tokens.
TEST(PreemptionChoice, TakesWhatWasMeasuredToBeCheaper) {
  for (const auto policy : {PreemptionPolicy::kAuto, PreemptionPolicy::kCost}) {
    for (const PreemptedGroup& group : {kSingle, kSeveral}) {
      EXPECT_TRUE(prefers_swap(group, policy, costs_of(7.4)));
      EXPECT_FALSE(prefers_swap(group, policy, costs_of(7.5)));
    }
  }
}

TEST(PreemptionChoice, RecomputesOneAndSwapsSeveralBeforeAnythingWasMeasured) {
  for (const auto policy : {PreemptionPolicy::kAuto, PreemptionPolicy::kCost}) {
    for (const MeasuredCosts& costs : {MeasuredCosts{}, costs_of(1.0, /*knows_tokens=*/false)}) {
      EXPECT_FALSE(prefers_swap(kSingle, policy, costs));
      EXPECT_TRUE(prefers_swap(kSeveral, policy, costs));
    }
  }
}

TEST(PreemptionChoice, OnlyCostTriesASwapThatWasNeverMeasured) {
  const MeasuredCosts costs = costs_of(std::nullopt);
  EXPECT_FALSE(prefers_swap(kSingle, PreemptionPolicy::kAuto, costs));
  EXPECT_TRUE(prefers_swap(kSingle, PreemptionPolicy::kCost, costs));
}

}  // namespace
}  // namespace octavo::scheduler
