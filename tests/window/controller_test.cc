// The controller without a window: events in, state out.

#include "app/window/controller.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/window/fake_engine.h"
#include "tests/window/plan_at_once.h"

namespace octavo::app {
namespace {

using testing::FakeEngine;
using testing::FakeTokenizer;
namespace act = ui::actions;

class ControllerTest : public ::testing::Test {
 protected:
  ControllerTest() : controller_(clock_, default_settings()) {
    engine_.clock = &clock_;
    controller_.attach_engine(engine_,
                              [this, plan = testing::plan_at_once(controller_, engine_)](PlanWanted wanted) {
                                if (wanted.purpose.kind == app::PlanPurpose::Kind::kShown) ++num_counts_;
                                plan(std::move(wanted));
                              });
  }

  const ui::ChatState& chat() const { return *ui::active_chat(controller_.state()); }
  void send(const std::string& text) { controller_.apply(act::SendMessage{chat().id, text}); }
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
  FakeEngine engine_;
  Controller controller_;
  int num_counts_ = 0;
};

TEST_F(ControllerTest, OneChatIsOpenFromTheStart) {
  ASSERT_EQ(controller_.state().chats.size(), 1u);
  EXPECT_EQ(controller_.state().model.phase, ui::ModelPhase::kReady);
  EXPECT_EQ(chat().title, "New chat");
}

TEST_F(ControllerTest, AnswerGrowsPieceByPieceWithLiveFigures) {
  engine_.answers = {"one two three four"};
  send("count");
  poll(3);
  EXPECT_EQ(chat().activity, ui::Activity::kGenerating);
  EXPECT_EQ(chat().messages.back().text, "one two thre");
  EXPECT_TRUE(chat().messages.back().streaming);
  EXPECT_NEAR(chat().messages.back().figures.tokens_per_second.value(), 50.0, 0.1);
  EXPECT_NEAR(chat().messages.back().figures.first_token_ms.value(), 20.0, 0.1);
  finish_everything();
  EXPECT_EQ(chat().activity, ui::Activity::kIdle);
  EXPECT_FALSE(chat().messages.back().streaming);
  EXPECT_EQ(chat().messages.back().text, "one two three four");
}

// Whatever the window's clock says: the engine's figure, from the moment it is known.
TEST_F(ControllerTest, TimeToTheFirstTokenIsOneFigureFromItsFirstTokenOn) {
  send("q");
  const RequestId id{1};
  clock_.advance_us(500'000);
  controller_.fold(TokensGenerated{.request_id = id,
                                   .token_ids = {20},
                                   .logprobs = {},
                                   .top_logprobs = {},
                                   .text = "abc",
                                   .ttft_us = 12'345});
  EXPECT_DOUBLE_EQ(chat().messages.back().figures.first_token_ms.value(), 12.345);
  clock_.advance_us(500'000);
  controller_.fold(RequestFinished{.request_id = id, .prompt_logprobs = {}, .metrics = {.ttft_us = 12'345}});
  EXPECT_FALSE(chat().messages.back().streaming);
  EXPECT_DOUBLE_EQ(chat().messages.back().figures.first_token_ms.value(), 12.345);
}

TEST_F(ControllerTest, NextTurnReusesTheTokensOfAnAnswerWithoutItsEnd) {
  engine_.answers = {"abcdefgh"};
  send("q");
  finish_everything();
  send("again");
  const auto& messages = std::get<ChatPrompt>(engine_.requests().back().prompt).messages;
  ASSERT_EQ(messages.size(), 3u);
  EXPECT_EQ(messages[1].content, "abcdefgh");
  EXPECT_EQ(messages[1].token_ids.size(), 2u);
}

TEST_F(ControllerTest, TokensThatAreNotExactlyTheTextAreForgotten) {
  send("q");
  const RequestId id{1};
  controller_.fold(TokensGenerated{
      .request_id = id, .token_ids = {20, 21}, .logprobs = {}, .top_logprobs = {}, .text = "abc"});
  controller_.fold(OutputFinished{
      .request_id = id, .finish_reason = FinishReason::kStop, .stop_reason = std::string("END")});
  controller_.fold(RequestFinished{.request_id = id, .prompt_logprobs = {}, .metrics = {}});
  const Chat& kept = *controller_.chat(chat().id);
  EXPECT_TRUE(kept.messages().back().token_ids.empty());
  EXPECT_EQ(chat().messages.back().figures.stop_reason, "stopped at END");
}

TEST_F(ControllerTest, EndTokenIsNotKept) {
  send("q");
  const RequestId id{1};
  controller_.fold(TokensGenerated{.request_id = id,
                                   .token_ids = {20, FakeTokenizer::kEnd},
                                   .logprobs = {},
                                   .top_logprobs = {},
                                   .text = "abc"});
  controller_.fold(OutputFinished{.request_id = id, .finish_reason = FinishReason::kStop});
  controller_.fold(RequestFinished{.request_id = id, .prompt_logprobs = {}, .metrics = {}});
  EXPECT_EQ(controller_.chat(chat().id)->messages().back().token_ids, std::vector<TokenId>{20});
}

TEST_F(ControllerTest, GenerationGoesOnWhileAnotherChatIsShown) {
  engine_.answers = {std::string(40, 'a'), std::string(40, 'b')};
  send("first");
  const ChatId first = chat().id;
  controller_.apply(act::NewChat{});
  send("second");
  ASSERT_NE(chat().id, first);
  finish_everything();
  EXPECT_EQ(ui::find_chat(controller_.state(), first)->messages.back().text, std::string(40, 'a'));
  EXPECT_EQ(chat().messages.back().text, std::string(40, 'b'));
}

TEST_F(ControllerTest, WaitingChatsCountWhoIsAhead) {
  FakeEngine engine({.max_running = 1});
  Controller controller(clock_, default_settings());
  controller.attach_engine(engine, testing::plan_at_once(controller, engine));
  std::vector<ChatId> ids;
  for (const char* text : {"a", "b", "c"}) {
    engine.answers.push_back(std::string(400, 'x'));
    controller.apply(act::NewChat{});
    ids.push_back(controller.state().active_chat);
    controller.apply(act::SendMessage{ids.back(), text});
  }
  controller.poll_engine();
  const auto& state = controller.state();
  EXPECT_EQ(ui::find_chat(state, ids[0])->activity, ui::Activity::kGenerating);
  EXPECT_EQ(ui::find_chat(state, ids[1])->activity, ui::Activity::kWaiting);
  EXPECT_EQ(ui::find_chat(state, ids[1])->num_ahead, 0);
  EXPECT_EQ(ui::find_chat(state, ids[2])->num_ahead, 1);
}

TEST_F(ControllerTest, SwappedOutAnswerSaysSoUntilItGoesOn) {
  send("q");
  const RequestId id{1};
  const TokensGenerated more{
      .request_id = id, .token_ids = {20}, .logprobs = {}, .top_logprobs = {}, .text = "abc"};
  controller_.fold(RequestAdmitted{.request_id = id});
  controller_.fold(more);
  EXPECT_EQ(chat().activity, ui::Activity::kGenerating);
  controller_.fold(RequestPreempted{.request_id = id, .num_tokens_dropped = 0});
  EXPECT_EQ(chat().activity, ui::Activity::kSwapped);
  EXPECT_TRUE(ui::is_busy(chat())) << "it can be stopped";
  controller_.fold(more);
  EXPECT_EQ(chat().activity, ui::Activity::kGenerating);
  controller_.fold(RequestPreempted{.request_id = id, .num_tokens_dropped = 30});
  EXPECT_EQ(chat().activity, ui::Activity::kWaiting) << "its blocks were dropped, not swapped";
}

TEST_F(ControllerTest, NothingStaysLitWhenAnotherWorkspaceIsShown) {
  send("q");
  poll(3);
  controller_.apply(act::ShowWorkspace{ui::Workspace::kMemory});
  controller_.apply(act::HoverBlock{0});
  EXPECT_FALSE(controller_.state().memory_workspace.hover.blocks.empty());
  controller_.apply(act::ShowWorkspace{ui::Workspace::kChat});
  EXPECT_TRUE(controller_.state().memory_workspace.hover.blocks.empty());
  EXPECT_FALSE(controller_.state().memory_workspace.hover.block);
}

TEST_F(ControllerTest, StoppedAnswerKeepsWhatWasStreamed) {
  engine_.answers = {std::string(4000, 'x')};
  send("q");
  poll(5);
  controller_.apply(act::StopAnswer{chat().id});
  finish_everything();
  EXPECT_EQ(chat().messages.back().text, std::string(20, 'x'));
  EXPECT_EQ(chat().messages.back().figures.stop_reason, "stopped");
  EXPECT_EQ(chat().activity, ui::Activity::kIdle);
}

TEST_F(ControllerTest, RegenerateWhileGeneratingStopsTheOldAndKeepsBoth) {
  engine_.answers = {std::string(4000, 'x'), "short"};
  send("q");
  poll(5);
  controller_.apply(act::Regenerate{chat().id, chat().messages.back().id});
  finish_everything();
  EXPECT_EQ(chat().messages.back().text, "short");
  EXPECT_EQ(chat().messages.back().num_siblings, 2);
  EXPECT_EQ(chat().messages.back().sibling_index, 1);
  controller_.apply(act::ShowSibling{chat().id, chat().messages.back().id, -1});
  EXPECT_EQ(chat().messages.back().text.substr(0, 8), "xxxxxxxx");
  EXPECT_EQ(chat().messages.back().figures.stop_reason, "stopped");
}

TEST_F(ControllerTest, QueueIsSentOneAfterAnother) {
  engine_.answers = {"first answer", "second answer", "third answer"};
  send("1");
  send("2");
  send("3");
  EXPECT_EQ(chat().queued, (std::vector<std::string>{"2", "3"}));
  controller_.apply(act::RemoveQueued{chat().id, 0});
  finish_everything();
  ASSERT_EQ(chat().messages.size(), 4u);
  EXPECT_EQ(chat().messages[2].text, "3");
}

TEST_F(ControllerTest, FailureIsShownInItsMessageAndClearedByTheNextAnswer) {
  send("q");
  controller_.fold(RequestFailed{
      .request_id = RequestId{1}, .error = {ErrorCode::kInvalidLogits, "not a number"}, .metrics = {}});
  EXPECT_EQ(chat().activity, ui::Activity::kFailed);
  EXPECT_EQ(chat().messages.back().error, "not a number");
  send("again");
  EXPECT_NE(chat().activity, ui::Activity::kFailed);
}

TEST_F(ControllerTest, DeletedChatComesBackWithTheEndOfItsAnswer) {
  engine_.answers = {std::string(4000, 'x')};
  send("q");
  poll(3);
  const ChatId id = chat().id;
  controller_.apply(act::DeleteChat{id});
  EXPECT_EQ(ui::find_chat(controller_.state(), id), nullptr);
  EXPECT_EQ(controller_.state().deleted, "“q”");
  finish_everything();
  controller_.apply(act::UndoDelete{});
  ASSERT_NE(ui::find_chat(controller_.state(), id), nullptr);
  EXPECT_EQ(chat().messages.back().text, std::string(12, 'x'));
  EXPECT_EQ(chat().activity, ui::Activity::kIdle);
}

TEST_F(ControllerTest, LastDeletedChatLeavesAnEmptyOne) {
  send("q");
  finish_everything();
  controller_.apply(act::DeleteChat{chat().id});
  ASSERT_EQ(controller_.state().chats.size(), 1u);
  EXPECT_TRUE(chat().messages.empty());
}

TEST_F(ControllerTest, ContextMeterCountsTheDraftAndThenTheAnswer) {
  controller_.apply(act::ChangeDraft{chat().id, std::string(64, 'd')});
  // Role marker, sixteen tokens of four bytes, generation marker.
  EXPECT_EQ(chat().context.num_tokens, 18);
  EXPECT_EQ(chat().context.num_blocks, 2);
  engine_.answers = {std::string(40, 'a')};
  send(std::string(64, 'd'));
  poll(3);
  EXPECT_EQ(chat().context.num_tokens, 18 + 3);
}

TEST_F(ControllerTest, LateAndUnknownEventsChangeNothing) {
  send("q");
  finish_everything();
  const std::string text = chat().messages.back().text;
  for (const std::uint64_t id : {1u, 99u}) {
    controller_.fold(TokensGenerated{
        .request_id = RequestId{id}, .token_ids = {5}, .logprobs = {}, .top_logprobs = {}, .text = "late"});
    controller_.fold(RequestFinished{.request_id = RequestId{id}, .prompt_logprobs = {}, .metrics = {}});
  }
  EXPECT_EQ(chat().messages.back().text, text);
}

TEST_F(ControllerTest, ActionsOnChatsThatAreGoneDoNothing) {
  const ChatId gone{77};
  for (const ui::Action& action : std::vector<ui::Action>{
           act::SendMessage{gone, "x"}, act::StopAnswer{gone}, act::Regenerate{gone, 1},
           act::EditMessage{gone, 1, "x"}, act::ShowSibling{gone, 1, 1}, act::DeleteChat{gone},
           act::RenameChat{gone, "x"}, act::ChangeDraft{gone, "x"}, act::RemoveQueued{gone, 3},
           act::ChangeSystemPrompt{gone, "x"}, act::ChangeSampling{gone, {}}, act::SelectChat{gone},
           act::UndoDelete{}, act::DismissUndo{}}) {
    controller_.apply(action);
  }
  EXPECT_EQ(controller_.state().chats.size(), 1u);
  EXPECT_NE(ui::active_chat(controller_.state()), nullptr);
}

TEST_F(ControllerTest, ChosenSamplingIsWhereNewChatsBegin) {
  SamplingParams sampling = chat().sampling;
  sampling.temperature = 0.2;
  sampling.seed = 11;
  controller_.apply(act::ChangeSampling{chat().id, sampling});
  send("q");
  controller_.apply(act::NewChat{});
  EXPECT_DOUBLE_EQ(chat().sampling.temperature, 0.2);
  EXPECT_FALSE(chat().sampling.seed.has_value());
  EXPECT_TRUE(controller_.take_effects().settings_changed);
}

TEST_F(ControllerTest, ReportsAreAskedForUntilTheyAreUpToDateAndNoLonger) {
  send("q");
  finish_everything();
  poll(3);
  EXPECT_FALSE(controller_.wants_poll());
  ASSERT_NE(controller_.state().memory.snapshot, nullptr);
  EXPECT_EQ(controller_.state().memory.snapshot->step,
            controller_.state().memory.timeline->steps.back().record.step);
}

TEST_F(ControllerTest, ThePoolIsCopiedOnlyForAViewThatShowsIt) {
  send(std::string(400, 'q'));  // some full blocks, which stay
  finish_everything();
  poll(3);
  ASSERT_NE(controller_.state().memory.snapshot, nullptr);
  EXPECT_EQ(controller_.state().memory.snapshot->scope(), SnapshotScope::kSequences);
  EXPECT_FALSE(chat().memory.blocks.empty()) << "the chat's own strip needs none";
  controller_.apply(act::ShowWorkspace{ui::Workspace::kMemory});
  EXPECT_TRUE(controller_.wants_poll());
  EXPECT_FALSE(controller_.state().memory_workspace.snapshot->blocks.empty()) << "replayed at first";
  poll(1);
  EXPECT_EQ(controller_.state().memory.snapshot->scope(), SnapshotScope::kPool);
  EXPECT_EQ(controller_.state().memory_workspace.snapshot, controller_.state().memory.snapshot);
}

}  // namespace
}  // namespace octavo::app
