// What a model thinks is told apart from what it says, with its time by the clock that the window was given;
// and answers that go round in circles are noticed.

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "app/window/controller.h"
#include "tests/window/fake_engine.h"
#include "tests/window/plan_at_once.h"

namespace octavo::testing {
namespace {

namespace act = ui::actions;

constexpr const char* kThoughtful =
    "<think>\nThe person wants two words. Let me see.\n</think>\n\nTwo words.";

class Thinking : public ::testing::Test {
 protected:
  Thinking() : controller_(clock_, app::default_settings()) {
    engine_.clock = &clock_;
    controller_.attach_engine(engine_, plan_at_once(controller_, engine_));
  }

  const ui::ChatState& chat() const { return *ui::active_chat(controller_.state()); }
  const ui::MessageState& answer() const { return chat().messages.back(); }
  const app::Message& message() const { return *controller_.chat(chat().id)->find(answer().id); }
  void send(const std::string& text) { controller_.apply(act::SendMessage{chat().id, text}); }
  // One token more.
  void step() {
    engine_.steps_allowed = 1;
    clock_.advance_us(100'000);
    for (int i = 0; i < 3; ++i) controller_.poll_engine();
  }
  void finish() {
    for (int i = 0; i < 1'000 && controller_.busy(); ++i) step();
    ASSERT_FALSE(controller_.busy());
  }
  std::string shown(const ui::MessagePart& part) const {
    return answer().text.substr(part.begin, part.end - part.begin);
  }

  ManualClock clock_;
  FakeEngine engine_;
  app::Controller controller_;
};

TEST_F(Thinking, WhatTheTemplateIsToldGoesWithEveryQuestionOfItsChat) {
  const auto told = [&] { return std::get<ChatPrompt>(engine_.requests().back().prompt).template_values; };
  send("Say two words");
  EXPECT_TRUE(told().empty());
  finish();
  controller_.apply(act::ChangeTemplateValue{chat().id, "enable_thinking", false});
  EXPECT_EQ(chat().template_values, (TemplateValues{{"enable_thinking", false}}));
  send("Again");
  EXPECT_EQ(told(), (TemplateValues{{"enable_thinking", false}}));
  finish();
  controller_.apply(act::NewChat{});
  send("Elsewhere");
  EXPECT_TRUE(told().empty()) << "it belongs to one chat";
  finish();
  controller_.apply(act::SelectChat{ChatId{1}});
  controller_.apply(act::ChangeTemplateValue{ChatId{1}, "enable_thinking", std::nullopt});
  send("As usual");
  EXPECT_TRUE(told().empty());
}

TEST_F(Thinking, IsToldApartAndTimedFromItsFirstTokenToItsLast) {
  engine_.answers = {kThoughtful};
  send("Say two words");
  std::int64_t begun_us = -1, ended_us = -1;
  for (int i = 0; i < 1'000 && controller_.busy(); ++i) {
    step();
    if (answer().parts.empty() || !answer().parts.front().thinking) continue;
    const ui::MessagePart& thought = answer().parts.front();
    if (begun_us < 0) begun_us = clock_.now_us();
    if (ended_us < 0 && !thought.open) ended_us = clock_.now_us();
    if (thought.open && clock_.now_us() > begun_us) {
      EXPECT_EQ(thought.duration_ms, static_cast<double>(clock_.now_us() - begun_us) / 1000.0);
    }
  }
  ASSERT_GT(ended_us, begun_us);
  ASSERT_EQ(answer().parts.size(), 2u);
  EXPECT_EQ(shown(answer().parts[0]), "The person wants two words. Let me see.");
  EXPECT_EQ(answer().parts[0].duration_ms, static_cast<double>(ended_us - begun_us) / 1000.0);
  EXPECT_EQ(shown(answer().parts[1]), "Two words.");
  EXPECT_EQ(message().thinking.durations_us, std::vector<std::int64_t>{ended_us - begun_us});
}

TEST_F(Thinking, IsSentBackAsItWasWritten) {
  engine_.answers = {kThoughtful};
  send("Say two words");
  finish();
  send("Thanks");
  finish();
  const auto& sent = std::get<ChatPrompt>(engine_.requests().back().prompt).messages;
  ASSERT_EQ(sent.size(), 3u);
  EXPECT_EQ(sent[1].content, kThoughtful);
  EXPECT_FALSE(sent[1].token_ids.empty());
}

TEST_F(Thinking, ThatWasStoppedIsOpenAndGoesOnWithItsTime) {
  engine_.answers = {"<think>\nThis will take a while", " longer.\n</think>\n\nDone."};
  send("Think");
  for (int i = 0; i < 6; ++i) step();
  controller_.apply(act::StopAnswer{chat().id});
  finish();
  ASSERT_EQ(answer().parts.size(), 1u);
  EXPECT_TRUE(answer().parts[0].open);
  const double before = answer().parts[0].duration_ms.value_or(0);
  EXPECT_GT(before, 0);
  controller_.apply(act::ContinueAnswer{chat().id, answer().id});
  finish();
  ASSERT_EQ(answer().parts.size(), 2u);
  EXPECT_FALSE(answer().parts[0].open);
  EXPECT_GT(answer().parts[0].duration_ms.value_or(0), before);
  EXPECT_EQ(shown(answer().parts[1]), "Done.");
}

TEST_F(Thinking, ThatThePromptBeganIsKnownFromTheFirstToken) {
  engine_.answers = {"Still thinking when it was cut"};
  send("The fake template ends with what is asked: <think>");
  step();
  step();
  ASSERT_EQ(answer().parts.size(), 1u);
  EXPECT_TRUE(answer().parts[0].thinking);
  finish();
  ASSERT_EQ(answer().parts.size(), 1u);
  EXPECT_TRUE(answer().parts[0].thinking);
  EXPECT_TRUE(answer().parts[0].open);
  EXPECT_TRUE(message().thinking.begun_by_prompt);
}

// ---- going round in circles

class Circles : public Thinking {
 protected:
  static std::string circle() {
    std::string text = "Once upon a time. ";
    for (int i = 0; i < 100; ++i)
      text += "And then the very same thing happened to the very same one again, so that ";
    return text;
  }
  void stop_by_itself() {
    ui::SettingsState settings = controller_.state().settings;
    settings.on_repeats = ui::OnRepeats::kStop;
    controller_.apply(act::ChangeSettings{settings});
  }
};

TEST_F(Circles, AreToldWhileTheyRun) {
  engine_.answers = {circle()};
  send("Tell me a story");
  for (int i = 0; i < 100; ++i) step();
  EXPECT_FALSE(answer().repeats);
  for (int i = 0; i < 100; ++i) step();
  EXPECT_TRUE(answer().repeats);
  controller_.apply(act::StopAnswer{chat().id});
  finish();
  EXPECT_FALSE(answer().repeats);
  EXPECT_EQ(answer().figures.stop_reason, "stopped, it repeated itself");
}

TEST_F(Circles, EndByThemselvesWhereThatIsWanted) {
  stop_by_itself();
  engine_.answers = {circle()};
  send("Tell me a story");
  finish();
  EXPECT_LT(answer().text.size(), circle().size() / 2);
  EXPECT_EQ(message().finish_reason, FinishReason::kAbort);
  EXPECT_EQ(answer().figures.stop_reason, "stopped, it repeated itself");
  engine_.answers = {"A short one."};
  controller_.apply(act::Regenerate{chat().id, answer().id});
  finish();
  EXPECT_EQ(answer().figures.stop_reason, "finished");
}

// ---- what the model's file advises

TEST(ModelAdvice, NewChatsBeginWithIt) {
  ManualClock clock;
  app::Controller controller(clock, app::default_settings());
  FakeEngine::Options advice;
  advice.advice = {.temperature = 0.6, .top_k = 20};
  advice.first_request = 1'000'000;
  FakeEngine plain, advising(advice);
  controller.attach_engine(plain, plan_at_once(controller, plain));
  const auto chat = [&]() -> const ui::ChatState& { return *ui::active_chat(controller.state()); };
  EXPECT_EQ(chat().sampling.temperature, 0.7);
  controller.attach_engine(advising, plan_at_once(controller, advising));
  EXPECT_EQ(chat().sampling.temperature, 0.6) << "a chat without a message is new";
  EXPECT_EQ(chat().sampling.top_k, 20);
  EXPECT_EQ(chat().sampling.top_p, 0.95) << "what the file says nothing of stays";
  EXPECT_EQ(controller.state().model.sampling_advice.top_k, 20);
  SamplingParams own = chat().sampling;
  own.temperature = 1.2;
  controller.apply(act::ChangeSampling{chat().id, own});
  controller.apply(act::SendMessage{chat().id, "q"});
  EXPECT_EQ(advising.requests().back().sampling.temperature, 1.2);
  while (controller.busy()) controller.poll_engine();
  controller.apply(act::NewChat{});
  EXPECT_EQ(chat().sampling.temperature, 0.6);
  EXPECT_EQ(controller.settings().sampling.temperature, 1.2) << "for models that advise nothing";
  EXPECT_EQ(controller.settings().sampling.top_k, 0) << "the person did not choose this one";
}

TEST(Imports, TakeTheSamplingOfNewChatsAndKeepTheirDates) {
  ManualClock clock;
  app::Controller controller(clock, app::default_settings());
  FakeEngine engine;
  controller.attach_engine(engine, plan_at_once(controller, engine));
  std::vector<app::Chat> chats(2);
  for (app::Chat& chat : chats) chat.append(app::kRootMessage, Role::kUser, "q");
  chats[0].title = "newer, foreign";
  chats[0].has_sampling = false;
  chats[0].updated_ms = 2'000;
  chats[1].title = "older, own";
  chats[1].sampling.temperature = 0.25;
  chats[1].updated_ms = 1'000;
  controller.take_imported(std::move(chats));
  ASSERT_GE(controller.state().chats.size(), 2u);
  EXPECT_EQ(controller.state().chats[0].title, "newer, foreign");
  EXPECT_EQ(controller.state().chats[0].sampling.temperature, 0.7);
  EXPECT_EQ(controller.state().chats[0].sampling.max_tokens, 1024);
  EXPECT_EQ(controller.state().chats[1].title, "older, own");
  EXPECT_EQ(controller.state().chats[1].sampling.temperature, 0.25);
  controller.apply(act::ExportAllChats{"all.json"});
  const auto effects = controller.take_effects();
  ASSERT_EQ(effects.chats.exports.size(), 1u);
  EXPECT_EQ(effects.chats.exports[0].chats.front().updated_ms, 2'000);
}

}  // namespace
}  // namespace octavo::testing
