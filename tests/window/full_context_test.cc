// Chats that outgrow their context, in the controller: every turn is answered, and what happens is shown.

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "app/window/controller.h"
#include "tests/window/fake_engine.h"
#include "tests/window/plan_at_once.h"

namespace octavo::testing {
namespace {

namespace act = ui::actions;

class FullContext : public ::testing::Test {
 protected:
  FullContext() : controller_(clock_, app::default_settings()) {
    engine_.clock = &clock_;
    controller_.attach_engine(engine_, plan_at_once(controller_, engine_));
  }

  const ui::UiState& state() const { return controller_.state(); }
  const ui::ChatState& chat() const { return *ui::active_chat(state()); }
  void choose(ContextPolicy policy) { controller_.apply(act::ChangeContextPolicy{chat().id, policy}); }
  void send(const std::string& text) { controller_.apply(act::SendMessage{chat().id, text}); }
  void finish() {
    while (controller_.busy()) {
      clock_.advance_us(20'000);
      controller_.poll_engine();
    }
  }
  void ask(const std::string& text) {
    send(text);
    finish();
  }
  const ChatPrompt& prompt(std::size_t request) const {
    return std::get<ChatPrompt>(engine_.requests().at(request).prompt);
  }
  // The first turn that is more than the context holds.
  void fill() {
    for (int turn = 0; chat().context.num_left == 0; ++turn) {
      ASSERT_LT(turn, 100);
      ask("question " + std::to_string(turn) + std::string(40, '.'));
    }
  }

  ManualClock clock_;
  FakeEngine engine_{{.max_model_len = 512}};
  app::Controller controller_;
};

TEST_F(FullContext, SixtyTurnsAreAnsweredAndTheSystemPromptStays) {
  controller_.apply(act::ChangeSystemPrompt{chat().id, "Be kind."});
  for (int turn = 0; turn < 60; ++turn) {
    ask("question " + std::to_string(turn) + std::string(40, '.'));
    ASSERT_EQ(chat().messages.size(), static_cast<std::size_t>(2 * turn + 2));
    ASSERT_EQ(chat().messages.back().figures.stop_reason, "finished") << turn;
    ASSERT_EQ(prompt(static_cast<std::size_t>(turn)).messages.front().content, "Be kind.");
  }
  EXPECT_GT(chat().context.num_left, 60);
  EXPECT_EQ(chat().messages[static_cast<std::size_t>(chat().context.num_left)].id, chat().context.begin);
  EXPECT_LT(chat().context.num_tokens, 512);
}

TEST_F(FullContext, ABranchAboveTheCutHasAllOfItsContext) {
  fill();
  ASSERT_GT(chat().context.num_left, 0);
  controller_.apply(act::EditMessage{chat().id, chat().messages.front().id, "another way"});
  finish();
  EXPECT_EQ(chat().context.num_left, 0);
  EXPECT_EQ(chat().context.begin, MessageId{});
  controller_.apply(act::ShowSibling{chat().id, chat().messages.front().id, -1});
  EXPECT_GT(chat().context.num_left, 0);
}

TEST_F(FullContext, AMessageThatCanNeverFitComesBackIntoTheDraft) {
  ask("hello");
  const std::string text(4'000, 'x');
  controller_.apply(act::ChangeDraft{chat().id, text});
  EXPECT_TRUE(chat().context.refusal.starts_with("Cut about ")) << "it is said before it is sent";
  controller_.apply(act::ChangeDraft{chat().id, ""});
  EXPECT_EQ(chat().context.refusal, "");
  send(text);
  EXPECT_EQ(chat().messages.size(), 2u) << "it never became a message";
  EXPECT_EQ(chat().draft, text);
  EXPECT_EQ(chat().num_drafts_returned, 1u);
  ASSERT_TRUE(state().banner.has_value());
  EXPECT_TRUE(state().banner->text.starts_with("Cut about ")) << state().banner->text;
  controller_.apply(act::ChangeDraft{chat().id, ""});
  ask("short");
  EXPECT_EQ(chat().messages.back().figures.stop_reason, "finished");
}

TEST_F(FullContext, StopRefusesAndAnotherPolicyGoesOn) {
  choose(ContextPolicy::kStop);
  for (int turn = 0; chat().num_drafts_returned == 0; ++turn) {
    ASSERT_LT(turn, 100);
    ask("question " + std::to_string(turn) + std::string(40, '.'));
  }
  EXPECT_TRUE(state().banner->text.starts_with("The context of 512 tokens is full")) << state().banner->text;
  const std::size_t before = chat().messages.size();
  const std::string draft = chat().draft;
  EXPECT_TRUE(draft.starts_with("question "));
  choose(ContextPolicy::kRoll);
  EXPECT_EQ(chat().context.refusal, "");
  ask(draft);
  EXPECT_EQ(chat().messages.size(), before + 2);
}

TEST_F(FullContext, AComparisonAsksWhatTheChatWouldAsk) {
  fill();
  ask("and one more");
  const std::vector<ui::MessageState> shown = chat().messages;
  const ui::MessageState& question = shown[shown.size() - 2];
  const std::vector<ChatMessage> asked_in_chat = prompt(engine_.requests().size() - 1).messages;
  ASSERT_LT(asked_in_chat.size(), shown.size() - 1);
  controller_.apply(act::OpenComparison{chat().id, question.id});
  controller_.apply(act::RunComparison{});
  EXPECT_EQ(state().comparison.problem, "");
  const std::vector<ChatMessage>& asked = prompt(engine_.requests().size() - 1).messages;
  ASSERT_EQ(asked.size(), asked_in_chat.size());
  for (std::size_t i = 0; i < asked.size(); ++i) EXPECT_EQ(asked[i].content, asked_in_chat[i].content);
  EXPECT_EQ(state().comparison.messages.size(), shown.size() - 1) << "all of the question is still shown";
}

TEST_F(FullContext, AComparisonOfWhatCannotBeSentSaysWhy) {
  const std::size_t num_requests = engine_.requests().size();
  controller_.apply(act::TypeComparison{std::string(4'000, 'x')});
  controller_.apply(act::RunComparison{});
  EXPECT_TRUE(state().comparison.problem.starts_with("Cut about ")) << state().comparison.problem;
  EXPECT_EQ(engine_.requests().size(), num_requests);
}

TEST_F(FullContext, AStoppedComparisonDoesNotBeginWhenItsPlanComes) {
  std::vector<app::PlanWanted> wanted;
  FakeEngine engine{{.max_model_len = 512}};
  controller_.attach_engine(engine, [&](app::PlanWanted one) {
    if (one.purpose.kind == app::PlanPurpose::Kind::kComparison) wanted.push_back(std::move(one));
  });
  controller_.apply(act::TypeComparison{"Why?"});
  controller_.apply(act::RunComparison{});
  EXPECT_TRUE(state().comparison.running);
  controller_.apply(act::StopComparison{});
  EXPECT_FALSE(state().comparison.running);
  controller_.apply(act::RunComparison{});
  ASSERT_EQ(wanted.size(), 2u);
  app::TokenCounts counts(engine.tokenizer());
  controller_.fold_plan({wanted[0].purpose, app::plan_context(wanted[0].question, counts, 0)});
  EXPECT_TRUE(engine.requests().empty()) << "the first was stopped";
  controller_.fold_plan({wanted[1].purpose, app::plan_context(wanted[1].question, counts, 0)});
  EXPECT_EQ(engine.requests().size(), 1u);
  controller_.detach_engine();
}

TEST_F(FullContext, AnAnswerThatReachesTheLimitSaysSoAndContinues) {
  SamplingParams sampling = chat().sampling;
  sampling.max_tokens = 4'000;
  controller_.apply(act::ChangeSampling{chat().id, sampling});
  engine_.answers = {std::string(4'000, 'a'), std::string(200, 'b')};
  ask("tell me all");
  EXPECT_EQ(chat().messages.back().figures.stop_reason, "the context is full");
  EXPECT_EQ(chat().messages.back().offer, ui::AnswerOffer::kContinue);
  const std::string before = chat().messages.back().text;
  controller_.apply(act::ContinueAnswer{chat().id, chat().messages.back().id});
  finish();
  ASSERT_EQ(chat().messages.size(), 2u);
  EXPECT_EQ(chat().messages.back().text, before + std::string(200, 'b'));
  EXPECT_EQ(chat().messages.back().figures.stop_reason, "finished");
  EXPECT_EQ(chat().messages.back().offer, ui::AnswerOffer::kNone);
  EXPECT_TRUE(prompt(1).continue_answer);
  EXPECT_EQ(prompt(1).messages.front().content, "tell me all");
}

TEST_F(FullContext, SummariesAreWrittenShownSentAndEdited) {
  controller_.apply(act::ChangeSystemPrompt{chat().id, "Be kind."});
  choose(ContextPolicy::kSummarise);
  for (int turn = 0; !chat().summarising; ++turn) {
    ASSERT_LT(turn, 100);
    finish();
    engine_.answers.clear();
    send("question " + std::to_string(turn) + std::string(40, '.'));
  }
  // It is being written, and the question waits for it.
  EXPECT_EQ(chat().activity, ui::Activity::kGenerating);
  EXPECT_EQ(chat().messages.back().role, Role::kUser);
  EXPECT_GT(chat().context.num_left, 0);
  EXPECT_TRUE(
      prompt(engine_.requests().size() - 1).messages.back().content.starts_with("Summarise our chat"));
  for (int i = 0; i < 3; ++i) controller_.poll_engine();
  EXPECT_FALSE(chat().summary.empty()) << "it is shown as it grows";
  finish();
  EXPECT_EQ(chat().messages.back().role, Role::kAssistant);
  EXPECT_FALSE(chat().summarising);
  const std::string summary = chat().summary;
  ASSERT_FALSE(summary.empty());
  EXPECT_EQ(prompt(engine_.requests().size() - 1).messages.front().content,
            "Be kind.\n\nSummary of the earlier part of this chat:\n" + summary);
  controller_.apply(act::ChangeSummary{chat().id, "They asked a lot."});
  EXPECT_EQ(chat().summary, "They asked a lot.");
  ask("and now?");
  EXPECT_EQ(prompt(engine_.requests().size() - 1).messages.front().content,
            "Be kind.\n\nSummary of the earlier part of this chat:\nThey asked a lot.");
}

TEST_F(FullContext, ASummaryThatFailsIsSaidAndTheChatRolls) {
  choose(ContextPolicy::kSummarise);
  for (int turn = 0; !chat().summarising; ++turn) {
    ASSERT_LT(turn, 100);
    finish();
    send("question " + std::to_string(turn) + std::string(40, '.'));
  }
  const RequestId summary{engine_.requests().size()};
  engine_.cancel(summary);
  finish();
  ASSERT_TRUE(state().banner.has_value());
  EXPECT_TRUE(state().banner->text.starts_with("No summary could be written")) << state().banner->text;
  EXPECT_EQ(chat().messages.back().figures.stop_reason, "finished");
  EXPECT_EQ(chat().summary, "");
}

TEST_F(FullContext, StoppingASummaryGivesTheQuestionBack) {
  choose(ContextPolicy::kSummarise);
  for (int turn = 0; !chat().summarising; ++turn) {
    ASSERT_LT(turn, 100);
    finish();
    send("question " + std::to_string(turn) + std::string(40, '.'));
  }
  controller_.apply(act::StopAnswer{chat().id});
  finish();
  EXPECT_FALSE(chat().summarising);
  EXPECT_TRUE(chat().draft.starts_with("question "));
  EXPECT_EQ(chat().messages.back().role, Role::kAssistant) << "it is no message any more";
}

// A plan takes its time: until it is there the question waits, and can be taken back.
TEST_F(FullContext, AQuestionWaitsForItsPlan) {
  std::vector<app::PlanWanted> wanted;
  FakeEngine engine({.max_model_len = 512, .first_request = 1000});
  controller_.attach_engine(engine, [&](app::PlanWanted one) {
    if (one.purpose.kind == app::PlanPurpose::Kind::kQuestion) wanted.push_back(std::move(one));
  });
  send("first");
  send("second");
  ASSERT_EQ(chat().messages.size(), 1u);
  EXPECT_EQ(chat().messages[0].text, "first");
  EXPECT_EQ(chat().activity, ui::Activity::kWaiting);
  EXPECT_EQ(chat().queued, (std::vector<std::string>{"second"}));
  EXPECT_TRUE(engine.requests().empty());
  controller_.apply(act::StopAnswer{chat().id});
  EXPECT_EQ(chat().draft, "first");
  ASSERT_EQ(chat().messages.size(), 1u);
  EXPECT_EQ(chat().messages[0].text, "second");
  ASSERT_EQ(wanted.size(), 2u);
  app::TokenCounts counts(engine.tokenizer());
  for (const app::PlanWanted& one : wanted)
    controller_.fold_plan({one.purpose, app::plan_context(one.question, counts, 0)});
  ASSERT_EQ(engine.requests().size(), 1u) << "the first was taken back";
  EXPECT_EQ(std::get<ChatPrompt>(engine.requests()[0].prompt).messages.back().content, "second");
  // Another engine plans anew what waits.
  finish();
  send("third");
  FakeEngine other({.max_model_len = 512, .first_request = 2000});
  controller_.attach_engine(other, plan_at_once(controller_, other));
  EXPECT_EQ(other.requests().size(), 1u);
  controller_.detach_engine();
}

}  // namespace
}  // namespace octavo::testing
