// Where the time of an answer went, as it is told.

#include "app/window/chat/answer_story.h"

#include <gtest/gtest.h>

namespace octavo::app {
namespace {

AnswerMetrics metrics() {
  AnswerMetrics answer;
  answer.num_prompt_tokens = 400;
  answer.num_cached_tokens = 40;
  answer.request = {.queue_us = 150'000, .ttft_us = 950'000, .tpot_us = 50'000, .e2e_us = 10'950'000};
  return answer;
}

TEST(AnswerStory, TellsWaitingReadingAndWriting) {
  AnswerMetrics answer = metrics();
  answer.request.prefix_miss = {.cause = MissCause::kDifferingToken, .position = 40};
  EXPECT_EQ(
      answer_story(answer),
      "Waited 150 ms for its turn. Read its prompt in 800 ms: 40 of 400 tokens were in memory, 360 were "
      "computed, because token 41 differs from what was in memory. Wrote for 10.0 s.");
  EXPECT_EQ(answer_delay(answer), "");
}

TEST(AnswerStory, SaysThatThePoolWasFull) {
  AnswerMetrics answer = metrics();
  answer.request.num_preemptions = 2;
  EXPECT_NE(answer_story(answer).find("Gave its memory to others twice, and waited until it could have it "
                                      "back: the pool was full."),
            std::string::npos)
      << answer_story(answer);
  EXPECT_EQ(answer_delay(answer), "preempted twice");
}

TEST(AnswerStory, ShowsAWaitOfASecondOrAFifth) {
  AnswerMetrics answer = metrics();
  answer.request.queue_us = 1'200'000;
  answer.request.ttft_us = 2'000'000;
  EXPECT_EQ(answer_delay(answer), "waited 1.2 s");
  answer.request = {.queue_us = 30'000, .ttft_us = 40'000, .tpot_us = 1'000, .e2e_us = 100'000};
  EXPECT_EQ(answer_delay(answer), "waited 30 ms");
  answer.request.e2e_us = 1'000'000;
  EXPECT_EQ(answer_delay(answer), "");
}

TEST(AnswerStory, TellsNothingOfWhatWasNotMeasured) {
  EXPECT_EQ(answer_story({}), "");
  EXPECT_EQ(answer_delay({}), "");
}

}  // namespace
}  // namespace octavo::app
