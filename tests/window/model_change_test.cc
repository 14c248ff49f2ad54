// One model takes another's place while chats go on: the controller with two scripted engines.

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "app/window/controller.h"
#include "tests/window/fake_engine.h"
#include "tests/window/plan_at_once.h"

namespace octavo::app {
namespace {

using testing::FakeEngine;
namespace act = ui::actions;

class ModelChange : public ::testing::Test {
 protected:
  ModelChange()
      : old_(FakeEngine::Options{.name = "Old", .path = "/models/Old.gguf"}),
        new_(FakeEngine::Options{
            .name = "New", .path = "/models/New.gguf", .first_request = 1000, .vocabulary = 8}),
        controller_(clock_, default_settings()) {
    old_.clock = new_.clock = &clock_;
    attach(old_);
  }

  void attach(FakeEngine& engine) {
    controller_.attach_engine(engine, testing::plan_at_once(controller_, engine));
  }
  const ui::UiState& state() const { return controller_.state(); }
  const ui::ChatState& chat() const { return *ui::active_chat(state()); }
  const ui::ChatState& chat(ChatId id) const { return *ui::find_chat(state(), id); }
  ChatId ask(const std::string& text) {
    controller_.apply(act::SendMessage{chat().id, text});
    return chat().id;
  }
  ChatId ask_in_new_chat(const std::string& text) {
    controller_.apply(act::NewChat{});
    return ask(text);
  }
  void poll(int count) {
    for (int i = 0; i < count; ++i) {
      clock_.advance_us(20'000);
      controller_.poll_engine();
    }
  }
  void finish_everything() {
    while (controller_.busy()) poll(1);
  }

  ManualClock clock_;
  FakeEngine old_, new_;
  Controller controller_;
};

TEST_F(ModelChange, AnswersUnderWayFinishOnTheOldModelAndNewOnesGoToTheNewOne) {
  old_.answers = {"one two three four five six", "alpha beta gamma delta epsilon"};
  const ChatId first = ask("count");
  const ChatId second = ask_in_new_chat("spell");
  poll(2);
  attach(new_);
  EXPECT_EQ(state().model.name, "New");
  EXPECT_TRUE(controller_.uses(old_));
  EXPECT_EQ(chat(first).activity, ui::Activity::kGenerating);
  const ChatId third = ask_in_new_chat("hello");
  poll(1);
  EXPECT_EQ(new_.requests().size(), 1u);
  finish_everything();
  EXPECT_EQ(chat(first).messages.back().text, "one two three four five six");
  EXPECT_EQ(chat(second).messages.back().text, "alpha beta gamma delta epsilon");
  EXPECT_EQ(chat(third).messages.back().text, "You said: hello");
  EXPECT_EQ(chat(first).messages.back().model, "Old");
  EXPECT_EQ(chat(third).messages.back().model, "New");
  EXPECT_EQ(old_.requests().size(), 2u);
  poll(1);
  EXPECT_FALSE(controller_.uses(old_)) << "its last answer has ended";
  EXPECT_TRUE(controller_.uses(new_));
}

TEST_F(ModelChange, AnEngineWithoutAnswersIsLetGoAtOnce) {
  ask("hello");
  finish_everything();
  attach(new_);
  EXPECT_FALSE(controller_.uses(old_));
}

TEST_F(ModelChange, TheNextTurnOfAChatAsksTheNewModelAndEveryTokenIsCountedAgain) {
  ask("hello");
  finish_everything();
  attach(new_);
  ask("and again");
  finish_everything();
  ASSERT_EQ(new_.requests().size(), 1u);
  EXPECT_EQ(chat().messages[1].model, "Old");
  EXPECT_EQ(chat().messages[3].model, "New");
  EXPECT_EQ(old_.requests().size(), 1u);
}

TEST_F(ModelChange, QuestionsThatWaitedForAnAnswerGoToTheNewModel) {
  old_.answers = {"one two three four five six"};
  const ChatId id = ask("count");
  poll(1);
  ask("next");
  ASSERT_EQ(chat().queued.size(), 1u);
  attach(new_);
  finish_everything();
  EXPECT_EQ(old_.requests().size(), 1u);
  ASSERT_EQ(new_.requests().size(), 1u);
  EXPECT_EQ(chat(id).messages.back().text, "You said: next");
}

TEST_F(ModelChange, QuestionsThatAreSentWhileAModelIsLoadedAreAskedThenInTurn) {
  ask("before");
  finish_everything();
  controller_.detach_engine();
  controller_.models().show_loading("/models/New.gguf", 0.4);
  ASSERT_EQ(state().model.phase, ui::ModelPhase::kLoading);
  ask("one");
  ask("two");
  EXPECT_EQ(chat().queued, (std::vector<std::string>{"one", "two"}));
  EXPECT_EQ(chat().messages.size(), 2u);
  attach(new_);
  finish_everything();
  EXPECT_TRUE(chat().queued.empty());
  ASSERT_EQ(chat().messages.size(), 6u);
  EXPECT_EQ(chat().messages[3].text, "You said: one");
  EXPECT_EQ(chat().messages[5].text, "You said: two");
  EXPECT_EQ(old_.requests().size(), 1u);
}

// It would wait for a model that nobody loads.
TEST_F(ModelChange, AQuestionIsNotTakenWhereNoModelIsLoaded) {
  controller_.detach_engine();
  controller_.models().show_no_model("/models/New.gguf", "New.gguf: it ends early");
  ask("one");
  EXPECT_TRUE(chat().queued.empty());
  EXPECT_TRUE(chat().messages.empty());
}

TEST_F(ModelChange, AnAnswerOfTheOldModelCanBeStopped) {
  old_.answers = {std::string(400, 'x')};
  ask("count");
  poll(2);
  attach(new_);
  controller_.apply(act::StopAnswer{chat().id});
  poll(2);
  EXPECT_FALSE(controller_.busy());
  EXPECT_EQ(chat().messages.back().figures.stop_reason, "stopped");
  EXPECT_FALSE(controller_.uses(old_));
}

// Ids of one vocabulary mean something else in another one.
TEST_F(ModelChange, AnswersAreContinuedWithoutTheOtherModelsTokenIds) {
  old_.answers = {"one two three four"};
  old_.steps_allowed = 2;
  ask("count");
  poll(3);
  controller_.apply(act::StopAnswer{chat().id});
  poll(2);
  ASSERT_EQ(chat().messages[1].text, "one two ");
  ASSERT_EQ(controller_.chat(chat().id)->messages()[1].token_ids.size(), 2u);
  attach(new_);
  new_.answers = {"three four"};
  controller_.apply(act::ContinueAnswer{chat().id, chat().messages[1].id});
  finish_everything();
  const auto& prompt = std::get<ChatPrompt>(new_.requests().at(0).prompt);
  EXPECT_TRUE(prompt.messages.back().token_ids.empty());
  EXPECT_EQ(chat().messages[1].text, "one two three four");
  EXPECT_TRUE(controller_.chat(chat().id)->messages()[1].token_ids.empty())
      << "half of the ids would be of no use";
}

TEST_F(ModelChange, TheSameVocabularyContinuesWithTheIdsThatItHas) {
  old_.answers = {"one two three four"};
  old_.steps_allowed = 2;
  ask("count");
  poll(3);
  controller_.apply(act::StopAnswer{chat().id});
  poll(2);
  FakeEngine same(FakeEngine::Options{.name = "Same", .first_request = 2000});
  same.clock = &clock_;
  attach(same);
  same.answers = {"three four"};
  controller_.apply(act::ContinueAnswer{chat().id, chat().messages[1].id});
  finish_everything();
  EXPECT_EQ(std::get<ChatPrompt>(same.requests().at(0).prompt).messages.back().token_ids.size(), 2u);
  controller_.detach_engine();
}

TEST_F(ModelChange, WhatTheMemoryViewsShowIsTheNewEngines) {
  const std::string question = "a question of more than a block of tokens: " + std::string(100, 'q');
  ask(question);
  finish_everything();
  poll(25);
  ASSERT_NE(state().memory.snapshot, nullptr);
  ASSERT_FALSE(chat().memory.blocks.empty());
  attach(new_);
  EXPECT_EQ(state().memory.snapshot, nullptr);
  EXPECT_TRUE(chat().memory.blocks.empty()) << "its blocks were the old engine's";
  ask(question);
  finish_everything();
  poll(25);
  ASSERT_NE(state().memory.snapshot, nullptr);
  EXPECT_FALSE(chat().memory.blocks.empty());
}

TEST_F(ModelChange, TheNumberOfAnswersUnderWayIsShown) {
  EXPECT_EQ(state().picker.num_running, 0);
  old_.answers = {std::string(400, 'x')};
  ask("count");
  poll(2);
  EXPECT_EQ(state().picker.num_running, 1);
  attach(new_);
  EXPECT_EQ(state().picker.num_running, 1);
  controller_.apply(act::StopAnswer{chat().id});
  poll(2);
  EXPECT_EQ(state().picker.num_running, 0);
}

TEST_F(ModelChange, AFailedLoadLeavesTheModelAndEveryChat) {
  old_.answers = {"one two three four five six"};
  ask("count");
  poll(1);
  controller_.models().show_loading("/models/bad.gguf", 0.4);
  ASSERT_TRUE(state().picker.loading);
  EXPECT_EQ(state().model.phase, ui::ModelPhase::kReady);
  controller_.models().show_load_failed("/models/bad.gguf",
                                        Error{ErrorCode::kDamagedFile, "bad.gguf: it ends early"});
  EXPECT_FALSE(state().picker.loading);
  ASSERT_TRUE(state().banner);
  EXPECT_NE(state().banner->text.find("bad.gguf: it ends early"), std::string::npos);
  finish_everything();
  EXPECT_EQ(chat().messages.back().text, "one two three four five six");
  EXPECT_EQ(state().model.name, "Old");
}

// The comparison ends where it began; then it asks the new model.
TEST_F(ModelChange, AComparisonFinishesOnTheOldModelAndRunsAgainOnTheNewOne) {
  ask("question");
  finish_everything();
  controller_.apply(act::OpenComparison{chat().id, chat().messages[0].id});
  ui::ComparisonSetup setup = state().comparison.setup;
  setup.kind = ui::ComparisonKind::kSettings;
  controller_.apply(act::ChangeComparison{setup});
  old_.answers = {"one two three four", "five six seven eight"};
  controller_.apply(act::RunComparison{});
  poll(1);
  ASSERT_TRUE(state().comparison.running);
  attach(new_);
  EXPECT_TRUE(state().comparison.running);
  EXPECT_TRUE(controller_.uses(old_));
  finish_everything();
  ASSERT_EQ(state().comparison.columns.size(), 2u);
  EXPECT_TRUE(state().comparison.columns[0].error.empty()) << state().comparison.columns[0].error;
  EXPECT_EQ(state().comparison.columns[0].phase, ui::ColumnPhase::kFinished);
  poll(1);
  EXPECT_FALSE(controller_.uses(old_));
  const std::size_t asked = new_.requests().size();
  controller_.apply(act::RunComparisonAgain{});
  finish_everything();
  ASSERT_EQ(new_.requests().size(), asked + 2);
  EXPECT_TRUE(std::holds_alternative<ChatPrompt>(new_.requests().back().prompt))
      << "the token ids of the first time were another model's";
}

TEST_F(ModelChange, StopAnswersAndChangeInterruptsWhatCanBeContinued) {
  old_.answers = {"one two three four five six"};
  ask("count");
  poll(2);
  controller_.detach_engine();
  EXPECT_FALSE(controller_.uses(old_));
  EXPECT_TRUE(chat().messages.back().interrupted);
  attach(new_);
  new_.answers = {"and the rest"};
  controller_.apply(act::ContinueAnswer{chat().id, chat().messages.back().id});
  finish_everything();
  EXPECT_NE(chat().messages.back().text.find("and the rest"), std::string::npos);
}

}  // namespace
}  // namespace octavo::app
