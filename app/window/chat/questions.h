// What a person asks in a chat: new questions, the same again, edited ones, and those that wait until the
// answer under way is done.
//
// UI thread. Chats, answers, drafts and state must outlive the questions.
#pragma once

#include <string>

#include "app/window/chat/answers.h"
#include "app/window/chat/chats.h"
#include "app/window/chat/drafts.h"
#include "ui/chat_actions.h"

namespace octavo::app {

class Questions {
 public:
  Questions(Chats& chats, Answers& answers, Drafts& drafts, const ui::UiState& state)
      : chats_(chats), answers_(answers), drafts_(drafts), state_(state) {}

  void apply(const ui::actions::SendMessage& a);
  void apply(const ui::actions::RemoveQueued& a);
  void apply(const ui::actions::StopAnswer& a);
  void apply(const ui::actions::Regenerate& a);
  void apply(const ui::actions::EditMessage& a);
  void apply(const ui::actions::ContinueAnswer& a);

  // The next question of the queue, when nothing keeps it from being asked.
  void send_queued(ChatId chat_id);

 private:
  void ask(ChatId chat_id, MessageId parent, const std::string& text);
  void answer(ChatId chat_id, MessageId question);

  Chats& chats_;
  Answers& answers_;
  Drafts& drafts_;
  const ui::UiState& state_;
};

}  // namespace octavo::app
