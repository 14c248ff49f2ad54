// Blocks on their way between the pools of the host's backends.
#include <gtest/gtest.h>

#include "tests/kernels/swapped_pools.h"

namespace octavo::kernels::testing {
namespace {

std::vector<std::unique_ptr<TestBackend>> backends() {
  std::vector<std::unique_ptr<TestBackend>> backends;
  backends.push_back(std::make_unique<TestBackend>(cpu_backend(cpu::usable_instruction_sets().front(), 3)));
  backends.push_back(std::make_unique<TestBackend>(reference_backend()));
  return backends;
}

TEST(BlockSwap, AHundredThousandBlocksComeBackAsTheyLeft) {
  for (const auto& backend : backends()) expect_blocks_come_back(*backend, 100'000);
}

TEST(BlockSwap, BlocksOfARealModelComeBackAsTheyLeft) {
  for (const auto& backend : backends()) {
    for (const KvType type : {KvType::kF16, KvType::kInt8}) {
      SCOPED_TRACE(std::string((*backend)->name()) + " " + name_of(type));
      SwappedPools pools(*backend, {type, 16, 30, 3, 64}, 12, 8, 5);
      for (int i = 0; i < 40; ++i) pools.act();
      pools.expect_all();
    }
  }
}

TEST(BlockSwap, AHostPoolOfAnImpossibleSizeIsAnErrorThatNamesIt) {
  for (const auto& backend : backends()) {
    EXPECT_EQ((*backend)->allocate_host_kv_cache({KvType::kF16, 16, 1, 1, 8}, 0).error().code,
              ErrorCode::kInvalidArgument);
    const auto too_large = (*backend)->allocate_host_kv_cache({KvType::kF16, 16, 30, 3, 64}, 2'000'000'000);
    ASSERT_FALSE(too_large.has_value()) << (*backend)->name();
    EXPECT_EQ(too_large.error().code, ErrorCode::kOutOfMemory);
    EXPECT_NE(too_large.error().message.find("the host pool"), std::string::npos)
        << too_large.error().message;
  }
}

}  // namespace
}  // namespace octavo::kernels::testing
