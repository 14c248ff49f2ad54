// Tokens drawn on the emulated device from adjusted rows: those of the host's sampler with the same
// penalties, bias and min_tokens, and the logits and maxima that they are drawn from, one by one.
#include <gtest/gtest.h>

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <random>

#include "kernels/cuda/sampling/adjust_logits.h"
#include "tests/cuda/device_sampler.h"
#include "tests/cuda/sample_rows.h"
#include "tests/runner/sampler_comparison.h"
#include "tests/support/sweep.h"

namespace octavo::kernels::cuda {
namespace {

using runner::Sampler;

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// Lists of rows that ascend, as a runner puts them together.
struct Lists {
  std::vector<RowAdjustment> rows;
  std::vector<LogitAdjustment> tokens;

  void end_row(std::int32_t row, const LogitPenalties& penalties) {
    const std::int32_t first = rows.empty() ? 0 : rows.back().first_token + rows.back().num_tokens;
    const auto count = static_cast<std::int32_t>(tokens.size()) - first;
    if (count > 0) rows.push_back({row, first, count, penalties});
  }
  LogitAdjustments view() const { return {.rows = rows, .tokens = tokens}; }
};

class AdjustedDraws : public ::testing::Test {
 protected:
  void SetUp() override { emulation::settings().finds_races = false; }
  std::unique_ptr<Backend> host_ = create_backend({.threads = 1}).value();

  // Two draws from each row, which has a list of its own: random options, tokens before it. Returns how many
  // differed from the sampler's, each of which must lie within rounding of a limit.
  int compare(std::size_t size, std::size_t num_rows, std::uint64_t seed) {
    std::mt19937_64 random(seed);
    const std::vector<TokenId> ends = size > 2 ? runner::kEndTokens : std::vector<TokenId>{0};
    Sampler sampler(static_cast<std::int32_t>(size), ends, *host_);
    DeviceSampler device(static_cast<std::int64_t>(size), static_cast<std::int64_t>(num_rows * 128),
                         static_cast<std::int64_t>(num_rows));
    device.set_rows(some_rows(num_rows, size, random));
    std::vector<SamplingParams> params;
    std::vector<runner::History> histories(num_rows);
    std::vector<scheduler::SampleTarget> targets;
    std::vector<TokenDraw> draws;
    Lists lists;
    for (std::size_t row = 0; row < num_rows; ++row) {
      histories[row] = runner::random_history(device.row(row), random);
      SamplingParams each = runner::random_params(size, random);
      if (row % 4 == 0) each.logit_bias.clear(), each.stop_token_ids.clear(), each.min_tokens = 0;
      for (int i = 0; i < 2; ++i) {
        params.push_back(each);
        targets.push_back(histories[row].target(random));
        if (i == 0) sampler.append_adjustments(each, histories[row].prompt, targets.back(), lists.tokens);
        draws.push_back(*Sampler::backend_draw(each, targets.back()));
        draws.back().row = static_cast<std::int32_t>(row);
        each.temperature = 0.3 + each.temperature, each.top_k = 0, each.top_p = 0.8;
      }
      lists.end_row(static_cast<std::int32_t>(row), Sampler::penalties_of(each));
    }
    const std::vector<DrawnToken> drawn = device.draw(draws, lists.view());
    int num_differences = 0;
    for (std::size_t i = 0; i < draws.size(); ++i) {
      const std::size_t row = i / 2;
      device.show_row(row, sampler);
      const runner::SampledToken expected = sampler.sample(params[i], histories[row].prompt, targets[i]);
      const std::string what =
          "seed " + std::to_string(seed) + " size " + std::to_string(size) + " draw " + std::to_string(i);
      if (drawn[i].token_id == expected.token_id) {
        if (expected.token_id >= 0) {
          EXPECT_EQ(drawn[i].logprob, expected.logprob) << what;
        }
        continue;
      }
      ++num_differences;
      EXPECT_GE(params[i].temperature, kGreedyTemperature) << "a greedy choice differs: " << what;
      EXPECT_TRUE(runner::plain_sample(device.row(row), params[i], histories[row].prompt, targets[i], ends)
                      .is_near_a_limit)
          << what << " drew " << drawn[i].token_id << " instead of " << expected.token_id;
    }
    return num_differences;
  }

  // A device with one row for each list, and the draws of `params` from it.
  std::vector<DrawnToken> draw(const std::vector<float>& rows, std::size_t size, const Lists& lists,
                               const std::vector<TokenDraw>& draws) {
    device_.emplace(static_cast<std::int64_t>(size), std::ssize(lists.tokens), std::ssize(lists.rows));
    device_->set_rows(rows);
    return device_->draw(draws, lists.view());
  }
  std::optional<DeviceSampler> device_;
};

TEST_F(AdjustedDraws, AreTheSamplersOverSmallVocabularies) {
  int num_differences = 0;
  const std::vector<std::size_t> sizes = {1, 2, 3, 31, 63, 64, 65, 129, 200, 1000};
  for (const std::size_t size : test::some_of(sizes, 3)) num_differences += compare(size, 120, size);
  EXPECT_LE(num_differences, 3);
}

TEST_F(AdjustedDraws, AreTheSamplersOverOddVocabularies) {
  EXPECT_LE(compare(5003, 150, 5), 1);
  EXPECT_LE(compare(32001, 16, 6), 1);
}

// Each launch twice, in both orders of threads and blocks.
TEST_F(AdjustedDraws, AreDrawnWithoutRaces) {
  emulation::settings().finds_races = true;
  for (const std::size_t size : {65u, 700u}) EXPECT_EQ(compare(size, 24, 70 + size), 0);
}

// Every number of every row, those that no list names among them, and what the sampler's own definition
// gives.
TEST_F(AdjustedDraws, ChangeWhatTheListsNameAndNothingElse) {
  std::mt19937_64 random(12);
  std::uniform_real_distribution<double> unit(-1.0, 1.0);
  for (const std::size_t size : {1u, 64u, 65u, 777u}) {
    constexpr std::size_t kRows = 24;
    const std::vector<float> rows = some_rows(kRows, size, random);
    std::vector<float> expected = rows;
    Lists lists;
    for (std::size_t row = 0; row < kRows; ++row) {
      const LogitPenalties penalties = {std::exp(unit(random)), 2.0 * unit(random), 2.0 * unit(random)};
      std::vector<TokenId> ids(size);
      std::iota(ids.begin(), ids.end(), 0);
      std::shuffle(ids.begin(), ids.end(), random);
      ids.resize(row % 4 == 3 ? size : random() % (size + 1));  // all of them, none of them
      for (const TokenId id : ids) {
        const bool is_forbidden = random() % 16 == 0;
        lists.tokens.push_back({id, static_cast<std::int32_t>(random() % 6) - 1,
                                is_forbidden ? -static_cast<double>(INFINITY) : 100.0 * unit(random)});
        const LogitAdjustment& token = lists.tokens.back();
        double score = static_cast<double>(rows[row * size + static_cast<std::size_t>(id)]) + token.bias;
        if (token.output_count >= 0) {
          score = score > 0.0 ? score / penalties.repetition : score * penalties.repetition;
          score -= penalties.frequency * token.output_count;
          if (token.output_count > 0) score -= penalties.presence;
        }
        expected[row * size + static_cast<std::size_t>(id)] = static_cast<float>(score);
      }
      lists.end_row(static_cast<std::int32_t>(row), penalties);
    }
    draw(rows, size, lists, {});
    EXPECT_EQ(device_->read_logits(), expected) << size;
    std::vector<float> maxima;
    for (std::size_t row = 0; row < kRows; ++row) {
      for (std::size_t begin = 0; begin < size; begin += kLogitsPiece) {
        const auto piece = std::span(expected).subspan(row * size + begin,
                                                       std::min<std::size_t>(kLogitsPiece, size - begin));
        maxima.push_back(*std::max_element(piece.begin(), piece.end()));
      }
    }
    EXPECT_EQ(device_->read_maxima(), maxima) << size;
  }
}

TokenDraw greedy(std::int32_t row) { return {.row = row, .temperature = 0.0}; }

// The best of 200: in each way in which a list can move it. Log-probabilities stay the row's.
TEST_F(AdjustedDraws, FollowTheBestTokenWhereverItGoes) {
  constexpr std::size_t kSize = 200, kRows = 7;
  std::vector<float> row(kSize, 0.0f);
  for (std::size_t id = 64; id < 128; ++id) row[id] = 3.0f + 0.001f * static_cast<float>(id);
  row[70] = 9.0f, row[100] = 8.0f, row[3] = 5.0f, row[199] = 4.0f, row[150] = -kInfinity;
  std::vector<float> rows;
  for (std::size_t i = 0; i < kRows; ++i) rows.insert(rows.end(), row.begin(), row.end());
  Lists lists;
  lists.tokens.push_back({70, LogitAdjustment::kIsNotSeen, -2.0});  // within its piece
  lists.end_row(0, {});
  for (std::int32_t id = 64; id < 128; ++id)
    lists.tokens.push_back({id, LogitAdjustment::kIsNotSeen, -100.0});  // away from its piece
  lists.end_row(1, {});
  lists.tokens.push_back({199, LogitAdjustment::kIsNotSeen, 100.0});  // to the end of the last piece
  lists.tokens.push_back({70, 0, -INFINITY});
  lists.end_row(2, {});
  lists.tokens.push_back({70, 3, 0.0});  // 9 / 2 - 3 * 0.5 - 1 = 2
  lists.end_row(3, {.repetition = 2.0, .frequency = 0.5, .presence = 1.0});
  lists.tokens.push_back({150, LogitAdjustment::kIsNotSeen, 1e300});  // what cannot come stays that
  lists.tokens.push_back({5, LogitAdjustment::kIsNotSeen, 1e300});    // the largest number, and finite
  lists.end_row(4, {});
  for (std::int32_t id = 0; id < 200; ++id) lists.tokens.push_back({id, 1, -INFINITY});  // none is left
  lists.end_row(6, {.repetition = 1.5});
  std::vector<TokenDraw> draws;
  for (std::int32_t i = 0; i < static_cast<std::int32_t>(kRows); ++i) {
    draws.push_back(greedy(i));
    draws.push_back({.row = i, .top_k = 1, .uniform = 0.9});
    draws.push_back({.row = i, .temperature = 0.001, .uniform = 0.5});
    draws.push_back({.row = i, .top_p = 1e-9, .uniform = 0.99});
  }
  const std::vector<DrawnToken> drawn = draw(rows, kSize, lists, draws);
  const std::vector<TokenId> best = {100, 3, 199, 100, 5, 70, -1};
  for (std::size_t i = 0; i < drawn.size(); ++i) {
    const TokenId expected = best[i / 4];
    EXPECT_EQ(drawn[i].token_id, expected) << i;
    if (expected >= 0) {
      EXPECT_EQ(drawn[i].logprob, row[static_cast<std::size_t>(expected)] - device_->log_sum_exp(0)) << i;
    }
  }
}

// Whatever its list says.
TEST_F(AdjustedDraws, AreNoneWhereARowIsNotValid) {
  constexpr std::size_t kSize = 150;
  std::vector<float> rows(4 * kSize, 1.0f);
  rows[100] = kNan;
  std::fill_n(rows.begin() + kSize, kSize, -kInfinity);
  rows[2 * kSize + 7] = kInfinity;
  std::fill_n(rows.begin() + 3 * kSize, kSize, -kInfinity);
  rows[3 * kSize + 149] = -2.0f;  // one possible token
  Lists lists;
  for (std::int32_t row = 0; row < 4; ++row) {
    for (const TokenId id : {100, 7, 3, 149}) lists.tokens.push_back({id, 2, id == 149 ? 1.0 : -INFINITY});
    lists.end_row(row, {.repetition = 1.3});
  }
  for (const TokenDraw& kind : {greedy(0), TokenDraw{.uniform = 0.75}, TokenDraw{.top_p = 0.9},
                                TokenDraw{.top_k = 3}, TokenDraw{.min_p = 0.1}}) {
    std::vector<TokenDraw> draws(4, kind);
    for (std::int32_t row = 0; row < 4; ++row) draws[static_cast<std::size_t>(row)].row = row;
    const std::vector<DrawnToken> drawn = draw(rows, kSize, lists, draws);
    for (std::size_t row = 0; row < 3; ++row) EXPECT_EQ(drawn[row].token_id, -1) << row;
    EXPECT_EQ(drawn[3].token_id, 149);
    EXPECT_EQ(drawn[3].logprob, 0.0f);
  }
}

// Ids that come twice in every way that a request allows, as one entry each.
TEST_F(AdjustedDraws, NameNoTokenTwice) {
  Sampler sampler(10, {2, 2, 5}, *host_);
  const SamplingParams params{.frequency_penalty = 0.25,
                              .min_tokens = 9,
                              .stop_token_ids = {5, 7, 7},
                              .logit_bias = {{2, 4.0}, {3, -1.0}}};
  const std::vector<TokenId> prompt = {1, 3, 1, 5}, output = {3, 3, 9};
  std::vector<LogitAdjustment> tokens = {{.token_id = 3}};  // of another row
  sampler.append_adjustments(params, prompt, {.sequence_id = {1}, .output_token_ids = output}, tokens);
  std::map<TokenId, std::pair<std::int32_t, double>> found;
  for (const LogitAdjustment& token : std::span(tokens).subspan(1)) {
    EXPECT_TRUE(found.emplace(token.token_id, std::pair(token.output_count, token.bias)).second)
        << token.token_id << " comes twice";
  }
  constexpr double kForbidden = -std::numeric_limits<double>::infinity();
  const std::map<TokenId, std::pair<std::int32_t, double>> expected = {
      {1, {0, 0.0}},        {2, {-1, kForbidden}}, {3, {2, -1.0}},
      {5, {0, kForbidden}}, {7, {-1, kForbidden}}, {9, {1, 0.0}}};
  EXPECT_EQ(found, expected);
}

}  // namespace
}  // namespace octavo::kernels::cuda
