#include "tests/paper/workload.h"

#include <gtest/gtest.h>

#include <fstream>

#include "tests/paper/experiment_data.h"
#include "tests/support/temporary_folder.h"

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
  const test::TemporaryFolder folder;
  const auto path = folder.path() / "lengths.json";
  for (const char* text : {"", "{}", R"({"bins":[]})", R"({"bins":[{"input_quantiles":[1,2]}]})",
                           R"({"bins":[{"input_quantiles":[2,1],"output_quantiles":[1,2]}]})",
                           R"({"bins":[{"input_quantiles":[1,2],"output_quantiles":[1,4000]}]})"}) {
    std::ofstream(path) << text;
    EXPECT_FALSE(QuantileLengths::read(path).has_value()) << text;
  }
  EXPECT_FALSE(QuantileLengths::read(folder.path() / "absent.json").has_value());
}

}  // namespace
}  // namespace octavo::paper
