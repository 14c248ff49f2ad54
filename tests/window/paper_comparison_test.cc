// The paper's comparison as the window runs it. tests/experiments measures the same for longer.

#include "app/window/memory/paper_comparison.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

namespace octavo::app {
namespace {

TEST(PaperComparison, PagedHoldsMostAndMaxRunsAsManyAsItsChunks) {
  const paper::SteadyState paged = measure_manager(MemoryManager::kPaged, 10'000, 1);
  const paper::SteadyState most = measure_manager(MemoryManager::kOrcaMax, 10'000, 1);
  EXPECT_NEAR(paged.memory.tokens_held(), 96.3, 1.5);
  EXPECT_NEAR(most.memory.tokens_held(), 20.4, 4.0);
  EXPECT_NEAR(most.batched_requests, 7.0, 0.01);
  for (const paper::MemoryMap& map : {paged.memory, most.memory}) {
    EXPECT_NEAR(map.input + map.output + map.reserved + map.internal + map.unreserved, 100.0, 0.01);
  }
}

TEST(PaperComparison, TellsHowFarItIsAndEndsWhenItIsTold) {
  double last = -1;
  int num_reports = 0;
  const auto state =
      measure_manager(MemoryManager::kPaged, 2'000'000'000, 1, [&](double done, const paper::SteadyState&) {
        EXPECT_GT(done, last);
        last = done;
        return ++num_reports < 12;
      });
  EXPECT_EQ(num_reports, 12);
  EXPECT_GT(state.memory.tokens_held(), 50.0) << "1,500 steps after the warm-up count";
}

TEST(PaperComparison, CancelEndsItSoon) {
  PaperComparison comparison;
  comparison.start();
  ui::EvaluationState state;
  comparison.show(state);
  EXPECT_TRUE(state.is_queue_running);
  comparison.cancel();
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (comparison.has_news() && std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    comparison.show(state);
  }
  EXPECT_FALSE(state.is_queue_running);
  EXPECT_EQ(state.rows.size(), 4u);
  EXPECT_FALSE(state.is_queue_done);
}

}  // namespace
}  // namespace octavo::app
