#include "engine/scheduler/prompt_lookup.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "tests/block/seed.h"

namespace octavo::scheduler {
namespace {

using Tokens = std::vector<TokenId>;

TEST(PromptLookup, CopiesWhatFollowedTheSameTokens) {
  EXPECT_EQ(guess_next(Tokens{1, 2, 3, 4, 5, 6, 9, 1, 2, 3}, 2), (Tokens{4, 5}));
}

TEST(PromptLookup, GuessesNothingWithoutAMatchOfThreeTokens) {
  EXPECT_TRUE(guess_next(Tokens{1, 2, 3, 4, 5, 9, 2, 3}, 4).empty());
  EXPECT_TRUE(guess_next(Tokens{1, 2, 3}, 4).empty());
  EXPECT_TRUE(guess_next(Tokens{1}, 4).empty());
  EXPECT_TRUE(guess_next(Tokens{}, 4).empty());
}

TEST(PromptLookup, GuessesAtMostAsManyAsAsked) {
  const Tokens tokens = {1, 2, 3, 4, 5, 6, 7, 8, 1, 2, 3};
  for (std::int32_t most = 0; most <= 5; ++most) EXPECT_EQ(std::ssize(guess_next(tokens, most)), most);
}

TEST(PromptLookup, PrefersTheLongerMatchAndOfEqualOnesTheLatest) {
  EXPECT_EQ(guess_next(Tokens{0, 1, 2, 3, 70, 1, 2, 3, 80, 0, 1, 2, 3}, 1), (Tokens{70}));
  EXPECT_EQ(guess_next(Tokens{1, 2, 3, 70, 1, 2, 3, 80, 5, 1, 2, 3}, 1), (Tokens{80}));
  EXPECT_EQ(guess_next(Tokens{8, 1, 2, 3, 4, 5, 70, 9, 1, 2, 3, 4, 5, 80, 8, 1, 2, 3, 4, 5}, 1), (Tokens{80}))
      << "five tokens are enough";
}

TEST(PromptLookup, GoesOnWithItselfWhereTheTextRepeats) {
  EXPECT_EQ(guess_next(Tokens{7, 7, 7, 7}, 3), (Tokens{7, 7, 7}));
  EXPECT_EQ(guess_next(Tokens{1, 2, 1, 2, 1}, 4), (Tokens{2, 1, 2, 1}));
}

// Every place is looked at, from the first to the last; a later one counts if it is at least as good.
Tokens guess_by_trying_all(const Tokens& tokens, std::size_t most) {
  std::size_t best = 0, best_length = 0;
  for (std::size_t end = 1; end < tokens.size(); ++end) {
    std::size_t length = 0;
    while (length < std::min<std::size_t>(kLongestMatch, end) &&
           tokens[end - 1 - length] == tokens[tokens.size() - 1 - length]) {
      ++length;
    }
    if (length >= std::max<std::size_t>(best_length, kShortestMatch)) best = end, best_length = length;
  }
  Tokens all = tokens;
  for (std::size_t i = 0; i < most && best > 0; ++i) all.push_back(all[best + i]);
  return {all.begin() + std::ssize(tokens), all.end()};
}

TEST(PromptLookup, FindsWhatTryingAllPlacesFinds) {
  std::mt19937 random(test_seed());
  std::size_t num_found = 0;
  for (int round = 0; round < 20'000; ++round) {
    Tokens tokens(random() % 40);
    for (TokenId& token : tokens) token = static_cast<TokenId>(random() % 3);
    const std::size_t most = random() % 8;
    const Tokens guesses = guess_next(tokens, static_cast<std::int32_t>(most));
    ASSERT_EQ(guesses, guess_by_trying_all(tokens, most));
    num_found += guesses.size();
  }
  EXPECT_GT(num_found, 10'000u);
}

}  // namespace
}  // namespace octavo::scheduler
