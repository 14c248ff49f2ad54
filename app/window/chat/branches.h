// Which branch of a chat is shown, and the tree of all of them.
//
// Writes library.focus and desktop.tree of the state. UI thread. Chats, counter and state must outlive it.
#pragma once

#include <optional>

#include "app/window/chat/branch_tree.h"
#include "app/window/chat/chats.h"
#include "app/window/chat/context_counter.h"
#include "ui/chat_actions.h"
#include "ui/state.h"

namespace octavo::app {

class Branches {
 public:
  Branches(Chats& chats, ContextCounter& context, ui::UiState& state)
      : chats_(chats), context_(context), state_(state) {}

  void apply(const ui::actions::ShowSibling& a);
  // Opens the chat, at once or as soon as it is read, with the message in sight.
  void apply(const ui::actions::ShowMessage& a);
  void take_loaded(ChatId chat_id);

  // The active chat's tree while it is open, made again when it has changed.
  void show_tree();

 private:
  void show_message(const ui::MessageFocus& wanted);

  Chats& chats_;
  ContextCounter& context_;
  ui::UiState& state_;
  std::optional<ui::MessageFocus> focus_when_loaded_;
  TreeVersion shown_tree_;  // what the tree on show was made of
};

}  // namespace octavo::app
