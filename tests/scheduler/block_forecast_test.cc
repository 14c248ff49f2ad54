#include "engine/scheduler/block_forecast.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <random>
#include <vector>

namespace octavo::scheduler {
namespace {

struct Drawn {
  std::int32_t num_tokens = 0, num_left = 0;
  std::optional<std::int32_t> num_own;
};

// A pool that is played step by step, sequence by sequence.
std::int32_t most_taken_when_played(const std::vector<Drawn>& sequences, std::int32_t block_size) {
  std::int32_t most = 0;
  for (std::int32_t step = 1; step <= kStepsAhead; ++step) {
    std::int32_t num_used = 0;
    for (const Drawn& one : sequences) {
      const bool has_ended = step >= one.num_left;
      const std::int32_t num_tokens = one.num_tokens + std::min(step, one.num_left - 1);
      const std::int32_t num_first = (one.num_tokens + block_size - 1) / block_size;
      const std::int32_t num_more = (num_tokens + block_size - 1) / block_size - num_first;
      num_used += has_ended && one.num_own ? -*one.num_own : num_more;
    }
    most = std::max(most, num_used);
  }
  return most;
}

TEST(BlockForecast, SaysWhatAPoolPlayedStepByStepSays) {
  constexpr std::uint32_t kSeed = 7;
  std::mt19937 random(kSeed);
  const auto between = [&](std::int32_t least, std::int32_t most) {
    return std::uniform_int_distribution<std::int32_t>(least, most)(random);
  };
  for (int i = 0; i < 2'000; ++i) {
    const std::int32_t block_size = between(1, 40);
    BlockForecast forecast(block_size);
    std::vector<Drawn> sequences(static_cast<std::size_t>(between(0, 12)));
    for (Drawn& one : sequences) {
      one.num_tokens = between(1, 100);
      one.num_left = between(1, 2 * kStepsAhead);
      if (between(0, 2) > 0) one.num_own = between(0, 4);
      forecast.add(one.num_tokens, one.num_left, one.num_own);
    }
    ASSERT_EQ(forecast.most_taken(), most_taken_when_played(sequences, block_size))
        << "seed " << kSeed << ", case " << i;
  }
}

TEST(BlockForecast, IsOfTheNextStepsOnly) {
  const auto most_taken_with = [](std::int32_t num_tokens) {
    BlockForecast forecast(kStepsAhead - 1);
    forecast.add(num_tokens, /*num_left=*/100, {});
    return forecast.most_taken();
  };
  EXPECT_EQ(most_taken_with(kStepsAhead - 1), 2) << "in the first step and in the last";
  EXPECT_EQ(most_taken_with(kStepsAhead - 2), 1) << "in the second step and in one behind the last";
}

TEST(BlockForecast, CountsOnAnEndFromTheStepBehindIt) {
  for (const std::int32_t num_left : {1, 2, 3}) {
    BlockForecast forecast(1);
    forecast.add(/*num_tokens=*/10, /*num_left=*/100, {});
    forecast.add(/*num_tokens=*/10, num_left, /*num_own=*/100);
    EXPECT_EQ(forecast.most_taken(), 2 * (num_left - 1)) << "two a step until then";
  }
}

}  // namespace
}  // namespace octavo::scheduler
