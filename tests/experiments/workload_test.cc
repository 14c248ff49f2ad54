#include "engine/experiments/workload.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <span>
#include <vector>

#include "engine/experiments/length_tables.h"
#include "tests/experiments/experiment_data.h"

namespace octavo::paper {
namespace {

struct Means {
  double input = 0.0, output = 0.0;
};

Means means_of(const LengthSource& lengths) {
  constexpr int kDraws = 200'000;
  UniformStream uniform(7);
  Means means;
  for (int i = 0; i < kDraws; ++i) {
    const RequestLengths drawn = lengths.draw(uniform);
    EXPECT_GE(drawn.num_prompt_tokens, 1);
    EXPECT_GE(drawn.num_output_tokens, 1);
    EXPECT_LT(drawn.num_prompt_tokens + drawn.num_output_tokens, kMaxModelLen);
    means.input += drawn.num_prompt_tokens;
    means.output += drawn.num_output_tokens;
  }
  return {means.input / kDraws, means.output / kDraws};
}

// The table interpolates within bins, and so misses the means of the data by up to three per cent.
TEST(Workload, ShareGptHasTheMeansOfThePaper) {
  const Means means = means_of(sharegpt_lengths());
  EXPECT_NEAR(means.input, 161.31, 0.03 * 161.31);
  EXPECT_NEAR(means.output, 337.99, 0.03 * 337.99);
}

TEST(Workload, AlpacaHasTheMeansOfThePaper) {
  const Means means = means_of(AlpacaLengths());
  EXPECT_NEAR(means.input, AlpacaLengths::kMeanInput, 0.01 * AlpacaLengths::kMeanInput);
  EXPECT_NEAR(means.output, AlpacaLengths::kMeanOutput, 0.01 * AlpacaLengths::kMeanOutput);
}

TEST(Workload, PairsOfAlpacaHaveTheMeansOfTheData) {
  const Means means = means_of(alpaca_pairs());
  EXPECT_NEAR(means.input, 18.84, 0.03 * 18.84);
  EXPECT_NEAR(means.output, 54.04, 0.03 * 54.04);
}

TEST(Workload, ASeedFixesTheRequests) {
  UniformStream first(3), same(3), other(4);
  int num_different = 0;
  for (int i = 0; i < 100; ++i) {
    const RequestLengths drawn = sharegpt_lengths().draw(first);
    const RequestLengths again = sharegpt_lengths().draw(same);
    EXPECT_EQ(drawn.num_prompt_tokens, again.num_prompt_tokens);
    EXPECT_EQ(drawn.num_output_tokens, again.num_output_tokens);
    num_different += sharegpt_lengths().draw(other).num_output_tokens != drawn.num_output_tokens ? 1 : 0;
  }
  EXPECT_GT(num_different, 50);
}

TEST(Workload, RefusesWhatIsNoTable) {
  using Bin = QuantileLengths::Bin;
  const std::vector<std::vector<Bin>> wrong = {{},
                                               {Bin{}},
                                               {{{1, 2}, {}}},
                                               {{{2, 1}, {1, 2}}},
                                               {{{1, 2}, {1, 4000}}},
                                               {{{1, 2}, {0, 5}}},
                                               {{{1}, {1, 2}}}};
  for (const std::vector<Bin>& bins : wrong)
    EXPECT_FALSE(QuantileLengths::create(bins).has_value()) << bins.size();
  EXPECT_TRUE(QuantileLengths::create({{{1, 2}, {1, 2}}}).has_value());
}

void expect_golden(std::span<const LengthBin> table, const char* name) {
  std::ifstream file(golden_file(name));
  const auto bins = nlohmann::json::parse(file).at("bins");
  ASSERT_EQ(bins.size(), table.size()) << name;
  for (std::size_t i = 0; i < bins.size(); ++i) {
    const auto input = bins[i].at("input_quantiles").get<std::vector<double>>();
    const auto output = bins[i].at("output_quantiles").get<std::vector<double>>();
    EXPECT_TRUE(std::ranges::equal(input, table[i].input_quantiles)) << name << i;
    EXPECT_TRUE(std::ranges::equal(output, table[i].output_quantiles)) << name << i;
  }
}

TEST(Workload, LengthsAreThoseOfTheGoldenTables) {
  expect_golden(kShareGptLengths, "sharegpt_length_quantiles.json");
  expect_golden(kAlpacaLengths, "alpaca_length_quantiles.json");
}

}  // namespace
}  // namespace octavo::paper
