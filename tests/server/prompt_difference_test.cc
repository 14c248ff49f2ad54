#include "app/requests/prompt_difference.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "app/requests/prompt_reuse.h"
#include "tests/support/spelling_tokenizer.h"

namespace octavo::app {
namespace {

using octavo::testing::SpellingTokenizer;
using PromptIds = std::vector<TokenId>;

// Every word is a token with the space before it.
PromptIds words_as_ids(SpellingTokenizer& tokenizer, const std::string& text) {
  PromptIds ids;
  std::string word;
  for (const char c : text) {
    if (c == ' ' && !word.empty()) ids.push_back(tokenizer.token(std::exchange(word, "")));
    word += c;
  }
  if (!word.empty()) ids.push_back(tokenizer.token(word));
  return ids;
}

PromptIds ascending_ids(TokenId first, std::size_t count) {
  PromptIds ids(count);
  for (std::size_t i = 0; i < count; ++i) ids[i] = first + static_cast<TokenId>(i);
  return ids;
}

PromptIds joined_ids(std::initializer_list<PromptIds> parts) {
  PromptIds all;
  for (const PromptIds& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}

TEST(PromptDifference, CommonPrefixesEndAtTheFirstDifferenceOrTheShorterEnd) {
  const PromptIds prompt = {5, 6, 7};
  EXPECT_EQ(common_prefix_len(prompt, {.prompt = PromptIds{9, 6, 7}}), 0u);
  EXPECT_EQ(common_prefix_len(prompt, {.prompt = PromptIds{5, 9, 7}}), 1u);
  EXPECT_EQ(common_prefix_len(prompt, {.prompt = PromptIds{5, 6, 9}}), 2u);
  EXPECT_EQ(common_prefix_len(prompt, {.prompt = PromptIds{5, 6}}), 2u);
  EXPECT_EQ(common_prefix_len(prompt, {.prompt = PromptIds{5, 6, 7, 8}}), 3u);
  EXPECT_EQ(common_prefix_len(prompt, {.prompt = prompt}), 3u);
  EXPECT_EQ(common_prefix_len({}, {.prompt = prompt}), 0u);
}

TEST(PromptDifference, AnAnswerBelongsToWhatIsCommon) {
  const PromptIds mine = {5, 6, 7, 8};
  const PromptIds prompt = {5, 6}, answer = {7, 9};
  EXPECT_EQ(common_prefix_len(mine, {prompt, answer}), 3u);
  EXPECT_EQ(common_prefix_len(PromptIds{5, 7}, {prompt, answer}), 1u);
}

TEST(PromptDifference, TheNearestOfManyIsThatOfABruteForce) {
  for (unsigned seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    const auto some_ids = [&] {  // of two tokens, so that much begins alike
      PromptIds ids(random() % 7);
      for (TokenId& token_id : ids) token_id = static_cast<TokenId>(random() % 2);
      return ids;
    };
    const PromptIds mine = some_ids();
    std::vector<PromptIds> prompts(1 + random() % 20), answers(prompts.size());
    std::vector<EarlierPrompt> earlier;
    for (std::size_t i = 0; i < prompts.size(); ++i) {
      prompts[i] = some_ids();
      answers[i] = some_ids();
      earlier.push_back({.tokens = {prompts[i], answers[i]}, .is_of_same_client = random() % 2 == 0});
    }
    // Each as a number in which the length counts most, then the client, then the age.
    std::size_t best_rank = 0, best_common = 0, best_index = 0;
    for (std::size_t i = 0; i < earlier.size(); ++i) {
      const PromptIds theirs = joined_ids({prompts[i], answers[i]});
      std::size_t num_common = 0;
      while (num_common < mine.size() && num_common < theirs.size() && mine[num_common] == theirs[num_common])
        ++num_common;
      const std::size_t rank = num_common * 1000 + (earlier[i].is_of_same_client ? 100 : 0) + i;
      if (num_common > 0 && rank >= best_rank) best_rank = rank, best_common = num_common, best_index = i;
    }
    const auto nearest = nearest_prompt(mine, earlier);
    ASSERT_EQ(nearest.has_value(), best_common > 0);
    if (!nearest) continue;
    EXPECT_EQ(nearest->num_common, best_common);
    EXPECT_EQ(nearest->index, best_index);
  }
}

TEST(PromptDifference, TwelveTokensOfTextStandOnEachSide) {
  SpellingTokenizer tokenizer;
  const PromptIds ids = words_as_ids(tokenizer, "a b c d e f g h i j k l m n o p q r s t u v w x y z");
  const TextAround middle = text_around(tokenizer, {.prompt = ids}, 13);
  EXPECT_EQ(middle.before, " b c d e f g h i j k l m");
  EXPECT_EQ(middle.token, " n");
  EXPECT_EQ(middle.after, " o p q r s t u v w x y z");
  const TextAround first = text_around(tokenizer, {.prompt = ids}, 0);
  EXPECT_EQ(first.before, "");
  EXPECT_EQ(first.token, "a");
  EXPECT_EQ(first.after, " b c d e f g h i j k l m");
  const TextAround last = text_around(tokenizer, {.prompt = ids}, 25);
  EXPECT_EQ(last.token, " z");
  EXPECT_EQ(last.after, "");
  const TextAround behind = text_around(tokenizer, {.prompt = ids}, 26);
  EXPECT_EQ(behind.before, " o p q r s t u v w x y z");
  EXPECT_EQ(behind.token, "");
}

TEST(PromptDifference, WhatCannotBeSeenIsShown) {
  SpellingTokenizer tokenizer;
  const PromptIds ids = {tokenizer.token("line\n"),  tokenizer.token("\xe2\x82"), tokenizer.token("\xac"),
                         tokenizer.token("\x1b[1m"), SpellingTokenizer::kEnd,     -1};
  EXPECT_EQ(text_around(tokenizer, {.prompt = ids}, 0).after, "\u20ac\\x1b[1m</s><token -1>");
  const TextAround half = text_around(tokenizer, {.prompt = ids}, 2);
  EXPECT_EQ(half.before, "line\n\\xe2\\x82");
  EXPECT_EQ(half.token, "\\xac");
  EXPECT_EQ(half.after, "\\x1b[1m</s><token -1>");
}

TEST(PromptDifference, RunsAreFoundWhereTextWasPutInOrLeftOut) {
  const PromptIds first = ascending_ids(1000, 40), second = ascending_ids(2000, 20);
  const PromptIds theirs = joined_ids({{1}, first, {2, 3}, second});
  const PromptIds mine = joined_ids({{9, 9, 9}, first, second, {4}});
  EXPECT_EQ(same_runs(mine, {.prompt = theirs}, 0),
            (std::vector<SameRun>{{.mine = 3, .theirs = 1, .length = 40},
                                  {.mine = 43, .theirs = 43, .length = 20}}));
  // What stands before `begin` does not count on either side.
  EXPECT_EQ(same_runs(mine, {.prompt = theirs}, 20),
            (std::vector<SameRun>{{.mine = 22, .theirs = 20, .length = 21},
                                  {.mine = 43, .theirs = 43, .length = 20}}));
  EXPECT_TRUE(same_runs(mine, {.prompt = theirs}, mine.size()).empty());
}

TEST(PromptDifference, RunsBelowTheLeastLengthAreChance) {
  const PromptIds run = ascending_ids(50, kLeastSameRun), shorter = ascending_ids(50, kLeastSameRun - 1);
  EXPECT_EQ(same_runs(joined_ids({{1}, run}), {.prompt = joined_ids({{2}, run})}, 0).size(), 1u);
  EXPECT_TRUE(same_runs(joined_ids({{1}, shorter}), {.prompt = joined_ids({{2}, shorter})}, 0).empty());
}

TEST(PromptDifference, AnotherOrderIsSeen) {
  const PromptIds one = ascending_ids(100, 30), two = ascending_ids(200, 30), rest = ascending_ids(300, 30);
  const PromptIds theirs = joined_ids({one, two, rest});
  const auto moved = same_runs(joined_ids({two, one, rest}), {.prompt = theirs}, 0);
  ASSERT_EQ(moved.size(), 3u);
  EXPECT_TRUE(is_reordered(moved));
  EXPECT_FALSE(is_reordered(same_runs(joined_ids({{7}, two, rest}), {.prompt = theirs}, 0)));
  // A text that stands there twice is taken as the next one, not as one that moved back.
  const auto repeated = joined_ids({one, two, one});
  EXPECT_FALSE(is_reordered(same_runs(joined_ids({{7}, two, {8}, one}), {.prompt = repeated}, 0)));
}

TEST(PromptDifference, RunsOfRandomPromptsAreSameInBothAndMissNothingLong) {
  for (unsigned seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    std::vector<PromptIds> pieces;
    for (TokenId piece = 0; piece < 5; ++piece)
      pieces.push_back(ascending_ids(piece * 100, 10 + random() % 30));
    PromptIds mine, theirs;
    for (int i = 0; i < 8; ++i) {
      mine = joined_ids({mine, pieces[random() % pieces.size()]});
      theirs = joined_ids({theirs, pieces[random() % pieces.size()]});
    }
    const auto runs = same_runs(mine, {.prompt = theirs}, 0);
    std::vector<bool> covered(mine.size());
    std::size_t end = 0;
    for (const SameRun& run : runs) {
      ASSERT_GE(run.mine, end);
      ASSERT_GE(run.length, kLeastSameRun);
      end = run.mine + run.length;
      ASSERT_LE(end, mine.size());
      for (std::size_t i = 0; i < run.length; ++i) {
        ASSERT_EQ(mine[run.mine + i], theirs[run.theirs + i]);
        covered[run.mine + i] = true;
      }
    }
    // Between the runs no stretch is left that stands anywhere in theirs.
    for (std::size_t i = 0; i + kLeastSameRun <= mine.size(); ++i) {
      const auto begin = mine.begin() + static_cast<std::ptrdiff_t>(i);
      const auto stretch_end = begin + kLeastSameRun;
      const auto mark = covered.begin() + static_cast<std::ptrdiff_t>(i);
      if (std::find(mark, mark + kLeastSameRun, true) != mark + kLeastSameRun) continue;
      EXPECT_EQ(std::search(theirs.begin(), theirs.end(), begin, stretch_end), theirs.end()) << i;
    }
  }
}

ChangeKind kind_of_change(const std::string& before, const std::string& mine, const std::string& theirs) {
  return change_kind({.before = before, .token = mine, .after = ""},
                     {.before = before, .token = theirs, .after = ""});
}

TEST(PromptDifference, DatesChecksumsAndNumbersAreToldFromText) {
  EXPECT_EQ(kind_of_change("Today is ", "2026-12-10.", "2026-12-11."), ChangeKind::kTime);
  EXPECT_EQ(kind_of_change("It is 14:", "07 now", "08 now"), ChangeKind::kTime);
  EXPECT_EQ(kind_of_change("Today: ", "Monday", "Tuesday"), ChangeKind::kTime);
  EXPECT_EQ(kind_of_change("Date: ", "9 March", "10 March"), ChangeKind::kTime);
  EXPECT_EQ(kind_of_change("Date: ", "Mar 9", "Apr 9"), ChangeKind::kTime);
  EXPECT_EQ(kind_of_change("now=", "1793800000", "1793800911"), ChangeKind::kTime);
  EXPECT_EQ(kind_of_change("cch=", "a1b2c;", "a0fff;"), ChangeKind::kChecksum);
  EXPECT_EQ(kind_of_change("id ", "0b9f1c22-5d1e", "77e01c22-5d1e"), ChangeKind::kChecksum);
  EXPECT_EQ(kind_of_change("", "12345 tokens left", "9345 tokens left"), ChangeKind::kNumber);
  EXPECT_EQ(kind_of_change("of step", "10", "11"), ChangeKind::kNumber);
  EXPECT_EQ(kind_of_change("You ", "may", "will"), ChangeKind::kText);
  EXPECT_EQ(kind_of_change("I say ", "hello", "goodbye"), ChangeKind::kText);
  EXPECT_EQ(kind_of_change("2026-12-10", "", " and more"), ChangeKind::kText);
}

// ---- what is made of it

ReuseFacts facts_beside(std::size_t num_prompt, std::int32_t num_reused, NearestFacts nearest) {
  ReuseFacts facts{.block_size = 16,
                   .num_prompt = num_prompt,
                   .account = {.num_computed = static_cast<std::int32_t>(num_prompt) - num_reused,
                               .num_hit_cached = num_reused},
                   .miss = {.cause = MissCause::kFirstUse, .position = num_reused},
                   .ttft_us = 3'000'000,
                   .queue_us = 1'000'000};
  nearest.name = "cmpl-1";
  facts.nearest = std::move(nearest);
  return facts;
}

TEST(PromptReuse, WhatIsTheSameBehindADifferenceIsLost) {
  // Of 1,000 tokens 79 are common, 64 reused, and 900 behind the difference are the same again.
  const ReuseStory story = reuse_story(facts_beside(1000, 64,
                                                    {.num_common = 79,
                                                     .num_prompt = 990,
                                                     .same = {{.mine = 100, .theirs = 90, .length = 900}},
                                                     .change = ChangeKind::kTime}));
  EXPECT_EQ(story.cause, "differs");
  EXPECT_EQ(story.sentence, "The prompt differs from cmpl-1 at token 79.");
  EXPECT_EQ(story.lost_tokens, 900 + 79 - 64);
  ASSERT_TRUE(story.lost_seconds);
  EXPECT_DOUBLE_EQ(*story.lost_seconds, 2.0 / 936 * 915);
  EXPECT_EQ(
      story.advice,
      "The differing text looks like a date or a time: move it to the end of the prompt; 900 tokens behind "
      "the difference are the same as before.");
}

TEST(PromptReuse, NewTextIsNoLoss) {
  const ReuseStory story = reuse_story(facts_beside(1000, 79, {.num_common = 79, .num_prompt = 990}));
  EXPECT_EQ(story.cause, "differs");
  EXPECT_EQ(story.lost_tokens, 0);
  EXPECT_EQ(story.lost_seconds, 0.0);
  EXPECT_EQ(story.advice, "Nothing to do: what follows the difference is new.");
}

TEST(PromptReuse, AnAnswerThatCameBackOtherwiseIsNamed) {
  const ReuseStory story = reuse_story(facts_beside(400, 110,
                                                    {.num_common = 110,
                                                     .num_prompt = 100,
                                                     .num_answer = 100,
                                                     .same = {{.mine = 112, .theirs = 115, .length = 80}}}));
  EXPECT_EQ(story.cause, "differs");
  EXPECT_EQ(story.sentence, "The prompt differs from cmpl-1, in its answer, at token 110.");
  EXPECT_EQ(story.lost_tokens, 80);
  EXPECT_TRUE(story.advice.starts_with("Send answers back exactly")) << story.advice;
}

TEST(PromptReuse, AnotherOrderAsksForTheSameOrder) {
  const ReuseStory story = reuse_story(facts_beside(
      400, 32,
      {.num_common = 32,
       .num_prompt = 400,
       .same = {{.mine = 32, .theirs = 150, .length = 100}, {.mine = 140, .theirs = 40, .length = 100}},
       .change = ChangeKind::kNumber}));
  EXPECT_TRUE(story.advice.starts_with("Send tools, documents and messages in the same order"))
      << story.advice;
  EXPECT_EQ(story.lost_tokens, 200);
}

TEST(PromptReuse, ContinuingAChatLosesNothing) {
  // The last token of the answer was drawn and never computed.
  const ReuseStory story =
      reuse_story(facts_beside(200, 119, {.num_common = 120, .num_prompt = 100, .num_answer = 20}));
  EXPECT_EQ(story.cause, "continues");
  EXPECT_EQ(story.lost_tokens, 0);
}

TEST(PromptReuse, ThePromptsLastTokenIsNeverLost) {
  EXPECT_EQ(reuse_story(facts_beside(100, 99, {.num_common = 100, .num_prompt = 100})).cause, "none");
  EXPECT_EQ(reuse_story(facts_beside(100, 99, {.num_common = 100, .num_prompt = 100})).lost_tokens, 0);
  const ReuseStory all = reuse_story(facts_beside(100, 0, {.num_common = 100, .num_prompt = 100}));
  EXPECT_EQ(all.lost_tokens, 99);
  EXPECT_EQ(all.cause, "not_kept");
}

TEST(PromptReuse, ABeginningThatIsStillComputedCannotBeReused) {
  const ReuseStory story =
      reuse_story(facts_beside(100, 0, {.num_common = 80, .num_prompt = 100, .was_read = false}));
  EXPECT_EQ(story.cause, "being_computed");
  EXPECT_EQ(story.lost_tokens, 80);
}

TEST(PromptReuse, WhatTheEngineKnowsGoesFirst) {
  ReuseFacts facts = facts_beside(100, 16, {.num_common = 80, .num_prompt = 100});
  facts.miss = {.cause = MissCause::kEvicted, .position = 16, .evicted_step = 9, .evicted_by = 4};
  facts.evicted_by = "cmpl-2";
  facts.evicted_by_ms_earlier = 12'000;
  EXPECT_EQ(reuse_story(facts).cause, "evicted");
  EXPECT_EQ(reuse_story(facts).sentence,
            "The blocks behind token 16 were evicted for cmpl-2, which began 12.0 s earlier.");
  EXPECT_EQ(reuse_story(facts).lost_tokens, 64);
  facts.evicted_by.clear();
  EXPECT_EQ(reuse_story(facts).sentence,
            "The blocks behind token 16 were evicted for a request that is no longer known.");
  facts.nearest.reset();  // what was evicted was at least a block
  EXPECT_EQ(reuse_story(facts).lost_tokens, 16);
  facts.miss.evicted_by = 0;
  EXPECT_EQ(reuse_story(facts).sentence,
            "The blocks behind token 16 were evicted: the prefix cache was emptied.");

  for (const MissCause cause : {MissCause::kOtherSalt, MissCause::kNoCheckpoint, MissCause::kBehindWindow}) {
    facts.miss = {.cause = cause, .position = 16};
    EXPECT_EQ(reuse_story(facts).cause, miss_cause_name(cause));
  }
  facts.miss = {.cause = MissCause::kNotRead};
  facts.asked_prompt_logprobs = true;
  EXPECT_EQ(reuse_story(facts).sentence,
            "Prompt log-probabilities do not read the cache: they need every token computed.");
}

TEST(PromptReuse, WhatSharesLessThanABlockIsTheFirstOfItsKind) {
  ReuseFacts facts = facts_beside(100, 0, {.num_common = 3, .num_prompt = 100});
  EXPECT_EQ(reuse_story(facts).cause, "first_of_its_kind");
  EXPECT_EQ(reuse_story(facts).sentence,
            "First request of its kind: it begins like cmpl-1 for only 3 tokens.");
  facts.nearest->same = {{.mine = 10, .theirs = 9, .length = 60}};
  EXPECT_EQ(reuse_story(facts).cause, "differs");
  facts.nearest.reset();
  EXPECT_EQ(reuse_story(facts).sentence, "First request of its kind.");
  facts.forgot_earlier = true;
  EXPECT_EQ(reuse_story(facts).sentence, "First request of its kind among the prompts that are still known.");
  facts.account = {.num_computed = 40, .num_hit_live = 60};
  EXPECT_EQ(reuse_story(facts).cause, "no_longer_known");
}

TEST(PromptReuse, SecondsAreUnknownWithoutAFirstToken) {
  ReuseFacts facts = facts_beside(100, 0, {.num_common = 80, .num_prompt = 100});
  facts.ttft_us = 0;
  EXPECT_FALSE(reuse_story(facts).lost_seconds.has_value());
}

}  // namespace
}  // namespace octavo::app
