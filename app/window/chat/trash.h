// Deleted chats: they lie in the trash until a person brings them back or erases them for ever.
//
// Writes deleted_title of the state. UI thread. Chats, answers and state must outlive the trash.
#pragma once

#include <optional>

#include "app/window/chat/answers.h"
#include "app/window/chat/chats.h"
#include "ui/chat_actions.h"
#include "ui/state.h"

namespace octavo::app {

class Trash {
 public:
  Trash(Chats& chats, Answers& answers, ui::UiState& state)
      : chats_(chats), answers_(answers), state_(state) {}

  void apply(const ui::actions::DeleteChat& a);
  void apply(const ui::actions::UndoDelete&);
  void apply(const ui::actions::DismissUndo&) { dismiss_undo(); }
  void apply(const ui::actions::RestoreChat& a) { restore(a.chat_id); }
  void apply(const ui::actions::EraseChat& a) { erase(a.chat_id); }
  void apply(const ui::actions::EmptyTrash&);

 private:
  void restore(ChatId chat_id);
  void erase(ChatId chat_id);
  void dismiss_undo();
  bool has(ChatId chat_id) const;

  Chats& chats_;
  Answers& answers_;
  ui::UiState& state_;
  std::optional<ChatId> undoable_;
};

}  // namespace octavo::app
