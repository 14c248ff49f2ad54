#include "engine/runner/sampler.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <random>

#include "tests/runner/plain_sampler.h"
#include "tests/runner/sampler_comparison.h"

namespace octavo::runner {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// Shaped like a language model's: a bell with a few high ones. `step` > 0 rounds to multiples, which makes
// ties.
std::vector<float> random_logits(std::size_t size, std::mt19937_64& random, float step) {
  std::normal_distribution<float> bell(0.0f, 2.5f);
  std::vector<float> logits(size);
  for (float& logit : logits) logit = bell(random);
  for (int i = 0; i < 8; ++i) logits[random() % size] += 6.0f + static_cast<float>(i);
  if (step > 0) {
    for (float& logit : logits) logit = step * std::round(logit / step);
  }
  return logits;
}

TEST(Sampler, DrawsAsItsDefinitionSaysOverSmallRowsWithTiesAndImpossibleTokens) {
  std::mt19937_64 random(1);
  for (const std::size_t size : {3u, 16u, 63u, 64u, 65u, 200u, 1000u}) {
    std::vector<std::vector<float>> rows;
    for (int i = 0; i < 20; ++i) {
      rows.push_back(random_logits(size, random, i % 2 == 0 ? 0.5f : 0.0f));
      if (i % 3 == 0) {
        for (float& logit : rows.back()) {
          if (random() % 2 == 0) logit = -kInfinity;
        }
        rows.back()[random() % size] = 1.0f;
      }
    }
    compare_with_definition(rows, 3000, size);
  }
}

TEST(Sampler, DrawsAsItsDefinitionSaysOverAWholeVocabulary) {
  std::mt19937_64 random(2);
  std::vector<std::vector<float>> rows;
  for (const float step : {0.0f, 0.0f, 0.25f, 4.0f}) rows.push_back(random_logits(49152, random, step));
  compare_with_definition(rows, 300, 3);
}

// What a sort of everything gives, but for the order of sums: penalties are taken off one by one there.
void expect_candidates(const SampledToken& token, const std::vector<BeamCandidate>& expected,
                       const std::string& what) {
  ASSERT_EQ(token.candidates.size(), expected.size()) << what;
  ASSERT_EQ(token.invalid_logits, expected.empty()) << what;
  ASSERT_EQ(token.token_id, -1) << what;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    ASSERT_EQ(token.candidates[i].token_id, expected[i].token_id) << what << " rank " << i;
    ASSERT_EQ(token.candidates[i].logprob, expected[i].logprob) << what << " rank " << i;
    ASSERT_NEAR(token.candidates[i].search_logprob, expected[i].search_logprob, 1e-12)
        << what << " rank " << i;
  }
}

TEST(Sampler, ABeamGetsTheBestContinuationsAsASortOfEverythingRanksThem) {
  std::mt19937_64 random(21);
  for (const std::size_t size : {1u, 3u, 64u, 65u, 1000u, 49152u}) {
    RowSampler sampler(size, size > 2 ? kEndTokens : std::vector<TokenId>{0});
    for (int i = 0; i < (size < 10000 ? 400 : 40); ++i) {
      std::vector<float> row = random_logits(size, random, i % 3 == 0 ? 0.5f : 0.0f);
      for (float& logit : row) {
        if (i % 5 == 0 && random() % 2 == 0) logit = -kInfinity;
      }
      row[random() % size] = 1.0f;
      SamplingParams params = i % 2 == 0 ? SamplingParams{} : random_params(size, random);
      std::erase_if(params.stop_token_ids, [&](TokenId id) { return static_cast<std::size_t>(id) >= size; });
      // Multiples of powers of two: sums in any order are equal.
      params.frequency_penalty = std::round(4.0 * params.frequency_penalty) / 4.0;
      params.presence_penalty = std::round(4.0 * params.presence_penalty) / 4.0;
      const History history = random_history(row, random);
      scheduler::SampleTarget target = history.target(random);
      if (i % 7 == 0) params.bad_word_token_ids = random_bad_words(row, history, random);
      if (i % 11 == 0) params.allowed_token_ids = {static_cast<TokenId>(size - 1), 0, 0};
      target.num_candidates = static_cast<std::int32_t>(1 + random() % (i % 4 == 0 ? 2 * size : 20));
      const float sum = log_sum_exp(row);
      sampler.set_row(row, sum);
      expect_candidates(sampler.sample(params, history.prompt, target),
                        plain_candidates(row, sum, params, history.prompt, target,
                                         size > 2 ? kEndTokens : std::vector<TokenId>{0}),
                        "size " + std::to_string(size) + " case " + std::to_string(i));
    }
  }
}

TEST(Sampler, ABeamTakesLogitsThatRoundToOneLogProbabilityForEquals) {
  // Neighbouring floats below 1 become the same log-probability far from 0: the lowest id must come first,
  // though its logit is the smallest.
  std::vector<float> row(640, -50.0f);
  float logit = 0.9f;
  for (const std::size_t id : {5u, 100u, 300u, 639u}) row[id] = logit = std::nextafter(logit, 1.0f);
  RowSampler sampler(640, {});
  sampler.set_row(row, 1000.0f);
  for (const std::int32_t count : {1, 2, 4}) {
    const scheduler::SampleTarget target{.sequence_id = {1}, .num_candidates = count};
    expect_candidates(sampler.sample({}, {}, target), plain_candidates(row, 1000.0f, {}, {}, target, {}),
                      std::to_string(count));
    EXPECT_EQ(sampler.sample({}, {}, target).candidates[0].token_id, 5);
  }
}

TEST(Sampler, ABeamIsRankedByLogProbabilityAloneWithoutProcessors) {
  std::mt19937_64 random(22);
  const std::vector<float> row = random_logits(3000, random, 0.0f);
  const float sum = log_sum_exp(row);
  RowSampler sampler(3000, kEndTokens);
  sampler.set_row(row, sum);
  const scheduler::SampleTarget target{.sequence_id = {1}, .num_candidates = 16};
  const SampledToken plain = sampler.sample({}, {}, target);
  for (const BeamCandidate& candidate : plain.candidates)
    EXPECT_EQ(candidate.search_logprob, double{candidate.logprob});
  const SampledToken other =
      sampler.sample({.temperature = 0.3, .top_p = 0.1, .top_k = 2, .min_p = 0.9}, {}, target);
  ASSERT_EQ(other.candidates.size(), 16u) << "what shapes a draw does not touch a beam";
  for (std::size_t i = 0; i < 16; ++i) EXPECT_EQ(other.candidates[i].token_id, plain.candidates[i].token_id);
}

TEST(Sampler, APenaltyWorksOnABeamsLogProbabilities) {
  // As probabilities: 1/2, 1/4, 1/4. Four times the log of the first one is below that of the others.
  const std::vector<float> row = {std::log(2.0f), 0.0f, 0.0f};
  RowSampler sampler(3, {});
  sampler.set_row(row, std::log(4.0f));
  const std::vector<TokenId> prompt = {0};
  const SampledToken token =
      sampler.sample({.repetition_penalty = 4.0}, prompt, {.sequence_id = {1}, .num_candidates = 3});
  ASSERT_EQ(token.candidates.size(), 3u);
  EXPECT_EQ(token.candidates[0].token_id, 1);
  EXPECT_EQ(token.candidates[1].token_id, 2);
  EXPECT_EQ(token.candidates[2].token_id, 0) << "though its logit is positive, its score fell";
  EXPECT_NEAR(token.candidates[2].search_logprob, 4.0 * std::log(0.5), 1e-6);
  EXPECT_NEAR(token.candidates[2].logprob, std::log(0.5), 1e-6) << "the model's own";
}

TEST(Sampler, MinTokensLeavesABeamNoEnds) {
  std::vector<float> row(100, -kInfinity);
  row[2] = 9.0f;
  row[50] = 8.0f;
  row[51] = 7.0f;
  RowSampler sampler(100, kEndTokens);
  sampler.set_row(row);
  SamplingParams params{.max_tokens = 16, .min_tokens = 1, .stop_token_ids = {50}};
  const scheduler::SampleTarget target{.sequence_id = {1}, .num_candidates = 8};
  const SampledToken token = sampler.sample(params, {}, target);
  ASSERT_EQ(token.candidates.size(), 1u);
  EXPECT_EQ(token.candidates[0].token_id, 51);
  params.stop_token_ids.push_back(51);
  EXPECT_TRUE(sampler.sample(params, {}, target).invalid_logits);
  row[7] = std::nanf("");
  sampler.set_row(row);
  EXPECT_TRUE(sampler.sample({}, {}, target).invalid_logits);
}

TEST(Sampler, GreedyTakesTheLowestIdAmongEquals) {
  std::vector<float> row(300, 1.0f);
  row[130] = row[131] = row[257] = 2.0f;
  RowSampler sampler(300, {});
  sampler.set_row(row);
  const SamplingParams greedy{.temperature = 0.0};
  EXPECT_EQ(sampler.sample(greedy, {}, {}).token_id, 130);
  const SamplingParams biased{.temperature = 0.0, .logit_bias = {{130, -3.0}, {7, 1.0}}};
  EXPECT_EQ(sampler.sample(biased, {}, {}).token_id, 7) << "with scores that were changed, too";
}

TEST(Sampler, TopPKeepsTheShortestStartThatReachesItAndTiesGoToTheLowerId) {
  const std::vector<float> row(4, 0.0f);  // four equal weights: every sum is exact
  RowSampler sampler(4, {});
  sampler.set_row(row);
  const auto kept = [&](double top_p) {
    std::set<TokenId> tokens;
    for (std::uint64_t seed = 0; seed < 200; ++seed) {
      tokens.insert(sampler.sample({.top_p = top_p}, {}, {.sequence_id = {1}, .seed = seed}).token_id);
    }
    return tokens;
  };
  EXPECT_EQ(kept(1e-9), (std::set<TokenId>{0}));
  EXPECT_EQ(kept(0.25), (std::set<TokenId>{0}));
  EXPECT_EQ(kept(0.2500001), (std::set<TokenId>{0, 1}));
  EXPECT_EQ(kept(0.5), (std::set<TokenId>{0, 1}));
  EXPECT_EQ(kept(0.75), (std::set<TokenId>{0, 1, 2}));
  EXPECT_EQ(kept(0.76), (std::set<TokenId>{0, 1, 2, 3}));
}

TEST(Sampler, TopKKeepsExactlyKAmongEqualsAndMinPCountsFromTheBest) {
  const std::vector<float> row = {0.0f, 1.0f, 1.0f, 1.0f, std::log(2.0f) + 1.0f};
  RowSampler sampler(5, {});
  sampler.set_row(row);
  const auto kept = [&](const SamplingParams& params) {
    std::set<TokenId> tokens;
    for (std::uint64_t seed = 0; seed < 300; ++seed) {
      tokens.insert(sampler.sample(params, {}, {.sequence_id = {1}, .seed = seed}).token_id);
    }
    return tokens;
  };
  EXPECT_EQ(kept({.top_k = 3}), (std::set<TokenId>{1, 2, 4}));
  EXPECT_EQ(kept({.top_k = -1}), (std::set<TokenId>{0, 1, 2, 3, 4}));
  EXPECT_EQ(kept({.min_p = 0.49}), (std::set<TokenId>{1, 2, 3, 4}));
  EXPECT_EQ(kept({.min_p = 0.51}), (std::set<TokenId>{4}));
  EXPECT_EQ(kept({.min_p = 1.0}), (std::set<TokenId>{4}));
}

TEST(Sampler, DrawsEachTokenAsOftenAsItsProbability) {
  std::mt19937_64 random(5);
  const std::vector<float> row = random_logits(24, random, 0.0f);
  RowSampler sampler(24, {});
  sampler.set_row(row);
  constexpr int kDraws = 40000;
  for (const SamplingParams& params :
       {SamplingParams{.temperature = 2.0}, SamplingParams{.temperature = 3.0, .top_p = 0.9},
        SamplingParams{.temperature = 4.0, .top_k = 9}}) {
    const PlainDraw plain = plain_sample(row, params, {}, {}, {});
    const double total = std::accumulate(plain.kept_weights.begin(), plain.kept_weights.end(), 0.0);
    std::map<TokenId, int> counts;
    for (int i = 0; i < kDraws; ++i) {
      // Half of the draws differ in their seed, half in output index and position.
      const std::vector<TokenId> output(static_cast<std::size_t>(i % 2 == 0 ? 0 : i / 2 % 100), 1);
      const scheduler::SampleTarget target{
          .sequence_id = {1},
          .output_index = static_cast<std::uint32_t>(i % 2 == 0 ? 0 : i / 200),
          .seed = i % 2 == 0 ? static_cast<std::uint64_t>(i) : 99,
          .output_token_ids = output};
      ++counts[sampler.sample(params, {}, target).token_id];
    }
    double chi_square = 0.0;
    for (std::size_t i = 0; i < plain.kept.size(); ++i) {
      const double expected = kDraws * plain.kept_weights[i] / total;
      const double difference = counts[plain.kept[i]] - expected;
      chi_square += difference * difference / expected;
    }
    const auto freedom = static_cast<double>(plain.kept.size() - 1);
    EXPECT_LT(chi_square, freedom + 5.0 * std::sqrt(2.0 * freedom)) << "kept " << plain.kept.size();
    EXPECT_GT(chi_square, freedom - 4.0 * std::sqrt(2.0 * freedom)) << "more even than chance allows";
  }
}

TEST(Sampler, ExtremeTemperaturesAreGreedyAndUniform) {
  std::mt19937_64 random(6);
  const std::vector<float> row = random_logits(500, random, 0.0f);
  const auto best = static_cast<TokenId>(std::max_element(row.begin(), row.end()) - row.begin());
  RowSampler sampler(500, {});
  sampler.set_row(row);
  std::set<TokenId> cold, hot;
  for (std::uint64_t seed = 0; seed < 2000; ++seed) {
    const scheduler::SampleTarget target{.sequence_id = {1}, .seed = seed};
    cold.insert(sampler.sample({.temperature = 1e-300}, {}, target).token_id);
    cold.insert(sampler.sample({.temperature = 2e-5}, {}, target).token_id);
    hot.insert(sampler.sample({.temperature = 1e300}, {}, target).token_id);
  }
  EXPECT_EQ(cold, (std::set<TokenId>{best}));
  EXPECT_GT(hot.size(), 450u) << "2,000 uniform draws miss fewer than 50 of 500";
}

TEST(Sampler, MinTokensForbidsEndAndStopTokensUntilThen) {
  std::vector<float> row(100, 0.0f);
  row[2] = 9.0f;
  row[50] = 8.0f;
  row[51] = 7.0f;
  RowSampler sampler(100, kEndTokens);
  sampler.set_row(row);
  const SamplingParams params{
      .temperature = 0.0, .max_tokens = 16, .min_tokens = 2, .stop_token_ids = {50}, .ignore_eos = true};
  const std::vector<TokenId> output = {9, 9};
  const auto at = [&](std::size_t position) {
    return sampler
        .sample(params, {}, {.sequence_id = {1}, .output_token_ids = std::span(output).first(position)})
        .token_id;
  };
  EXPECT_EQ(at(0), 51);
  EXPECT_EQ(at(1), 51);
  EXPECT_EQ(at(2), 2);
}

TEST(Sampler, LogprobsAreTheModelsOwnAndAskingForThemChangesNothing) {
  std::mt19937_64 random(8);
  const std::vector<float> row = random_logits(2000, random, 0.5f);
  const float sum = log_sum_exp(row);
  RowSampler sampler(2000, kEndTokens);
  sampler.set_row(row, sum);
  std::vector<TokenId> ranked(2000);
  std::iota(ranked.begin(), ranked.end(), 0);
  std::stable_sort(ranked.begin(), ranked.end(), [&](TokenId a, TokenId b) {
    return row[static_cast<std::size_t>(a)] > row[static_cast<std::size_t>(b)];
  });
  for (int i = 0; i < 200; ++i) {
    SamplingParams params = random_params(row.size(), random);
    const History history = random_history(row, random);
    const scheduler::SampleTarget target = history.target(random);
    const SampledToken without = sampler.sample(params, history.prompt, target);
    params.logprobs = 1 + static_cast<std::int32_t>(random() % 1000);
    const SampledToken with = sampler.sample(params, history.prompt, target);
    ASSERT_EQ(without.token_id, with.token_id);
    ASSERT_EQ(without.logprob, with.logprob);
    ASSERT_EQ(with.logprob, row[static_cast<std::size_t>(with.token_id)] - sum);
    ASSERT_TRUE(without.top_logprobs.empty());
    ASSERT_EQ(with.top_logprobs.size(), static_cast<std::size_t>(params.logprobs));
    for (std::size_t rank = 0; rank < with.top_logprobs.size(); ++rank) {
      ASSERT_EQ(with.top_logprobs[rank].token_id, ranked[rank]);
      ASSERT_EQ(with.top_logprobs[rank].logprob, row[static_cast<std::size_t>(ranked[rank])] - sum);
    }
  }
}

TEST(Sampler, ForbidsTheLastTokenOfABadWordOnlyAfterItsOthers) {
  std::vector<float> row(100, 0.0f);
  row[40] = 9.0f;
  row[41] = 8.0f;
  RowSampler sampler(100, kEndTokens);
  sampler.set_row(row);
  const SamplingParams params{.temperature = 0.0, .bad_word_token_ids = {{7, 8, 40}, {9, 41}}};
  const auto after = [&](const std::vector<TokenId>& output) {
    return sampler
        .sample(params, std::vector<TokenId>{7, 8}, {.sequence_id = {1}, .output_token_ids = output})
        .token_id;
  };
  EXPECT_EQ(after({7, 8}), 41);
  EXPECT_EQ(after({3, 7, 8}), 41);
  EXPECT_EQ(after({7, 9}), 40) << "another word's";
  EXPECT_EQ(after({8}), 40) << "the prompt's tokens are none of the word's";
  EXPECT_EQ(after({}), 40);
  EXPECT_EQ(after({7, 8, 3}), 40);
}

TEST(Sampler, DrawsNothingButWhatIsAllowed) {
  std::mt19937_64 random(9);
  const std::vector<float> row = random_logits(49152, random, 0.0f);
  RowSampler sampler(49152, kEndTokens);
  sampler.set_row(row);
  const SamplingParams params{.temperature = 5.0, .allowed_token_ids = {{9, 30'000, 49'151}}};
  std::map<TokenId, int> drawn;
  for (std::uint64_t seed = 0; seed < 300; ++seed)
    ++drawn[sampler.sample(params, {}, {.sequence_id = {1}, .seed = seed}).token_id];
  EXPECT_EQ(drawn.size(), 3u);
  for (const auto& [id, count] : drawn) EXPECT_TRUE(id == 9 || id == 30'000 || id == 49'151) << id;
  const SampledToken none = sampler.sample({.max_tokens = 1, .min_tokens = 1, .allowed_token_ids = {{2, 0}}},
                                           {}, {.sequence_id = {1}});
  EXPECT_TRUE(none.invalid_logits) << "both end a sequence";
}

TEST(Sampler, ReportsTheLogprobsOfTokensThatAreNamedInTheirOrder) {
  std::mt19937_64 random(10);
  const std::vector<float> row = random_logits(2000, random, 0.0f);
  const float sum = log_sum_exp(row);
  RowSampler sampler(2000, kEndTokens);
  sampler.set_row(row, sum);
  const SamplingParams params{.temperature = 0.0, .logprob_token_ids = {1999, 3, 3, 0}};
  for (const std::int32_t num_candidates : {0, 4}) {
    const SampledToken token =
        sampler.sample(params, {}, {.sequence_id = {1}, .num_candidates = num_candidates});
    ASSERT_EQ(token.top_logprobs.size(), 4u);
    for (std::size_t i = 0; i < 4; ++i) {
      const TokenId id = params.logprob_token_ids[i];
      EXPECT_EQ(token.top_logprobs[i].token_id, id);
      EXPECT_EQ(token.top_logprobs[i].logprob, row[static_cast<std::size_t>(id)] - sum);
    }
  }
}

// A backend draws bad words itself, as adjustments, and nothing that needs the row on the host.
TEST(Sampler, LeavesToABackendWhatItCanDraw) {
  const auto can_draw = [](const SamplingParams& params) {
    return Sampler::backend_draw(params, {.sequence_id = {1}}).has_value();
  };
  EXPECT_TRUE(can_draw({.bad_word_token_ids = {{1, 2}}}));
  EXPECT_FALSE(can_draw({.logprobs = 1}));
  EXPECT_FALSE(can_draw({.logprob_token_ids = {5}}));
  EXPECT_FALSE(can_draw({.allowed_token_ids = {{5}}}));
}

// Each reason alone, while it holds.
TEST(Sampler, KnowsWhetherItMayAdjust) {
  const std::vector<TokenId> output = {4, 5};
  const scheduler::SampleTarget target{.sequence_id = {1}, .output_token_ids = output};
  EXPECT_FALSE(Sampler::may_adjust({.top_k = 3, .min_tokens = 2}, target));
  for (const SamplingParams& params : {SamplingParams{.presence_penalty = 0.5},
                                       {.frequency_penalty = 0.5},
                                       {.repetition_penalty = 1.1},
                                       {.min_tokens = 3},
                                       {.logit_bias = {{3, 1.0}}},
                                       {.bad_word_token_ids = {{4}}}}) {
    EXPECT_TRUE(Sampler::may_adjust(params, target));
  }
}

TEST(Sampler, ReportsAtMostTheWholeVocabulary) {
  const std::vector<float> row = {1.0f, -kInfinity, 3.0f};
  RowSampler sampler(3, {});
  sampler.set_row(row);
  const SampledToken token = sampler.sample({.logprobs = 20}, {}, {});
  ASSERT_EQ(token.top_logprobs.size(), 3u);
  EXPECT_EQ(token.top_logprobs[0].token_id, 2);
  EXPECT_EQ(token.top_logprobs[2].token_id, 1);
  EXPECT_EQ(token.top_logprobs[2].logprob, -kInfinity);
}

TEST(Sampler, ARowThatIsNotFiniteGivesNoToken) {
  const SamplingParams params{};
  for (const std::size_t size : {5u, 64u, 130u}) {
    for (std::size_t at = 0; at < size; ++at) {
      std::vector<float> row(size, 0.5f);
      RowSampler sampler(size, {});
      row[at] = std::nanf("");
      sampler.set_row(row);
      ASSERT_TRUE(sampler.sample(params, {}, {.sequence_id = {3}}).invalid_logits) << "NaN at " << at;
      row[at] = kInfinity;
      sampler.set_row(row);
      ASSERT_TRUE(sampler.sample(params, {}, {.sequence_id = {3}}).invalid_logits) << "infinity at " << at;
      row[at] = -kInfinity;
      sampler.set_row(row);
      ASSERT_FALSE(sampler.sample(params, {}, {.sequence_id = {3}}).invalid_logits)
          << "minus infinity at " << at;
    }
    const std::vector<float> nothing(size, -kInfinity);
    RowSampler sampler(size, {});
    sampler.set_row(nothing, -kInfinity);
    const SampledToken token = sampler.sample(params, {}, {.sequence_id = {3}});
    EXPECT_TRUE(token.invalid_logits);
    EXPECT_EQ(token.sequence_id, SequenceId{3});
  }
}

TEST(Sampler, ATokenThatIsAloneIsDrawnAndWhenAllAreForbiddenNone) {
  std::vector<float> row(70, -kInfinity);
  row[2] = -50.0f;
  RowSampler sampler(70, kEndTokens);
  sampler.set_row(row, -50.0f);
  for (const double temperature : {0.0, 0.1, 1.0, 100.0}) {
    for (const double top_p : {1e-6, 0.5, 1.0}) {
      const SamplingParams params{.temperature = temperature, .top_p = top_p, .max_tokens = 16};
      EXPECT_EQ(sampler.sample(params, {}, {.sequence_id = {1}, .seed = 4}).token_id, 2);
      SamplingParams forbidden = params;
      forbidden.min_tokens = 1;
      EXPECT_TRUE(sampler.sample(forbidden, {}, {.sequence_id = {1}, .seed = 4}).invalid_logits);
    }
  }
}

TEST(Sampler, ForgetsTheTokensOfTheLastCall) {
  std::mt19937_64 random(11);
  const std::vector<float> row = random_logits(300, random, 0.0f);
  RowSampler used(300, {}), fresh(300, {});
  used.set_row(row);
  fresh.set_row(row);
  const SamplingParams params{
      .temperature = 0.0, .presence_penalty = 2.0, .frequency_penalty = 2.0, .repetition_penalty = 2.0};
  std::vector<TokenId> all(300);
  std::iota(all.begin(), all.end(), 0);
  used.sample(params, all, {.sequence_id = {1}, .output_token_ids = all});
  EXPECT_EQ(used.sample(params, {}, {}).token_id, fresh.sample(params, {}, {}).token_id);
}

}  // namespace
}  // namespace octavo::runner
