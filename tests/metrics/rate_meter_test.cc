#include "engine/metrics/rate_meter.h"

#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "tests/block/seed.h"
#include "tests/metrics/engine_traffic.h"

namespace octavo::metrics {
namespace {

// Against the engine's own account of random traffic: forks, swaps, recomputation, cancels, failures.
TEST(RateMeter, CountsEveryTokenAndEveryRequestThatHadBlocksOnce) {
  const unsigned first_seed = octavo::test_seed();
  int num_busy = 0;
  for (unsigned seed = first_seed; seed < first_seed + 30; ++seed) {
    SCOPED_TRACE("--gtest_random_seed=" + std::to_string(seed));
    EngineTraffic traffic(seed);
    for (int i = 0; i < 200; ++i) traffic.step();
    traffic.drain();
    const Trace trace = traffic.core().recorder()->read_since(0, 0);
    ASSERT_EQ(trace.num_lost, 0u);
    if (trace.steps.empty()) continue;  // a pool so small that every request was refused
    ++num_busy;
    RateMeter meter;
    double num_tokens = 0, num_requests = 0;
    const auto take = [&](const std::vector<Rates>& ended) {
      constexpr double kSeconds = RateMeter::kStretchUs / 1e6;
      for (const Rates& rates : ended) {
        num_tokens += rates.tokens_per_second * kSeconds;
        num_requests += rates.requests_per_second * kSeconds;
      }
    };
    std::int64_t expected = 0;
    std::size_t event = 0;
    for (std::size_t i = 0; i < trace.steps.size(); ++i) {
      for (; event < trace.step_event_marks[i]; ++event) meter.add(trace.block_events[event]);
      take(meter.add(trace.steps[i]));
      expected += trace.steps[i].num_decode_tokens + trace.steps[i].num_accepted_tokens;
    }
    for (; event < trace.block_events.size(); ++event) meter.add(trace.block_events[event]);
    take(meter.add(StepRecord{.begin_us = trace.steps.back().begin_us + 10 * RateMeter::kStretchUs}));
    EXPECT_NEAR(num_tokens, static_cast<double>(expected), 1e-6);
    // Each request has one sequence that was not forked from another.
    std::set<std::uint64_t> first, forked;
    for (const BlockEvent& e : trace.block_events) {
      if (e.kind == BlockEventKind::kFork) forked.insert(forked_child(e));
      const bool takes = e.kind == BlockEventKind::kAlloc || e.kind == BlockEventKind::kHit;
      if (takes && !forked.contains(e.sequence)) first.insert(e.sequence);
    }
    EXPECT_NEAR(num_requests, static_cast<double>(first.size()), 1e-6);
    EXPECT_GT(num_requests, 0.0);
  }
  EXPECT_GT(num_busy, 20);
}

TEST(RateMeter, ASilenceIsItsFirstAndLastStretch) {
  RateMeter meter;
  EXPECT_TRUE(meter.add(StepRecord{.begin_us = 1'000'000, .num_decode_tokens = 3}).empty());
  const auto ended = meter.add(StepRecord{.begin_us = 61'000'000, .num_decode_tokens = 5});
  ASSERT_GE(ended.size(), 2u);
  EXPECT_LE(ended.size(), 4u);
  EXPECT_DOUBLE_EQ(ended.front().tokens_per_second, 6.0);
  EXPECT_EQ(ended.front().time_us, 1'500'000);
  EXPECT_DOUBLE_EQ(ended.back().tokens_per_second, 0.0);
  EXPECT_GE(ended.back().time_us, 60'000'000);
}

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
