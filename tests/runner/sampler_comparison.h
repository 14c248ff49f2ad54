// Draws with random options, held against the plain definition (plain_sampler.h).
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <span>
#include <vector>

#include "tests/runner/plain_sampler.h"
#include "tests/runner/row_sampler.h"

namespace octavo::runner {

inline const std::vector<TokenId> kEndTokens = {2, 0};

// Every option at random, often off, so that all combinations come.
inline SamplingParams random_params(std::size_t vocabulary_size, std::mt19937_64& random) {
  std::uniform_real_distribution<double> unit(0.0, 1.0);
  const auto id = [&] { return static_cast<TokenId>(random() % vocabulary_size); };
  const auto sometimes = [&] { return random() % 3 == 0; };
  SamplingParams params;
  params.temperature = sometimes() ? 0.0 : std::exp(3.0 * (unit(random) - 0.5));
  if (sometimes()) params.top_p = 1.0 - unit(random);
  if (sometimes()) params.top_p = 1.0 - std::pow(10.0, -6.0 * unit(random) - 0.01);
  if (sometimes())
    params.top_k = static_cast<std::int32_t>(
        std::exp(unit(random) * std::log(2.0 * static_cast<double>(vocabulary_size))));
  if (sometimes()) params.min_p = std::pow(unit(random), 4.0);
  if (sometimes()) params.repetition_penalty = 0.5 + 1.5 * unit(random);
  if (sometimes()) params.frequency_penalty = 4.0 * unit(random) - 2.0;
  if (sometimes()) params.presence_penalty = 4.0 * unit(random) - 2.0;
  if (sometimes()) params.min_tokens = static_cast<std::int32_t>(random() % 16);
  if (sometimes()) {
    for (int i = 0; i < 5; ++i) params.stop_token_ids.push_back(id());
  }
  if (sometimes()) {
    for (int i = 0; i < 10; ++i) params.logit_bias[id()] = 20.0 * (unit(random) - 0.5);
  }
  return params;
}

struct History {
  std::vector<TokenId> prompt, output;
  scheduler::SampleTarget target(std::mt19937_64& random) const {
    return {.sequence_id = {7},
            .output_index = static_cast<std::uint32_t>(random() % 8),
            .seed = random(),
            .output_token_ids = output};
  }
};

inline History random_history(std::span<const float> logits, std::mt19937_64& random) {
  const auto likely_or_any = [&] {
    const auto any = static_cast<TokenId>(random() % logits.size());
    if (random() % 2 == 0) return any;
    return static_cast<TokenId>(std::max_element(logits.begin(), logits.end()) - logits.begin());
  };
  History history;
  history.prompt.resize(random() % 40);
  history.output.resize(random() % 20);
  for (TokenId& id : history.prompt) id = likely_or_any();
  for (TokenId& id : history.output) id = likely_or_any();
  return history;
}

// Most of one to three tokens continue the output, with a likely last token among others.
inline std::vector<std::vector<TokenId>> random_bad_words(std::span<const float> logits,
                                                          const History& history, std::mt19937_64& random) {
  const auto any = [&] { return static_cast<TokenId>(random() % logits.size()); };
  std::vector<std::vector<TokenId>> words;
  for (auto count = random() % 6; count > 0; --count) {
    const std::size_t begun = std::min<std::size_t>(random() % 3, history.output.size());
    std::vector<TokenId>& word =
        words.emplace_back(history.output.end() - static_cast<std::ptrdiff_t>(begun), history.output.end());
    if (begun > 0 && random() % 3 == 0) word.front() = any();
    const auto best = std::max_element(logits.begin(), logits.end()) - logits.begin();
    word.push_back(random() % 2 == 0 ? static_cast<TokenId>(best) : any());
  }
  return words;
}

// Draws the same in both ways `count` times, with random options.
inline void compare_with_definition(const std::vector<std::vector<float>>& rows, int count,
                                    std::uint64_t seed) {
  std::mt19937_64 random(seed);
  RowSampler sampler(rows.front().size(), kEndTokens);
  int num_skipped = 0;
  for (int i = 0; i < count; ++i) {
    const std::vector<float>& row = rows[static_cast<std::size_t>(i) % rows.size()];
    SamplingParams params = random_params(row.size(), random);
    const History history = random_history(row, random);
    const scheduler::SampleTarget target = history.target(random);
    if (random() % 4 == 0) params.bad_word_token_ids = random_bad_words(row, history, random);
    if (random() % 6 == 0) {
      auto& allowed = params.allowed_token_ids.emplace(1 + random() % 20);
      for (TokenId& id : allowed) id = static_cast<TokenId>(random() % row.size());
    }
    sampler.set_row(row);
    const SampledToken token = sampler.sample(params, history.prompt, target);
    const PlainDraw plain = plain_sample(row, params, history.prompt, target, kEndTokens);
    if (plain.is_near_a_limit && token.token_id != plain.token_id) {
      ++num_skipped;
      continue;
    }
    ASSERT_EQ(token.token_id, plain.token_id)
        << "seed " << seed << " draw " << i << " temperature " << params.temperature << " top_p "
        << params.top_p << " top_k " << params.top_k << " min_p " << params.min_p << " kept "
        << plain.kept.size();
    ASSERT_EQ(token.invalid_logits, plain.token_id < 0);
  }
  EXPECT_LE(num_skipped, count / 1000) << "too many draws lie within rounding of a limit to compare anything";
}

}  // namespace octavo::runner
