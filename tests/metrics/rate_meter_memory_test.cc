#include <gtest/gtest.h>

#include <vector>

#include "engine/metrics/rate_meter.h"

namespace octavo::metrics {
namespace {

TEST(RateMeter, RemembersTheNewestOnly) {
  RateMeter meter;
  meter.add(StepRecord{.begin_us = 0});
  const std::uint64_t last = 2 * RateMeter::kMaxKnown;
  const auto take = [&](std::uint64_t sequence) {
    meter.add(BlockEvent{.sequence = sequence, .block = 0, .kind = BlockEventKind::kAlloc});
  };
  for (std::uint64_t sequence = 1; sequence <= last; ++sequence) take(sequence);
  take(last - 1);  // still known, though it takes another block
  const std::vector<Rates> ended = meter.add(StepRecord{.begin_us = RateMeter::kStretchUs});
  ASSERT_EQ(ended.size(), 1u);
  EXPECT_DOUBLE_EQ(ended[0].requests_per_second * RateMeter::kStretchUs / 1e6, static_cast<double>(last));
}

}  // namespace
}  // namespace octavo::metrics
