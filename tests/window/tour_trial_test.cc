// What a visitor types is played on the real engine core, whatever it is; what cannot be is one sentence.

#include "app/window/memory/tour_trial.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "app/window/memory/explain_tour.h"

namespace octavo::app {
namespace {

std::string repeated(const std::string& word, int count) {
  std::string text;
  for (int i = 0; i < count; ++i) text += word + " ";
  return text;
}

std::int64_t count(const TourChapter& chapter, BlockEventKind kind) {
  return std::ranges::count(chapter.recorder->read_since(0, 0).block_events, kind, &BlockEvent::kind);
}

std::string problem_of(const std::string& first, const std::string& second = "") {
  const auto played = play_trial({.prompts = {first, second}});
  EXPECT_FALSE(played.has_value());
  return played ? std::string() : played.error().message;
}

TEST(TourTrial, WordsThatTheTourDoesNotKnowBecomeTokens) {
  const auto played =
      play_trial({.prompts = {"Grüße från Ωmega 東京 zwölf"}, .answers = ui::TrialAnswers::kOneSample});
  ASSERT_TRUE(played.has_value()) << played.error().message;
  const auto& words = played->words.begin()->second;
  ASSERT_EQ(words.size(), 5u + 8u - 1u) << "the last word ends the request before a snapshot has it";
  EXPECT_EQ(words[0], "Grüße");
  EXPECT_EQ(words[3], "東京");
}

TEST(TourTrial, TheTextAloneDecidesTheAnswer) {
  const auto answer = [](const std::string& text) {
    const auto played = play_trial({.prompts = {text}, .answers = ui::TrialAnswers::kOneSample});
    std::vector<std::string> words = played->words.begin()->second;
    return std::vector<std::string>(words.begin() + 2, words.end());
  };
  EXPECT_EQ(answer("two words"), answer("two words"));
  EXPECT_NE(answer("two words"), answer("two others"));
}

TEST(TourTrial, SamplesCopyBeamsForkAndASecondTextFindsTheFirst) {
  ui::TourTrial trial = first_trial();
  const auto samples = play_trial(trial);
  ASSERT_TRUE(samples.has_value());
  EXPECT_GT(count(*samples, BlockEventKind::kShare), 0);
  EXPECT_GT(count(*samples, BlockEventKind::kCopyOnWrite), 0);
  EXPECT_GE(count(*samples, BlockEventKind::kHit), 1) << "both begin with “The cat sat on”";
  trial.answers = ui::TrialAnswers::kTwoBeams;
  const auto beams = play_trial(trial);
  ASSERT_TRUE(beams.has_value());
  EXPECT_GT(count(*beams, BlockEventKind::kFork), 0);
}

TEST(TourTrial, EveryLengthUpToTheLimitPlaysToItsEnd) {
  for (int length = 1; length <= 24; ++length) {
    for (const auto answers :
         {ui::TrialAnswers::kOneSample, ui::TrialAnswers::kThreeSamples, ui::TrialAnswers::kTwoBeams}) {
      const auto played = play_trial(
          {.prompts = {repeated("word", length), repeated("other", 25 - length)}, .answers = answers});
      ASSERT_TRUE(played.has_value()) << length << ": " << played.error().message;
      EXPECT_GE(played->stops.size(), 8u) << length;
      EXPECT_EQ(count(*played, BlockEventKind::kPreempt), 0) << length << ": the pool is large enough";
      EXPECT_LE(played->recorder->shape().num_blocks, 64);
    }
  }
}

TEST(TourTrial, WhatCannotBePlayedIsOneSentence) {
  EXPECT_EQ(problem_of("  \t "), "Type a few words first.");
  EXPECT_EQ(problem_of("", "only here"), "Type a few words first.");
  EXPECT_EQ(problem_of(repeated("a", 25)), "The text has 25 words; shorten it to 24.");
  EXPECT_EQ(problem_of("a", repeated("a", 1'000)), "The second text has 1,000 words; shorten it to 24.");
  EXPECT_EQ(problem_of(std::string(25, 'x')),
            "A word of 25 letters has no room in a slot; use words of up to 24.");
  EXPECT_TRUE(play_trial({.prompts = {repeated("東京", 12)}}).has_value());
}

}  // namespace
}  // namespace octavo::app
