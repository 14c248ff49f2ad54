// The paper's comparison as the window runs it. tests/paper measures the same for longer.

#include "app/window/paper_comparison.h"

#include <gtest/gtest.h>

#include <chrono>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "app/window/sharegpt_lengths.h"

namespace octavo::app {
namespace {

bool always(double, const ManagerMeans&) { return true; }

TEST(PaperComparison, LengthsAreThoseOfTheTable) {
  std::ifstream file(std::string(OCTAVO_SOURCE_DIR) + "/tests/golden/sharegpt_length_quantiles.json");
  const auto bins = nlohmann::json::parse(file).at("bins");
  ASSERT_EQ(bins.size(), kShareGptLengths.size());
  for (std::size_t i = 0; i < bins.size(); ++i) {
    const auto input = bins[i].at("input_quantiles").get<std::vector<double>>();
    const auto output = bins[i].at("output_quantiles").get<std::vector<double>>();
    EXPECT_TRUE(std::equal(input.begin(), input.end(), kShareGptLengths[i].input_quantiles.begin(),
                           kShareGptLengths[i].input_quantiles.end()));
    EXPECT_TRUE(std::equal(output.begin(), output.end(), kShareGptLengths[i].output_quantiles.begin(),
                           kShareGptLengths[i].output_quantiles.end()));
  }
}

TEST(PaperComparison, PagedHoldsMostAndMaxRunsAsManyAsItsChunks) {
  const ManagerMeans paged = measure_manager(MemoryManager::kPaged, 10'000, 1, always);
  const ManagerMeans most = measure_manager(MemoryManager::kOrcaMax, 10'000, 1, always);
  EXPECT_NEAR(paged.input + paged.output, 96.3, 1.5);
  EXPECT_NEAR(most.input + most.output, 20.4, 4.0);
  EXPECT_NEAR(most.batched_requests, 7.0, 0.01);
  for (const ManagerMeans& means : {paged, most}) {
    EXPECT_NEAR(means.input + means.output + means.reserved + means.internal + means.unreserved, 100.0, 0.01);
  }
}

TEST(PaperComparison, CancelEndsItSoon) {
  PaperComparison comparison;
  comparison.start();
  EXPECT_TRUE(comparison.is_running());
  comparison.cancel();
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (comparison.is_running() && std::chrono::steady_clock::now() < end)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  EXPECT_FALSE(comparison.is_running());
  ui::PaperState state;
  comparison.show(state);
  EXPECT_EQ(state.rows.size(), 4u);
  EXPECT_FALSE(state.is_done);
}

}  // namespace
}  // namespace octavo::app
