#include "engine/scheduler/preemption_choice.h"

#include <gtest/gtest.h>

namespace octavo::scheduler {
namespace {

constexpr PreemptedGroup kSingle{.num_sequences = 1, .num_blocks = 6, .num_tokens = 90};
constexpr PreemptedGroup kSeveral{.num_sequences = 3, .num_blocks = 6, .num_tokens = 90};

TEST(PreemptionChoice, OrdersAreObeyedWhateverWasMeasured) {
  for (const double us_per_block : {0.0, 1000.0}) {
    const PreemptionCosts costs{.us_per_swapped_block = us_per_block, .us_per_prefilled_token = 1.0};
    EXPECT_TRUE(prefers_swap(kSingle, PreemptionPolicy::kSwap, costs));
    EXPECT_FALSE(prefers_swap(kSeveral, PreemptionPolicy::kRecompute, costs));
  }
}

// Twelve moves against ninety tokens.
TEST(PreemptionChoice, TakesWhatWasMeasuredToBeCheaper) {
  for (const auto policy : {PreemptionPolicy::kAuto, PreemptionPolicy::kCost}) {
    for (const PreemptedGroup& group : {kSingle, kSeveral}) {
      EXPECT_TRUE(prefers_swap(group, policy, {.us_per_swapped_block = 7.4, .us_per_prefilled_token = 1.0}));
      EXPECT_FALSE(prefers_swap(group, policy, {.us_per_swapped_block = 7.5, .us_per_prefilled_token = 1.0}));
    }
  }
}

TEST(PreemptionChoice, RecomputesOneAndSwapsSeveralBeforeAnythingWasMeasured) {
  for (const auto policy : {PreemptionPolicy::kAuto, PreemptionPolicy::kCost}) {
    for (const PreemptionCosts& costs : {PreemptionCosts{}, PreemptionCosts{.us_per_swapped_block = 1.0}}) {
      EXPECT_FALSE(prefers_swap(kSingle, policy, costs));
      EXPECT_TRUE(prefers_swap(kSeveral, policy, costs));
    }
  }
}

TEST(PreemptionChoice, OnlyCostTriesASwapThatWasNeverMeasured) {
  const PreemptionCosts costs{.us_per_prefilled_token = 1.0};
  EXPECT_FALSE(prefers_swap(kSingle, PreemptionPolicy::kAuto, costs));
  EXPECT_TRUE(prefers_swap(kSingle, PreemptionPolicy::kCost, costs));
}

}  // namespace
}  // namespace octavo::scheduler
