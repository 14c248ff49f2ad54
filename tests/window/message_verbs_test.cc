// What can be done with messages and chats beside asking, in the controller.

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "app/window/controller.h"
#include "tests/window/fake_engine.h"
#include "tests/window/plan_at_once.h"

namespace octavo::testing {
namespace {

namespace act = ui::actions;
using app::Message;
using ui::AnswerOffer;

class MessageVerbs : public ::testing::Test {
 protected:
  MessageVerbs() {
    engine_.clock = &clock_;
    controller_.attach_engine(engine_, plan_at_once(controller_, engine_));
  }
  ~MessageVerbs() override { controller_.detach_engine(); }

  const ui::UiState& state() const { return controller_.state(); }
  const ui::ChatState& chat() const { return *ui::active_chat(state()); }
  const ui::MessageState& last() const { return chat().messages.back(); }
  const Message& message(std::size_t index) const {
    return *controller_.chat(chat().id)->find(chat().messages.at(index).id);
  }
  template <class Action>
  void apply(Action action) {
    controller_.apply(std::move(action));
  }
  void finish() {
    while (controller_.busy()) controller_.poll_engine();
  }
  void ask(const std::string& text) {
    apply(act::SendMessage{chat().id, text});
    finish();
  }
  void ask_and_stop(const std::string& text, int num_tokens) {
    apply(act::SendMessage{chat().id, text});
    for (int i = 0; i < num_tokens; ++i) controller_.poll_engine();
    apply(act::StopAnswer{chat().id});
    finish();
  }
  const ChatPrompt& prompt() const { return std::get<ChatPrompt>(engine_.requests().back().prompt); }
  std::vector<std::string> texts() const {
    std::vector<std::string> texts;
    for (const ui::MessageState& shown : chat().messages) texts.push_back(shown.text);
    return texts;
  }
  using Texts = std::vector<std::string>;

  ManualClock clock_;
  std::int64_t now_ms_ = 1'800'000'000'000;
  FakeEngine engine_{{.max_model_len = 512}};
  app::Controller controller_{clock_, app::default_settings(), [this] { return now_ms_; }};
};

// ---- going on

TEST_F(MessageVerbs, AStoppedAnswerGoesOnFromItsTokenIds) {
  engine_.answers = {"one two three four", "and on"};
  ask_and_stop("count", 3);
  const Texts before = texts();
  EXPECT_EQ(last().figures.stop_reason, "stopped");
  EXPECT_EQ(last().offer, AnswerOffer::kContinue);
  const std::vector<TokenId> ids = message(1).token_ids;
  ASSERT_EQ(ids.size() * 4, last().text.size());
  apply(act::ContinueAnswer{chat().id, last().id});
  finish();
  EXPECT_EQ(texts(), (Texts{"count", before[1] + "and on"}));
  EXPECT_TRUE(prompt().continue_answer);
  EXPECT_EQ(prompt().messages.back().token_ids, ids);
  EXPECT_EQ(message(1).token_ids.size(), ids.size() + 2) << "the ids of all of it are kept";
  EXPECT_EQ(last().offer, AnswerOffer::kNone);
  EXPECT_EQ(chat().messages.back().num_siblings, 1);
}

TEST_F(MessageVerbs, AnAnswerThatItsLimitCutGoesOnFromItsTokenIds) {
  SamplingParams sampling = chat().sampling;
  sampling.max_tokens = 3;
  apply(act::ChangeSampling{chat().id, sampling});
  engine_.answers = {"one two three four", "thr"};
  ask("count");
  EXPECT_EQ(last().figures.stop_reason, "reached the length limit");
  apply(act::ContinueAnswer{chat().id, last().id});
  finish();
  EXPECT_EQ(prompt().messages.back().token_ids.size(), 3u);
  EXPECT_EQ(last().text, "one two threthr");
}

TEST_F(MessageVerbs, WhatFailedHalfwayGoesOnAndWhatHasNotBegunIsGenerated) {
  engine_.answers = {"one two three four"};
  apply(act::SendMessage{chat().id, "count"});
  for (int i = 0; i < 2; ++i) controller_.poll_engine();
  engine_.lose_device();
  finish();
  EXPECT_EQ(last().figures.stop_reason, "failed");
  EXPECT_EQ(last().offer, AnswerOffer::kContinue);
  apply(act::NewChat{});
  engine_.steps_allowed = 0;
  FakeEngine other{{.first_request = 100}};
  controller_.attach_engine(other, plan_at_once(controller_, other));
  other.steps_allowed = 0;
  apply(act::SendMessage{chat().id, "hello"});
  controller_.poll_engine();
  apply(act::StopAnswer{chat().id});
  finish();
  ASSERT_EQ(texts(), (Texts{"hello", ""}));
  EXPECT_EQ(last().offer, AnswerOffer::kGenerate);
  other.steps_allowed = -1;
  apply(act::ContinueAnswer{chat().id, last().id});
  finish();
  EXPECT_EQ(texts(), (Texts{"hello", "You said: hello"}));
  EXPECT_EQ(last().num_siblings, 1);
  controller_.detach_engine();
}

TEST_F(MessageVerbs, AnImportedQuestionWithoutAnAnswerGetsOne) {
  app::Chat imported;
  imported.has_sampling = false;
  imported.append(app::kRootMessage, Role::kUser, "Who was Turing?");
  controller_.take_imported({imported});
  EXPECT_EQ(last().offer, AnswerOffer::kGenerate);
  EXPECT_EQ(chat().sampling.max_tokens, app::default_settings().sampling.max_tokens) << "as new chats have";
  apply(act::ContinueAnswer{chat().id, last().id});
  finish();
  EXPECT_EQ(texts(), (Texts{"Who was Turing?", "You said: Who was Turing?"}));
  EXPECT_EQ(chat().messages[0].offer, AnswerOffer::kNone);
}

TEST_F(MessageVerbs, AStopStringIsStillKnownWithTheNextAnswer) {
  ask("first");
  Message ended = message(1);
  ended.stop_text = "END";
  app::Chat chat_with_stop;
  chat_with_stop.append(app::kRootMessage, Role::kUser, "q");
  ended.parent = MessageId{1};
  chat_with_stop.add(ended);
  controller_.take_imported({chat_with_stop});
  EXPECT_EQ(last().figures.stop_reason, "stopped at END");
  ask("next");
  EXPECT_EQ(chat().messages[1].figures.stop_reason, "stopped at END");
}

// ---- answers in a person's own words

TEST_F(MessageVerbs, AnEditedAnswerIsABranchWithItsModelsName) {
  ask("question");
  ask("another");
  apply(act::WriteAnswer{chat().id, chat().messages[1].id, "my own words", act::AnswerEnd::kFinished});
  EXPECT_EQ(texts(), (Texts{"question", "my own words"}));
  EXPECT_EQ(last().num_siblings, 2);
  EXPECT_TRUE(last().edited);
  EXPECT_EQ(last().model, "SmolLM2 135M Instruct");
  EXPECT_EQ(last().offer, AnswerOffer::kNone);
  EXPECT_TRUE(message(1).token_ids.empty());
  EXPECT_EQ(engine_.requests().size(), 2u) << "nothing was asked";
  ask("go on");
  EXPECT_EQ(prompt().messages[1].content, "my own words");
  apply(act::ShowSibling{chat().id, chat().messages[1].id, -1});
  EXPECT_EQ(chat().messages.size(), 4u) << "the old branch is whole";
  EXPECT_FALSE(chat().messages[1].edited);
}

TEST_F(MessageVerbs, AnAnswerGoesOnFromWhatAPersonWrote) {
  ask("question");
  engine_.answers = {"the rest."};
  apply(act::WriteAnswer{chat().id, last().id, "It begins so: ", act::AnswerEnd::kContinued});
  finish();
  EXPECT_EQ(texts(), (Texts{"question", "It begins so: the rest."}));
  EXPECT_TRUE(prompt().continue_answer);
  EXPECT_EQ(prompt().messages.back().content, "It begins so: ");
  EXPECT_TRUE(last().edited);
  EXPECT_EQ(last().figures.stop_reason, "finished");
  EXPECT_EQ(last().num_siblings, 2);
  engine_.answers = {"so"};
  apply(act::WriteAnswer{chat().id, chat().messages[0].id, "I think ", act::AnswerEnd::kContinued});
  finish();
  EXPECT_EQ(last().text, "I think so") << "named by the question";
  EXPECT_EQ(last().num_siblings, 3);
}

TEST_F(MessageVerbs, AnAnswerIsBegunWhileItsQuestionStillWaitsForItsPlan) {
  std::vector<app::PlanWanted> wanted;
  FakeEngine engine({.max_model_len = 512, .first_request = 1000});
  controller_.attach_engine(engine, [&](app::PlanWanted one) {
    if (one.purpose.kind == app::PlanPurpose::Kind::kQuestion) wanted.push_back(std::move(one));
  });
  apply(act::SendMessage{chat().id, "question"});
  engine.answers = {"the rest"};
  apply(act::WriteAnswer{chat().id, last().id, "Mine: ", act::AnswerEnd::kContinued});
  ASSERT_EQ(wanted.size(), 2u);
  app::TokenCounts counts(engine.tokenizer());
  for (const app::PlanWanted& one : wanted)
    controller_.fold_plan({one.purpose, app::plan_context(one.question, counts, 0)});
  finish();
  EXPECT_EQ(texts(), (Texts{"question", "Mine: the rest"}));
  EXPECT_EQ(engine.requests().size(), 1u);
  controller_.detach_engine();
}

// ---- deleting

TEST_F(MessageVerbs, ADeletedMessageComesBackAndWhatFollowedMovesUpMeanwhile) {
  for (const char* text : {"one", "two", "three"}) ask(text);
  const Texts before = texts();
  apply(act::DeleteMessage{chat().id, chat().messages[2].id, act::DeleteExtent::kMessage});
  EXPECT_EQ(state().deleted, "1 message");
  Texts without = before;
  without.erase(without.begin() + 2);
  EXPECT_EQ(texts(), without);
  apply(act::UndoDelete{});
  EXPECT_EQ(texts(), before);
  EXPECT_FALSE(state().deleted.has_value());
  apply(act::DeleteMessage{chat().id, chat().messages[2].id, act::DeleteExtent::kBranch});
  EXPECT_EQ(state().deleted, "4 messages");
  EXPECT_EQ(texts(), (Texts{before[0], before[1]}));
  ask("four");
  EXPECT_EQ(prompt().messages.size(), 3u) << "what is deleted is not sent";
  apply(act::UndoDelete{});
  EXPECT_EQ(texts(), before) << "the branch is shown again";
  EXPECT_EQ(chat().messages[2].num_siblings, 2);
  apply(act::DeleteMessage{chat().id, chat().messages[0].id, act::DeleteExtent::kBranch});
  EXPECT_TRUE(chat().messages.empty());
  apply(act::DismissUndo{});
  apply(act::UndoDelete{});
  EXPECT_TRUE(chat().messages.empty()) << "nothing is left to undo";
  ask("again");
  EXPECT_EQ(texts(), (Texts{"again", "You said: again"}));
}

TEST_F(MessageVerbs, DeletingAnAnswerUnderWayStopsIt) {
  engine_.answers = {std::string(400, 'x')};
  apply(act::SendMessage{chat().id, "long"});
  for (int i = 0; i < 3; ++i) controller_.poll_engine();
  apply(act::DeleteMessage{chat().id, last().id, act::DeleteExtent::kMessage});
  EXPECT_EQ(texts(), (Texts{"long"}));
  apply(act::UndoDelete{});
  EXPECT_EQ(last().text, std::string(12, 'x'));
  EXPECT_FALSE(last().streaming);
  finish();
  EXPECT_EQ(last().text, std::string(12, 'x'));
  EXPECT_EQ(last().figures.stop_reason, "stopped");
  apply(act::DeleteMessage{chat().id, last().id, act::DeleteExtent::kMessage});
  finish();
  EXPECT_EQ(last().offer, AnswerOffer::kGenerate);
}

TEST_F(MessageVerbs, DeletingAQuestionThatWaitsForItsPlanAsksNothing) {
  std::vector<app::PlanWanted> wanted;
  FakeEngine engine({.max_model_len = 512, .first_request = 1000});
  controller_.attach_engine(engine, [&](app::PlanWanted one) {
    if (one.purpose.kind == app::PlanPurpose::Kind::kQuestion) wanted.push_back(std::move(one));
  });
  apply(act::SendMessage{chat().id, "question"});
  apply(act::DeleteMessage{chat().id, last().id, act::DeleteExtent::kMessage});
  ASSERT_EQ(wanted.size(), 1u);
  app::TokenCounts counts(engine.tokenizer());
  controller_.fold_plan({wanted[0].purpose, app::plan_context(wanted[0].question, counts, 0)});
  EXPECT_TRUE(engine.requests().empty());
  EXPECT_EQ(chat().activity, ui::Activity::kIdle);
  controller_.detach_engine();
}

TEST_F(MessageVerbs, EditingAQuestionThatWaitsTakesItsPlace) {
  std::vector<app::PlanWanted> wanted;
  FakeEngine engine({.max_model_len = 512, .first_request = 1000});
  controller_.attach_engine(engine, [&](app::PlanWanted one) {
    if (one.purpose.kind == app::PlanPurpose::Kind::kQuestion) wanted.push_back(std::move(one));
  });
  apply(act::SendMessage{chat().id, "questoin"});
  apply(act::EditMessage{chat().id, last().id, "question"});
  EXPECT_EQ(texts(), (Texts{"question"}));
  EXPECT_EQ(last().num_siblings, 1);
  EXPECT_TRUE(chat().queued.empty());
  controller_.detach_engine();
}

// ---- times, copies, models

TEST_F(MessageVerbs, MessagesAndChatsSayWhenTheyWereWritten) {
  ask("one");
  EXPECT_EQ(chat().messages[0].created_ms, now_ms_);
  now_ms_ += 5'000;
  ask("two");
  EXPECT_EQ(chat().messages[0].created_ms, now_ms_ - 5'000);
  EXPECT_EQ(chat().messages[2].created_ms, now_ms_);
  EXPECT_EQ(chat().messages[3].created_ms, now_ms_);
}

TEST_F(MessageVerbs, DaysTurnAtMidnight) {
  ask("one");
  ASSERT_GE(state().library.days.size(), 3u);
  const std::vector<DaySpan> before = state().library.days;
  EXPECT_EQ(before.front().begin_ms, day_begin_ms(now_ms_));
  EXPECT_FALSE(controller_.turn_day());
  now_ms_ = state().library.tomorrow_ms - 1;
  EXPECT_FALSE(controller_.turn_day());
  now_ms_ += 1;
  EXPECT_TRUE(controller_.turn_day());
  EXPECT_FALSE(controller_.turn_day());
  EXPECT_EQ(state().library.days[0].begin_ms, now_ms_);
  EXPECT_EQ(state().library.days[1].begin_ms, before[0].begin_ms);
}

TEST_F(MessageVerbs, TheNextChatIsTheOneBelowInTheSidebar) {
  std::vector<ChatId> ids;
  for (const char* text : {"a", "b", "c", "d"}) {
    apply(act::NewChat{});
    ask(text);
    ids.push_back(chat().id);
  }
  apply(act::PinChat{ids[1], true});  // pinned b, then d, c, a
  apply(act::SelectChat{ids[2]});
  apply(act::SelectNeighbour{+1});
  EXPECT_EQ(chat().id, ids[0]);
  apply(act::SelectNeighbour{+1});
  EXPECT_EQ(chat().id, ids[1]);
  apply(act::SelectNeighbour{+1});
  EXPECT_EQ(chat().id, ids[3]);
}

TEST_F(MessageVerbs, ACopyHasAllBranchesAndIsAChatOfItsOwn) {
  ask("question");
  apply(act::Regenerate{chat().id, last().id});
  finish();
  const ChatId original = chat().id;
  apply(act::ChangeSystemPrompt{original, "Be brief."});
  apply(act::DuplicateChat{original});
  EXPECT_NE(chat().id, original);
  EXPECT_EQ(chat().title, "question (copy)");
  EXPECT_EQ(chat().system_prompt, "Be brief.");
  EXPECT_GT(chat().context.num_tokens, 0) << "it is counted at once";
  EXPECT_EQ(last().num_siblings, 2);
  EXPECT_EQ(last().text, "You said: question");
  ask("only here");
  EXPECT_EQ(ui::find_chat(state(), original)->messages.size(), 2u);
}

TEST_F(MessageVerbs, ACopyOfAChatThatAnswersHasWhatItHasByThen) {
  engine_.answers = {std::string(100, 'x')};
  apply(act::SendMessage{chat().id, "long"});
  for (int i = 0; i < 3; ++i) controller_.poll_engine();
  apply(act::DuplicateChat{chat().id});
  EXPECT_EQ(last().text, std::string(12, 'x'));
  EXPECT_EQ(last().figures.stop_reason, "interrupted");
  EXPECT_EQ(last().offer, AnswerOffer::kContinue);
  finish();
  EXPECT_EQ(last().text, std::string(12, 'x'));
}

TEST_F(MessageVerbs, AChatRemembersItsModelAndLoadsItWhenAsked) {
  ask("question");
  EXPECT_FALSE(ui::has_other_model(state(), chat()));
  FakeEngine other({.name = "Qwen", .path = "/models/Qwen3-0.6B-Q8_0.gguf", .first_request = 1000});
  controller_.attach_engine(other, plan_at_once(controller_, other));
  EXPECT_TRUE(ui::has_other_model(state(), chat()));
  EXPECT_EQ(chat().model_name, "SmolLM2 135M Instruct");
  EXPECT_FALSE(controller_.take_effects().models.load.has_value()) << "nothing is loaded unasked";
  apply(act::LoadModelFile{chat().model_path});
  const auto effects = controller_.take_effects();
  ASSERT_TRUE(effects.models.load.has_value());
  EXPECT_EQ(effects.models.load->load.options.model, "/models/SmolLM2-135M-Instruct.Q4_1.gguf");
  ask("next");
  EXPECT_FALSE(ui::has_other_model(state(), chat())) << "the other one has answered now";
  EXPECT_EQ(chat().messages[1].model, "SmolLM2 135M Instruct");
  EXPECT_EQ(chat().messages[3].model, "Qwen3 0.6B");
  controller_.detach_engine();
}

// ---- what new chats begin with

TEST_F(MessageVerbs, NewChatsBeginAsSettled) {
  ask("question");
  ui::SettingsState settings = state().settings;
  settings.system_prompt = "Be brief.";
  apply(act::ChangeSettings{settings});
  apply(act::NewChat{});
  EXPECT_EQ(chat().system_prompt, "Be brief.");
  SamplingParams sampling;
  sampling.temperature = 0.25;
  apply(act::SavePreset{{PresetId{}, "Poet", "Rhyme.", sampling, {{"enable_thinking", false}}}});
  settings.preset = state().library.presets.front().id;
  apply(act::ChangeSettings{settings});
  apply(act::NewChat{});
  EXPECT_EQ(chat().system_prompt, "Rhyme.") << "the empty chat is begun anew";
  EXPECT_EQ(chat().sampling.temperature, 0.25);
  EXPECT_EQ(chat().template_values, (TemplateValues{{"enable_thinking", false}}));
  EXPECT_EQ(state().chats.size(), 2u);
  apply(act::ErasePreset{settings.preset});
  apply(act::NewChat{});
  EXPECT_EQ(chat().system_prompt, "Be brief.");
  EXPECT_TRUE(chat().template_values.empty());
}

}  // namespace
}  // namespace octavo::testing
