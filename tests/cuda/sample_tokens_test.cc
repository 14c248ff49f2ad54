// Tokens drawn on the emulated device: the host's sampler's, from the same rows, options and random numbers.
#include "kernels/cuda/sampling/sample_tokens.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <random>
#include <set>

#include "tests/cuda/device_sampler.h"
#include "tests/cuda/sample_rows.h"
#include "tests/runner/sampler_comparison.h"

namespace octavo::kernels::cuda {
namespace {

using runner::Sampler;

constexpr float kInfinity = std::numeric_limits<float>::infinity(),
                kNan = std::numeric_limits<float>::quiet_NaN();

// What a device draws: the options that Sampler draws with, without what changes scores.
SamplingParams random_filters(std::size_t size, std::mt19937_64& random) {
  const SamplingParams all = runner::random_params(size, random);
  SamplingParams params;
  params.temperature = random() % 8 == 0 ? 1e-2 : all.temperature;
  params.top_p = all.top_p;
  params.top_k = all.top_k;
  params.min_p = all.min_p;
  return params;
}

std::string text_of(const SamplingParams& params) {
  return "temperature " + std::to_string(params.temperature) + " top_p " + std::to_string(params.top_p) +
         " top_k " + std::to_string(params.top_k) + " min_p " + std::to_string(params.min_p);
}

class SampleTokens : public ::testing::Test {
 protected:
  void SetUp() override { emulation::settings().finds_races = false; }
  std::unique_ptr<Backend> host_ = create_backend({.threads = 1}).value();

  // Draws as often on the device as by the sampler, all that fit a call at once. Returns how many differed,
  // each of which must lie within rounding of a limit.
  int compare(std::size_t num_rows, std::size_t size, std::size_t num_draws, std::uint64_t seed) {
    std::mt19937_64 random(seed);
    DeviceSampler device(static_cast<std::int64_t>(size));
    device.set_rows(some_rows(num_rows, size, random));
    Sampler sampler(static_cast<std::int32_t>(size), {}, *host_);
    std::vector<SamplingParams> params;
    std::vector<scheduler::SampleTarget> targets;
    std::vector<TokenDraw> draws;
    for (std::size_t i = 0; i < num_draws; ++i) {
      params.push_back(random_filters(size, random));
      targets.push_back(
          {.sequence_id = {1}, .output_index = static_cast<std::uint32_t>(random() % 8), .seed = random()});
      draws.push_back(draw_of(params[i], uniform_of(targets[i]), static_cast<std::int32_t>(i % num_rows)));
    }
    const std::vector<DrawnToken> drawn = device.draw(draws);
    int num_differences = 0;
    for (std::size_t i = 0; i < num_draws; ++i) {
      device.show_row(i % num_rows, sampler);
      const runner::SampledToken expected = sampler.sample(params[i], {}, targets[i]);
      const std::string what = "seed " + std::to_string(seed) + " size " + std::to_string(size) + " draw " +
                               std::to_string(i) + ": " + text_of(params[i]);
      if (drawn[i].token_id == expected.token_id) {
        EXPECT_EQ(drawn[i].logprob, expected.logprob) << what;
        continue;
      }
      ++num_differences;
      EXPECT_GE(params[i].temperature, 1e-5) << "a greedy choice differs: " << what;
      const runner::PlainDraw plain =
          runner::plain_sample(device.row(i % num_rows), params[i], {}, targets[i], {});
      EXPECT_TRUE(plain.is_near_a_limit)
          << what << " drew " << drawn[i].token_id << " instead of " << expected.token_id;
    }
    return num_differences;
  }
};

TEST_F(SampleTokens, AreTheSamplersOverSmallVocabularies) {
  int num_differences = 0;
  for (const std::size_t size : {1u, 2u, 3u, 31u, 63u, 64u, 65u, 129u, 200u, 1000u})
    num_differences += compare(16, size, 400, size);
  EXPECT_LE(num_differences, 4);
}

TEST_F(SampleTokens, AreTheSamplersOverOddVocabularies) {
  EXPECT_LE(compare(16, 5003, 300, 5), 1);
  EXPECT_LE(compare(8, 32001, 64, 6), 1);
}

TEST_F(SampleTokens, AreTheSamplersInOneCallForManyRows) { EXPECT_LE(compare(300, 321, 300, 7), 1); }

// Each launch twice, in both orders of threads.
TEST_F(SampleTokens, AreDrawnWithoutRaces) {
  emulation::settings().finds_races = true;
  for (const std::size_t size : {65u, 700u}) EXPECT_EQ(compare(8, size, 64, 70 + size), 0);
}

// What is kept, from its lowest to its highest id, for every option.
TEST_F(SampleTokens, KeepExactlyWhatTheDefinitionKeeps) {
  std::mt19937_64 random(8);
  constexpr std::size_t kSize = 301, kRows = 16, kCases = 60;
  DeviceSampler device(kSize);
  device.set_rows(some_rows(kRows, kSize, random));
  constexpr std::size_t kSteps = 32;
  for (std::size_t i = 0; i < kCases; ++i) {
    const std::size_t row = i % kRows;
    SamplingParams params = random_filters(kSize, random);
    params.temperature = std::max(params.temperature, 0.5);
    std::vector<TokenDraw> draws;
    for (std::size_t step = 0; step < kSteps; ++step)
      draws.push_back(draw_of(params, static_cast<double>(step) / kSteps, static_cast<std::int32_t>(row)));
    draws.push_back(draw_of(params, 1.0 - 0x1p-53, static_cast<std::int32_t>(row)));
    const std::vector<DrawnToken> drawn = device.draw(draws);
    const runner::PlainDraw plain =
        runner::plain_sample(device.row(row), params, {}, {.sequence_id = {1}}, {});
    if (plain.is_near_a_limit) continue;
    std::set<TokenId> kept;
    TokenId last = -1;  // of a weight that shows in the sum
    for (std::size_t rank = 0; rank < plain.kept.size(); ++rank) {
      if (plain.kept_weights[rank] > 0.0) kept.insert(plain.kept[rank]);
      if (plain.kept_weights[rank] > 1e-14) last = std::max(last, plain.kept[rank]);
    }
    EXPECT_EQ(drawn.front().token_id, *kept.begin()) << i << " " << text_of(params);
    EXPECT_GE(drawn.back().token_id, last) << i << " " << text_of(params);
    EXPECT_TRUE(kept.contains(drawn.back().token_id)) << i << " " << text_of(params);
    for (std::size_t step = 1; step < kSteps; ++step) {
      EXPECT_TRUE(kept.contains(drawn[step].token_id)) << i << " " << text_of(params);
      EXPECT_GE(drawn[step].token_id, drawn[step - 1].token_id);
    }
  }
}

TEST_F(SampleTokens, AreNoneWhereARowIsNotValid) {
  constexpr std::size_t kSize = 150;
  std::vector<float> rows;
  const auto add = [&](float everywhere, float at_100) {
    std::vector<float> row(kSize, everywhere);
    row[100] = at_100;
    rows.insert(rows.end(), row.begin(), row.end());
  };
  add(1.0f, kNan);
  add(-kInfinity, -kInfinity);
  add(0.0f, kInfinity);
  add(kNan, 5.0f);
  add(-kInfinity, 5.0f);  // one possible token
  DeviceSampler device(kSize);
  device.set_rows(rows);
  for (const SamplingParams& params :
       {SamplingParams{.temperature = 0.0}, SamplingParams{}, SamplingParams{.top_p = 0.9},
        SamplingParams{.top_k = 3}, SamplingParams{.min_p = 0.1}}) {
    std::vector<TokenDraw> draws;
    for (std::int32_t row = 0; row < 5; ++row) draws.push_back(draw_of(params, 0.75, row));
    const std::vector<DrawnToken> drawn = device.draw(draws);
    for (std::size_t row = 0; row < 4; ++row)
      EXPECT_EQ(drawn[row].token_id, -1) << row << " " << text_of(params);
    EXPECT_EQ(drawn[4].token_id, 100) << text_of(params);
    EXPECT_EQ(drawn[4].logprob, 0.0f);
  }
}

// A draw alone, and among others on other rows: the same number to the last bit of its sums, which a number
// between two tokens would show.
TEST_F(SampleTokens, DoNotDependOnWhatIsDrawnBesideThem) {
  std::mt19937_64 random(9);
  constexpr std::size_t kSize = 700, kRows = 24;
  DeviceSampler device(kSize);
  device.set_rows(some_rows(kRows, kSize, random));
  std::vector<TokenDraw> draws;
  for (std::size_t i = 0; i < 120; ++i) {
    draws.push_back(draw_of(random_filters(kSize, random), static_cast<double>(random() >> 11) * 0x1p-53,
                            static_cast<std::int32_t>(i % kRows)));
  }
  const std::vector<DrawnToken> together = device.draw(draws);
  for (std::size_t i = 0; i < draws.size(); i += 7) {
    const DrawnToken alone = device.draw(std::span(draws).subspan(i, 1))[0];
    EXPECT_EQ(alone.token_id, together[i].token_id) << i;
    EXPECT_EQ(alone.logprob, together[i].logprob) << i;
  }
}

}  // namespace
}  // namespace octavo::kernels::cuda
