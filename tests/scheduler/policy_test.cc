#include "engine/scheduler/policy.h"

#include <gtest/gtest.h>

namespace octavo::scheduler {
namespace {

TEST(Policy, KeepsOnePercentAndABlockForEachRunningSequence) {
  const PoolLevel level{.num_blocks = 1000,
                        .num_available = 100,
                        .num_running_sequences = 5,
                        .reserve = AdmissionReserve::kBlockPerSequence};
  EXPECT_EQ(watermark_blocks(level), 15);
  EXPECT_EQ(admission_status({.num_required = 85, .num_taken = 85}, level), AllocStatus::kOk);
  EXPECT_EQ(admission_status({.num_required = 86, .num_taken = 86}, level), AllocStatus::kLater);
}

TEST(Policy, RoundsTheOnePercentUp) {
  constexpr auto kOnePercent = AdmissionReserve::kOnePercent;
  EXPECT_EQ(watermark_blocks({.num_blocks = 40, .num_running_sequences = 1, .reserve = kOnePercent}), 1);
  EXPECT_EQ(watermark_blocks({.num_blocks = 101, .num_running_sequences = 1, .reserve = kOnePercent}), 2);
}

TEST(Policy, KeepsOnePercentAloneWhenAsked) {
  const PoolLevel level{.num_blocks = 1000,
                        .num_available = 100,
                        .num_running_sequences = 5,
                        .reserve = AdmissionReserve::kOnePercent};
  EXPECT_EQ(watermark_blocks(level), 10);
  EXPECT_EQ(admission_status({.num_required = 90, .num_taken = 90}, level), AllocStatus::kOk);
  EXPECT_EQ(admission_status({.num_required = 91, .num_taken = 91}, level), AllocStatus::kLater);
}

TEST(Policy, KeepsWhatIsTakenInTheNextStepsOfAPoolOfAnySize) {
  for (const std::int32_t num_blocks : {100, 100'000}) {
    const PoolLevel level{
        .num_blocks = num_blocks, .num_available = 10, .num_running_sequences = 5, .num_taken_ahead = 3};
    EXPECT_EQ(admission_status({.num_required = 7, .num_taken = 7}, level), AllocStatus::kOk);
    EXPECT_EQ(admission_status({.num_required = 8, .num_taken = 8}, level), AllocStatus::kLater);
  }
}

TEST(Policy, WaivesTheWatermarkWhenNothingRuns) {
  const PoolLevel level{.num_blocks = 50, .num_available = 50};
  EXPECT_EQ(admission_status({.num_required = 50, .num_taken = 50}, level), AllocStatus::kOk);
  EXPECT_EQ(admission_status({.num_required = 51, .num_taken = 51}, level), AllocStatus::kNever);
}

TEST(Policy, BlocksInUseAlreadyCostNothingAndPromisedOnesAreGone) {
  const PoolLevel level{.num_blocks = 100,
                        .num_available = 20,
                        .num_promised = 10,
                        .num_running_sequences = 2,
                        .reserve = AdmissionReserve::kBlockPerSequence};
  EXPECT_EQ(admission_status({.num_required = 30, .num_taken = 7}, level), AllocStatus::kOk);
  EXPECT_EQ(admission_status({.num_required = 30, .num_taken = 8}, level), AllocStatus::kLater);
}

}  // namespace
}  // namespace octavo::scheduler
