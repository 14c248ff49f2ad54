// What is asked, and when, is a function of the seed alone and has the distributions that it says.

#include "app/serving_bench/workload.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <set>
#include <string>
#include <vector>

namespace octavo::app {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

std::vector<double> gaps_s(const std::vector<std::int64_t>& times_us) {
  std::vector<double> gaps;
  for (std::size_t i = 1; i < times_us.size(); ++i)
    gaps.push_back(static_cast<double>(times_us[i] - times_us[i - 1]) / 1e6);
  return gaps;
}

double mean_of(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

// Of the deviation to the mean: 1 for exponential gaps.
double relative_deviation(const std::vector<double>& values) {
  const double mean = mean_of(values);
  double sum = 0.0;
  for (const double value : values) sum += (value - mean) * (value - mean);
  return std::sqrt(sum / static_cast<double>(values.size())) / mean;
}

TEST(Arrivals, AreAFunctionOfTheSeed) {
  EXPECT_EQ(arrival_times_us(100, 3.0, 1.0, 7), arrival_times_us(100, 3.0, 1.0, 7));
  EXPECT_NE(arrival_times_us(100, 3.0, 1.0, 7), arrival_times_us(100, 3.0, 1.0, 8));
}

TEST(Arrivals, BeginAtZeroAndAscend) {
  for (const double burstiness : {0.2, 1.0, 5.0, kInfinity}) {
    const auto times = arrival_times_us(1'000, 10.0, burstiness, 1);
    EXPECT_EQ(times.front(), 0);
    EXPECT_TRUE(std::ranges::is_sorted(times)) << burstiness;
  }
}

TEST(Arrivals, HaveTheRateAndTheShapeThatWasAsked) {
  for (const double burstiness : {0.25, 0.5, 1.0, 4.0, 100.0}) {
    const auto gaps = gaps_s(arrival_times_us(200'000, 5.0, burstiness, 3));
    EXPECT_NEAR(mean_of(gaps), 0.2, 0.2 * 0.02) << burstiness;
    // A gamma distribution of shape k deviates by 1 / sqrt(k) of its mean.
    EXPECT_NEAR(relative_deviation(gaps) * std::sqrt(burstiness), 1.0, 0.02) << burstiness;
  }
}

TEST(Arrivals, OfAPoissonProcessHaveNoMemory) {
  const auto gaps = gaps_s(arrival_times_us(100'000, 1.0, 1.0, 5));
  const auto share_above = [&](double limit) {
    return static_cast<double>(std::ranges::count_if(gaps, [&](double gap) { return gap > limit; })) /
           static_cast<double>(gaps.size());
  };
  for (const double limit : {0.1, 0.5, 1.0, 2.0, 4.0})
    EXPECT_NEAR(share_above(limit), std::exp(-limit), 0.006);
}

TEST(Arrivals, FixedGapsAndNoGaps) {
  EXPECT_EQ(arrival_times_us(4, 2.0, kInfinity, 1),
            (std::vector<std::int64_t>{0, 500'000, 1'000'000, 1'500'000}));
  EXPECT_EQ(arrival_times_us(3, kInfinity, 1.0, 1), (std::vector<std::int64_t>{0, 0, 0}));
}

// ---- texts

std::int32_t count_words(std::string_view text) {
  if (text.empty()) return 0;
  return 1 +
         static_cast<std::int32_t>(std::ranges::count_if(text, [](char c) { return c == ' ' || c == '\n'; }));
}

TEST(Workload, IsAFunctionOfTheSeed) {
  for (const Dataset dataset : {Dataset::kRandom, Dataset::kShareGpt, Dataset::kAlpaca,
                                Dataset::kPrefixRepetition, Dataset::kChatTurns}) {
    const WorkloadOptions options{.dataset = dataset, .num_prompts = 20, .input_len = 30, .output_len = 10};
    const auto text_of = [&](std::uint64_t seed) {
      std::string text;
      for (const PlannedChat& chat : plan_chats(options, seed)) {
        text += chat.system_prompt + "|";
        for (const PlannedTurn& turn : chat.turns) text += turn.text + std::to_string(turn.num_output_tokens);
      }
      return text;
    };
    EXPECT_EQ(text_of(1), text_of(1));
    EXPECT_NE(text_of(1), text_of(2));
  }
}

TEST(Workload, TextsAreAsLongAsTheySay) {
  const WorkloadOptions options{.num_prompts = 50, .input_len = 100, .output_len = 7, .range_ratio = 0.5};
  for (const PlannedChat& chat : plan_chats(options, 1)) {
    const PlannedTurn& turn = chat.turns.front();
    EXPECT_EQ(count_words(turn.text), turn.num_tokens);
    EXPECT_GE(turn.num_tokens, 50);
    EXPECT_LE(turn.num_tokens, 150);
    EXPECT_GE(turn.num_output_tokens, 3);
    EXPECT_LE(turn.num_output_tokens, 11);
  }
}

TEST(Workload, AVocabularyDecidesHowManyWordsATextHas) {
  // Long words are two tokens.
  const CountTokens count = [](std::string_view text) {
    std::int32_t tokens = 0, letters = 0;
    for (const char c : std::string(text) + " ") {
      if (c != ' ') {
        ++letters;
        continue;
      }
      tokens += letters > 5 ? 2 : 1;
      letters = 0;
    }
    return tokens;
  };
  int num_exact = 0;
  for (const PlannedChat& chat : plan_chats({.num_prompts = 50, .input_len = 200}, 1, count)) {
    const std::int32_t counted = count(chat.turns.front().text);
    EXPECT_NEAR(counted, 200, 1);
    num_exact += counted == 200 ? 1 : 0;
  }
  EXPECT_GT(num_exact, 25);
}

TEST(Workload, PromptsDifferAndPrefixesAreShared) {
  const auto chats = plan_chats({.num_prompts = 64, .input_len = 20, .prefix_len = 40}, 1);
  std::set<std::string> prefixes, prompts;
  for (const PlannedChat& chat : chats) {
    prefixes.insert(chat.system_prompt);
    prompts.insert(chat.turns.front().text);
    EXPECT_EQ(count_words(chat.system_prompt), 40);
  }
  EXPECT_EQ(prefixes.size(), 1u);
  EXPECT_EQ(prompts.size(), 64u);
}

TEST(Workload, PrefixRepetitionUsesEachPrefix) {
  const auto chats = plan_chats({.dataset = Dataset::kPrefixRepetition,
                                 .num_prompts = 200,
                                 .num_prefixes = 5,
                                 .repeated_prefix_len = 16,
                                 .suffix_len = 8},
                                1);
  std::set<std::string> prefixes;
  for (const PlannedChat& chat : chats) prefixes.insert(chat.system_prompt);
  EXPECT_EQ(prefixes.size(), 5u);
}

TEST(Workload, ShareGptHasThePapersMeans) {
  double input = 0.0, output = 0.0;
  const auto chats = plan_chats({.dataset = Dataset::kShareGpt, .num_prompts = 4'000}, 1);
  for (const PlannedChat& chat : chats) {
    input += chat.turns.front().num_tokens;
    output += chat.turns.front().num_output_tokens;
    EXPECT_LT(chat.turns.front().num_tokens + chat.turns.front().num_output_tokens, 2'048);
  }
  EXPECT_NEAR(input / 4'000, 161.18, 161.18 * 0.06);
  EXPECT_NEAR(output / 4'000, 338.0, 338.0 * 0.06);
}

TEST(Workload, ALimitOfTheModelHolds) {
  for (const Dataset dataset : {Dataset::kShareGpt, Dataset::kChatTurns}) {
    const WorkloadOptions options{.dataset = dataset,
                                  .num_prompts = 200,
                                  .input_len = 50,
                                  .output_len = 50,
                                  .num_turns = 9,
                                  .max_model_len = 512};
    for (const PlannedChat& chat : plan_chats(options, 1)) {
      std::int32_t total = chat.num_system_tokens;
      for (const PlannedTurn& turn : chat.turns) total += turn.num_tokens + turn.num_output_tokens;
      EXPECT_LT(total, 512);
      EXPECT_FALSE(chat.turns.empty());
    }
  }
}

// ---- files

std::string entry(const std::string& question, const std::string& answer) {
  return R"({"conversations":[{"from":"human","value":")" + question + R"("},{"from":"gpt","value":")" +
         answer + R"("}]})";
}

TEST(DatasetFile, ShareGptIsSelectedAsThePaperDid) {
  const std::string file = "[" + entry("one two three four", "a b c d e") + "," +
                           entry("too short", "a b c d") + "," + entry("one two three four five", "short") +
                           R"(,{"conversations":[]},7,)" + entry("five words are here now", "a b c d e f") +
                           "]";
  const auto chats = plan_from_file({.dataset = Dataset::kShareGpt, .num_prompts = 2}, file, 1, count_words);
  ASSERT_TRUE(chats) << chats.error().message;
  std::set<std::string> texts;
  for (const PlannedChat& chat : *chats) texts.insert(chat.turns.front().text);
  EXPECT_EQ(texts, (std::set<std::string>{"one two three four", "five words are here now"}));
}

TEST(DatasetFile, EachPromptComesOnceBeforeAnyComesTwice) {
  std::string file;
  for (int i = 0; i < 10; ++i) file += R"({"prompt":"prompt )" + std::to_string(i) + "\"}\n";
  const auto chats =
      plan_from_file({.dataset = Dataset::kCustom, .num_prompts = 25, .output_len = 9}, file, 1, {});
  ASSERT_TRUE(chats) << chats.error().message;
  ASSERT_EQ(chats->size(), 25u);
  std::set<std::string> first, second;
  for (std::size_t i = 0; i < 20; ++i) (i < 10 ? first : second).insert((*chats)[i].turns.front().text);
  EXPECT_EQ(first.size(), 10u);
  EXPECT_EQ(second.size(), 10u);
  EXPECT_EQ(chats->front().turns.front().num_output_tokens, 9);
}

TEST(DatasetFile, WhatIsWrongIsSaid) {
  const WorkloadOptions custom{.dataset = Dataset::kCustom, .num_prompts = 1};
  const WorkloadOptions sharegpt{.dataset = Dataset::kShareGpt, .num_prompts = 1};
  EXPECT_NE(plan_from_file(custom, "{\"prompt\":\"a\"}\nnot json", 1, {}).error().message.find("line 2"),
            std::string::npos);
  EXPECT_NE(plan_from_file(custom, "{\"text\":\"a\"}", 1, {}).error().message.find("line 1"),
            std::string::npos);
  EXPECT_FALSE(plan_from_file(custom, "", 1, {}));
  EXPECT_FALSE(plan_from_file(sharegpt, "[]", 1, count_words));
  EXPECT_FALSE(plan_from_file(sharegpt, "{", 1, count_words));
  EXPECT_NE(plan_from_file(sharegpt, "[]", 1, {}).error().message.find("--tokenizer"), std::string::npos);
}

}  // namespace
}  // namespace octavo::app
