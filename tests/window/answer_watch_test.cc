// Which answers a person is told of.

#include "app/window/answer_watch.h"

#include <gtest/gtest.h>

namespace octavo::app {
namespace {

constexpr std::int64_t kSecond = 1'000'000;

ui::ChatState chat(std::uint64_t id, ui::Activity activity) {
  ui::ChatState state;
  state.id = ChatId{id};
  state.title = "chat " + std::to_string(id);
  state.activity = activity;
  return state;
}

TEST(AnswerWatch, OnlyLongAnswersAreToldOfAndOnlyOnce) {
  AnswerWatch watch;
  watch.update({chat(1, ui::Activity::kWaiting), chat(2, ui::Activity::kGenerating)}, 0);
  watch.update({chat(1, ui::Activity::kGenerating), chat(2, ui::Activity::kIdle)}, 9 * kSecond);
  EXPECT_TRUE(watch.take_ended().empty()) << "9 s are not long";
  watch.update({chat(1, ui::Activity::kIdle), chat(2, ui::Activity::kIdle)}, 11 * kSecond);
  const auto ended = watch.take_ended();
  ASSERT_EQ(ended.size(), 1u);
  EXPECT_EQ(ended[0].chat_id, ChatId{1});
  EXPECT_EQ(ended[0].title, "chat 1");
  EXPECT_FALSE(ended[0].failed);
  watch.update({chat(1, ui::Activity::kIdle)}, 60 * kSecond);
  EXPECT_TRUE(watch.take_ended().empty());
}

TEST(AnswerWatch, AFailureIsToldOfAndADeletedChatIsNot) {
  AnswerWatch watch;
  watch.update({chat(1, ui::Activity::kGenerating), chat(2, ui::Activity::kGenerating)}, 0);
  watch.update({chat(1, ui::Activity::kFailed)}, 20 * kSecond);
  const auto ended = watch.take_ended();
  ASSERT_EQ(ended.size(), 1u);
  EXPECT_TRUE(ended[0].failed);
}

TEST(AnswerWatch, TheNextAnswerBeginsAnew) {
  AnswerWatch watch;
  watch.update({chat(1, ui::Activity::kGenerating)}, 0);
  watch.update({chat(1, ui::Activity::kIdle)}, 5 * kSecond);
  watch.update({chat(1, ui::Activity::kGenerating)}, 6 * kSecond);
  watch.update({chat(1, ui::Activity::kIdle)}, 15 * kSecond);
  EXPECT_TRUE(watch.take_ended().empty());
}

}  // namespace
}  // namespace octavo::app
