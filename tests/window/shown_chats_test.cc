// What is drawn of the chats is what the chats are, whatever happened to them.

#include "app/window/chat/shown_chats.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "app/window/controller.h"
#include "tests/window/fake_engine.h"
#include "tests/window/plan_at_once.h"

namespace octavo::testing {
namespace {

namespace act = ui::actions;

class ShownChats : public ::testing::Test {
 protected:
  ShownChats() : controller_(clock_, app::default_settings()) {
    engine_.clock = &clock_;
    controller_.attach_engine(engine_, plan_at_once(controller_, engine_));
  }

  const ui::UiState& state() const { return controller_.state(); }
  const ui::ChatState& chat() const { return *ui::active_chat(state()); }
  void send(const std::string& text) { controller_.apply(act::SendMessage{chat().id, text}); }
  void poll() {
    clock_.advance_us(20'000);
    controller_.poll_engine();
  }
  void finish_everything() {
    while (controller_.busy()) poll();
  }

  // Drawn from the start, as simply as it can be said.
  void expect_as_it_is(const ui::ChatState& shown) const {
    const app::Chat* chat = controller_.chat(shown.id);
    ASSERT_NE(chat, nullptr);
    EXPECT_EQ(shown.title, chat->display_title());
    const std::vector<MessageId> path = chat->active_path();
    ASSERT_EQ(shown.messages.size(), path.size());
    for (std::size_t i = 0; i < path.size(); ++i) {
      const app::Message& message = *chat->find(path[i]);
      EXPECT_EQ(shown.messages[i].id, message.id);
      EXPECT_EQ(shown.messages[i].text, message.content);
      EXPECT_EQ(shown.messages[i].role, message.role);
      EXPECT_EQ(shown.messages[i].num_siblings, chat->position_among_siblings(message.id).count);
      EXPECT_EQ(shown.messages[i].sibling_index, chat->position_among_siblings(message.id).index);
      const bool is_answer = message.role == Role::kAssistant;
      EXPECT_EQ(shown.messages[i].streaming, is_answer && !message.finish_reason && !message.interrupted);
    }
  }

  ManualClock clock_;
  FakeEngine engine_;
  app::Controller controller_;
};

class RandomActions : public ShownChats {
 protected:
  ChatId some_chat() { return state().chats[random_() % state().chats.size()].id; }
  MessageId some_message(ChatId chat_id) {
    const auto& messages = ui::find_chat(state(), chat_id)->messages;
    return messages.empty() ? MessageId{} : messages[random_() % messages.size()].id;
  }
  void do_something() {
    const ChatId id = some_chat();
    const MessageId message = some_message(id);
    const std::string text = "text " + std::to_string(random_() % 1'000);
    switch (random_() % 14) {
      case 0: return controller_.apply(act::NewChat{});
      case 1: return controller_.apply(act::DeleteChat{id});
      case 2: return controller_.apply(act::UndoDelete{});
      case 3: return controller_.apply(act::RenameChat{id, random_() % 2 == 0 ? text : ""});
      case 4: return controller_.apply(act::Regenerate{id, message});
      case 5: return controller_.apply(act::EditMessage{id, message, text});
      case 6: return controller_.apply(act::ShowSibling{id, message, random_() % 2 == 0 ? 1 : -1});
      case 7: return controller_.apply(act::StopAnswer{id});
      case 8: return controller_.apply(act::ContinueAnswer{id, message});
      case 9: return controller_.apply(act::MoveChat{id, some_chat()});
      case 10:
      case 11: return controller_.apply(act::SendMessage{id, text});
      default: return poll();
    }
  }

  const std::uint32_t seed_ = std::random_device{}();
  std::mt19937 random_{seed_};
};

TEST_F(RandomActions, AreDrawnAsTheChatsAreThen) {
  SCOPED_TRACE("seed " + std::to_string(seed_));
  for (int i = 0; i < 3'000; ++i) {
    do_something();
    for (const ui::ChatState& shown : state().chats) expect_as_it_is(shown);
    ASSERT_FALSE(HasFailure()) << "after " << i << " actions";
  }
}

TEST_F(ShownChats, TheTitleIsOfTheBranchThatIsShown) {
  send("first words");
  finish_everything();
  const MessageId question = chat().messages.front().id;
  controller_.apply(act::EditMessage{chat().id, question, "other words"});
  finish_everything();
  EXPECT_EQ(chat().title, "other words");
  controller_.apply(act::ShowSibling{chat().id, chat().messages.front().id, -1});
  EXPECT_EQ(chat().title, "first words");
}

TEST_F(ShownChats, WhatEndedTheNewestAnswerIsStillSaidAfterAnotherBranchWasShown) {
  send("first");
  finish_everything();
  controller_.apply(act::Regenerate{chat().id, chat().messages.back().id});
  const RequestId id{2};
  controller_.fold(OutputFinished{
      .request_id = id, .finish_reason = FinishReason::kStop, .stop_reason = std::string("END")});
  controller_.fold(RequestFinished{.request_id = id, .prompt_logprobs = {}, .metrics = {}});
  const MessageId answer = chat().messages.back().id;
  controller_.apply(act::ShowSibling{chat().id, answer, -1});
  EXPECT_EQ(chat().messages.back().figures.stop_reason, "finished");
  controller_.apply(act::ShowSibling{chat().id, chat().messages.back().id, 1});
  ASSERT_EQ(chat().messages.back().id, answer);
  EXPECT_EQ(chat().messages.back().figures.stop_reason, "stopped at END");
}

TEST_F(ShownChats, AChatOutOfTheTrashHasTheBlocksThatItLeft) {
  send("a question of more than a block of tokens: " + std::string(100, 'q'));
  finish_everything();
  for (int i = 0; i < 25; ++i) poll();
  const std::size_t num_blocks = chat().memory.blocks.size();
  ASSERT_GT(num_blocks, 0u);
  controller_.apply(act::DeleteChat{chat().id});
  EXPECT_TRUE(chat().memory.blocks.empty()) << "the empty chat in its place";
  controller_.apply(act::UndoDelete{});
  EXPECT_EQ(chat().memory.blocks.size(), num_blocks);
}

}  // namespace
}  // namespace octavo::testing
