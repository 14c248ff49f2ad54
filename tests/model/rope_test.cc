#include "engine/model/rope.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/support/paths.h"

namespace octavo::model {
namespace {

RopeConfig config_of(const nlohmann::json& entry) {
  const auto& keys = entry.at("keys");
  RopeConfig config;
  config.rotary_dim = entry.at("rotary_dim").get<std::int32_t>();
  config.frequency_base = entry.at("base").get<double>();
  const std::string type = keys.value("type", "none");
  config.scaling = type == "linear"   ? RopeScalingType::kLinear
                   : type == "yarn"   ? RopeScalingType::kYarn
                   : type == "llama3" ? RopeScalingType::kLlama3
                                      : RopeScalingType::kNone;
  config.factor = keys.value("factor", 1.0);
  config.original_context_length = keys.value("original", 8192);
  config.yarn_beta_fast = keys.value("beta_fast", 32.0);
  config.yarn_beta_slow = keys.value("beta_slow", 1.0);
  if (keys.contains("attention_factor"))
    config.yarn_attention_factor = keys.at("attention_factor").get<double>();
  return config;
}

TEST(Rope, FrequenciesAreThoseOfTheTransformersFormulas) {
  std::ifstream file(test::source_folder() / "tests/golden/rope.json");
  const nlohmann::json cases = nlohmann::json::parse(file).at("cases");
  ASSERT_EQ(cases.size(), 10u);
  for (const auto& entry : cases) {
    SCOPED_TRACE(entry.at("name").get<std::string>());
    const auto divisors = entry.at("keys").value("divisors", std::vector<float>());
    const RopeFrequencies rope = rope_frequencies(config_of(entry), divisors);
    const auto expected = entry.at("inverse_frequencies").get<std::vector<double>>();
    EXPECT_NEAR(rope.attention_factor, entry.at("attention_factor").get<double>(), 1e-15);
    ASSERT_EQ(rope.inverse_frequencies.size(), expected.size());
    for (std::size_t i = 0; i < expected.size(); ++i) {
      EXPECT_NEAR(rope.inverse_frequencies[i] / expected[i], 1.0, 1e-13) << "pair " << i;
    }
  }
}

TEST(Rope, TheTensorOfFactorsStandsForLlama3Scaling) {
  RopeConfig config{.rotary_dim = 64,
                    .frequency_base = 5e5,
                    .scaling = RopeScalingType::kLlama3,
                    .factor = 32.0,
                    .original_context_length = 8192};
  const RopeFrequencies by_metadata = rope_frequencies(config, {});
  RopeConfig plain = config;
  plain.scaling = RopeScalingType::kNone;
  const RopeFrequencies unscaled = rope_frequencies(plain, {});
  std::vector<float> divisors;
  for (std::size_t i = 0; i < 32; ++i) {
    divisors.push_back(
        static_cast<float>(unscaled.inverse_frequencies[i] / by_metadata.inverse_frequencies[i]));
  }
  EXPECT_EQ(divisors.front(), 1.0f);
  EXPECT_EQ(divisors.back(), 32.0f);
  // With both in a file, the scaling is applied once.
  const RopeFrequencies both = rope_frequencies(config, divisors);
  for (std::size_t i = 0; i < 32; ++i) {
    EXPECT_NEAR(both.inverse_frequencies[i] / by_metadata.inverse_frequencies[i], 1.0, 1e-6);
  }
}

TEST(Rope, FactorsAndLinearScalingAreBothApplied) {
  const RopeConfig config{
      .rotary_dim = 4, .frequency_base = 100.0, .scaling = RopeScalingType::kLinear, .factor = 2.0};
  const std::vector<float> divisors = {1.0f, 4.0f};
  const RopeFrequencies rope = rope_frequencies(config, divisors);
  EXPECT_DOUBLE_EQ(rope.inverse_frequencies[0], 0.5);
  EXPECT_DOUBLE_EQ(rope.inverse_frequencies[1], 0.1 / 4 / 2);
}

TEST(Rope, TheAttentionMultiplierCountsForEveryType) {
  for (const RopeScalingType type :
       {RopeScalingType::kNone, RopeScalingType::kLinear, RopeScalingType::kLlama3, RopeScalingType::kYarn}) {
    RopeConfig config{.rotary_dim = 64,
                      .scaling = type,
                      .factor = 4.0,
                      .original_context_length = 4096,
                      .attention_multiplier = 1.5};
    const double own = type == RopeScalingType::kYarn ? 0.1 * std::log(4.0) + 1.0 : 1.0;
    EXPECT_DOUBLE_EQ(rope_frequencies(config, {}).attention_factor, 1.5 * own);
  }
}

TEST(Rope, YarnWithoutExtrapolationDividesEveryFrequency) {
  RopeConfig config{
      .rotary_dim = 64, .scaling = RopeScalingType::kYarn, .factor = 4.0, .original_context_length = 4096};
  config.yarn_extrapolation_factor = 0.0;
  RopeConfig linear = config;
  linear.scaling = RopeScalingType::kLinear;
  EXPECT_EQ(rope_frequencies(config, {}).inverse_frequencies,
            rope_frequencies(linear, {}).inverse_frequencies);
}

}  // namespace
}  // namespace octavo::model
