#include "engine/base/rng.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <vector>

namespace octavo {
namespace {

// The first outputs of the published generator from seed 0, whose state grows by this constant.
TEST(Rng, MixesAsSplitMix64) {
  constexpr std::uint64_t kGrowth = 0x9e3779b97f4a7c15u;
  EXPECT_EQ(mix64(0), 0xe220a8397b1dcdafu);
  EXPECT_EQ(mix64(kGrowth), 0x6e789e6aa1b965f4u);
  EXPECT_EQ(mix64(2 * kGrowth), 0x06c45d188009454fu);
}

TEST(Rng, EverySeedOutputAndPositionHasANumberOfItsOwn) {
  std::set<double> seen;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    for (std::uint32_t output = 0; output < 20; ++output) {
      for (std::uint64_t position = 0; position < 20; ++position) {
        const double u = uniform_at(seed, output, position);
        EXPECT_GE(u, 0.0);
        EXPECT_LT(u, 1.0);
        seen.insert(u);
      }
    }
  }
  EXPECT_EQ(seen.size(), 8000u);  // no two alike: exchanging two arguments gives another number
}

// Chi-squared over 64 bins, and the correlation of neighbours: 5 standard deviations.
TEST(Rng, NumbersAreUniformAndNeighboursIndependent) {
  constexpr int kBins = 64, kSamples = 64000;
  for (std::uint64_t seed : {0ull, 1ull, 0x8000000000000000ull}) {
    std::vector<int> bins(kBins);
    double product = 0;
    for (int i = 0; i < kSamples; ++i) {
      const double u = uniform_at(seed, 0, static_cast<std::uint64_t>(i));
      ++bins[static_cast<std::size_t>(u * kBins)];
      product += (u - 0.5) * (uniform_at(seed, 1, static_cast<std::uint64_t>(i)) - 0.5);
    }
    double chi_squared = 0;
    for (const int count : bins) chi_squared += std::pow(count - kSamples / kBins, 2) / (kSamples / kBins);
    EXPECT_LT(std::fabs(chi_squared - (kBins - 1)), 5 * std::sqrt(2.0 * (kBins - 1))) << seed;
    EXPECT_LT(std::fabs(product), 5 * std::sqrt(kSamples) / 12) << seed;
  }
}

}  // namespace
}  // namespace octavo
