#include "engine/comparison/token_figures.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace octavo::comparison {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

using Logits = std::vector<float>;

Distribution distribution(const Logits& logits) {
  const auto found = Distribution::of(logits);
  EXPECT_TRUE(found.has_value());
  return *found;
}

Logits random_logits(std::size_t size, double deviation, std::mt19937_64& random) {
  std::normal_distribution<float> normal(0.0f, static_cast<float>(deviation));
  Logits logits(size);
  for (float& logit : logits) logit = normal(random);
  return logits;
}

// Straight from the definition, in long double.
long double divergence_of(const Logits& a, const Logits& b) {
  long double sum_a = 0.0L, sum_b = 0.0L, divergence = 0.0L;
  for (const float logit : a) sum_a += std::exp(static_cast<long double>(logit));
  for (const float logit : b) sum_b += std::exp(static_cast<long double>(logit));
  for (std::size_t i = 0; i < a.size(); ++i) {
    const long double p = std::exp(static_cast<long double>(a[i])) / sum_a;
    const long double q = std::exp(static_cast<long double>(b[i])) / sum_b;
    divergence += p * std::log(p / q);
  }
  return divergence;
}

TEST(TokenFigures, OfTwoTokensAreWhatAHandComputes) {
  const Logits a = {std::log(3.0f), 0.0f}, b = {0.0f, 0.0f};  // 3/4 and 1/4; 1/2 and 1/2
  const TokenFigures figures = compare(distribution(a), distribution(b), 1, 2);
  EXPECT_NEAR(figures.kl_divergence, 0.75 * std::log(1.5) + 0.25 * std::log(0.5), 1e-7);
  EXPECT_NEAR(figures.a.logprob, std::log(0.25), 1e-7);
  EXPECT_NEAR(figures.b.logprob, std::log(0.5), 1e-15);
  EXPECT_NEAR(figures.probability_change(), 0.25, 1e-7);
  EXPECT_EQ(figures.a.rank, 2);
  EXPECT_EQ(figures.b.rank, 2) << "of equal logits the lower id comes first";
  EXPECT_EQ(distribution(b).rank(0), 1) << "and nobody before it";
  EXPECT_TRUE(figures.has_same_top());
  ASSERT_EQ(figures.a.best.size(), 2u);
  EXPECT_EQ(figures.a.best[1].token_id, 1);
  EXPECT_NEAR(figures.a.best[1].logprob, std::log(0.25f), 1e-6f);
}

TEST(TokenFigures, OfAnExcludedTokenAreInfiniteOnlyWhereItMatters) {
  const Logits both = {0.0f, 0.0f, -kInfinity}, one = {0.0f, -kInfinity, -kInfinity};
  EXPECT_EQ(kl_divergence(distribution(both), distribution(one)), std::numeric_limits<double>::infinity());
  EXPECT_NEAR(kl_divergence(distribution(one), distribution(both)), std::log(2.0), 1e-15);
  EXPECT_EQ(distribution(one).rank(2), 3);
  EXPECT_EQ(distribution(one).logprob(2), -std::numeric_limits<double>::infinity());
}

TEST(TokenFigures, NeedNumbers) {
  EXPECT_FALSE(Distribution::of(Logits{0.0f, kNan}));
  EXPECT_FALSE(Distribution::of(Logits{0.0f, kInfinity}));
  EXPECT_FALSE(Distribution::of(Logits{-kInfinity, -kInfinity}));
  EXPECT_TRUE(Distribution::of(Logits{-kInfinity, -1000.0f}));
}

TEST(TokenFigures, HoldForLogitsThatExponentialsDoNot) {
  const Logits large = {1000.0f, 1000.0f + std::log(3.0f)};
  EXPECT_NEAR(distribution(large).logprob(1), std::log(0.75), 1e-4);
  EXPECT_NEAR(std::exp(distribution(large).logprob(0)) + std::exp(distribution(large).logprob(1)), 1.0,
              1e-12);
}

TEST(TokenFigures, AreTheDefinitionOnRandomRows) {
  std::mt19937_64 random(20240611);
  for (int round = 0; round < 50; ++round) {
    const std::size_t size = 2 + random() % 700;
    const Logits a = random_logits(size, 4.0, random);
    Logits b = a;
    const Logits noise = random_logits(size, round % 2 == 0 ? 1e-3 : 1.0, random);
    for (std::size_t i = 0; i < size; ++i) b[i] += noise[i];
    const double divergence = kl_divergence(distribution(a), distribution(b));
    EXPECT_NEAR(divergence, static_cast<double>(divergence_of(a, b)), 1e-12) << "round " << round;
    EXPECT_GE(divergence, 0.0);
    EXPECT_EQ(kl_divergence(distribution(a), distribution(a)), 0.0);
    const auto token_id = static_cast<TokenId>(random() % size);
    const std::vector<TokenLogprob> all = distribution(b).best(size);
    ASSERT_EQ(all.size(), size);
    const auto rank = static_cast<std::size_t>(distribution(b).rank(token_id));
    EXPECT_EQ(all[rank - 1].token_id, token_id);
    for (std::size_t i = 1; i < size; ++i) EXPECT_GE(all[i - 1].logprob, all[i].logprob);
    const std::vector<TokenLogprob> some = distribution(b).best(3);
    for (std::size_t i = 0; i < some.size(); ++i) EXPECT_EQ(some[i].token_id, all[i].token_id);
  }
}

TEST(TokenFigures, OfARowThatIsHigherThroughoutAreTheSame) {
  const Logits a = {0.5f, 1.0f, -2.0f}, higher = {8.5f, 9.0f, 6.0f};
  EXPECT_NEAR(kl_divergence(distribution(a), distribution(higher)), 0.0, 1e-15);
}

TokenFigures figures_of(double divergence, double of_a, double of_b, bool same_top) {
  return {
      .kl_divergence = divergence,
      .a = {.logprob = std::log(of_a), .rank = 1, .best = {{.token_id = 0, .logprob = 0.0f}}},
      .b = {.logprob = std::log(of_b), .rank = 1, .best = {{.token_id = same_top ? 0 : 1, .logprob = 0.0f}}}};
}

TEST(TextSummary, OfTwoTokensIsWhatAHandComputes) {
  const std::vector<TokenFigures> tokens = {figures_of(0.1, 0.5, 0.25, true),
                                            figures_of(0.3, 0.125, 0.25, false)};
  const TextSummary summary = summarise(tokens);
  EXPECT_EQ(summary.num_tokens, 2);
  EXPECT_NEAR(summary.mean_kl.value, 0.2, 1e-15);
  EXPECT_NEAR(summary.mean_kl.standard_error, 0.1, 1e-15);  // deviation 0.1 * sqrt(2), over sqrt(2)
  EXPECT_EQ(summary.median_kl, 0.1);
  EXPECT_EQ(summary.high_kl, 0.3);
  EXPECT_EQ(summary.worst_kl, 0.3);
  EXPECT_NEAR(summary.same_top.value, 0.5, 1e-15);
  EXPECT_NEAR(summary.same_top.standard_error, 0.5, 1e-15);
  EXPECT_NEAR(summary.perplexity_a.value, 4.0, 1e-12);  // of 1/2 and 1/8: 1 / sqrt(1/16)
  EXPECT_NEAR(summary.perplexity_a.standard_error, 4.0 * std::log(2.0), 1e-12);
  EXPECT_NEAR(summary.perplexity_b.value, 4.0, 1e-12);
  EXPECT_NEAR(summary.perplexity_b.standard_error, 0.0, 1e-12);
  EXPECT_NEAR(summary.log_perplexity_ratio.value, 0.0, 1e-15);
  EXPECT_NEAR(summary.log_perplexity_ratio.standard_error, std::log(2.0), 1e-12);
  EXPECT_NEAR(summary.mean_probability_change.value, -0.0625, 1e-12);  // of -1/4 and 1/8
  EXPECT_NEAR(summary.rms_probability_change, std::sqrt((0.0625 + 0.015625) / 2.0), 1e-12);
}

TEST(TextSummary, OfOneTokenHasNoErrorToEstimate) {
  const std::vector<TokenFigures> one = {figures_of(0.1, 0.5, 0.25, true)};
  EXPECT_EQ(summarise(one).mean_kl.standard_error, 0.0);
  EXPECT_NEAR(summarise(one).perplexity_b.value, 4.0, 1e-12);
}

TEST(TextSummary, OfAnInfiniteDivergenceIsInfinite) {
  const double infinity = std::numeric_limits<double>::infinity();
  const std::vector<TokenFigures> tokens = {figures_of(0.1, 0.5, 0.25, true),
                                            figures_of(infinity, 0.5, 0.5, true)};
  EXPECT_EQ(summarise(tokens).mean_kl.value, infinity);
  EXPECT_EQ(summarise(tokens).median_kl, 0.1);
}

TEST(TextSummary, ListsTheWorstTokensFirstAndEqualOnesInOrder) {
  const std::vector<TokenFigures> tokens = {figures_of(0.1, 0.5, 0.5, true), figures_of(0.4, 0.5, 0.5, true),
                                            figures_of(0.1, 0.5, 0.5, true), figures_of(0.2, 0.5, 0.5, true)};
  EXPECT_EQ(worst_tokens(tokens, 3), (std::vector<std::size_t>{1, 3, 0}));
  EXPECT_EQ(worst_tokens(tokens, 10).size(), 4u);
  EXPECT_TRUE(worst_tokens(tokens, 0).empty());
}

}  // namespace
}  // namespace octavo::comparison
