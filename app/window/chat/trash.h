// What a person deletes. Chats lie in the trash until they are brought back or erased for ever. Messages are
// gone from the disk at once; the newest deletion, of either, can be undone until it is dismissed.
//
// Writes `deleted` of the state. UI thread. What the constructor takes must outlive the trash.
#pragma once

#include <optional>

#include "app/window/chat/answers.h"
#include "app/window/chat/chats.h"
#include "app/window/chat/context_counter.h"
#include "ui/chat_actions.h"
#include "ui/state.h"

namespace octavo::app {

class Trash {
 public:
  Trash(Chats& chats, Answers& answers, ContextCounter& context, ui::UiState& state)
      : chats_(chats), answers_(answers), context_(context), state_(state) {}

  void apply(const ui::actions::DeleteChat& a);
  void apply(const ui::actions::DeleteMessage& a);
  void apply(const ui::actions::UndoDelete&);
  void apply(const ui::actions::DismissUndo&) { dismiss_undo(); }
  void apply(const ui::actions::RestoreChat& a) { restore(a.chat_id); }
  void apply(const ui::actions::EraseChat& a) { erase(a.chat_id); }
  void apply(const ui::actions::EmptyTrash&);

 private:
  struct Undoable {
    ChatId chat_id;
    std::optional<ErasedMessages> messages;  // none: the chat itself was deleted
  };

  void restore(ChatId chat_id);
  void erase(ChatId chat_id);
  void dismiss_undo();
  void dismiss_undo_of(ChatId chat_id);
  bool has(ChatId chat_id) const;

  Chats& chats_;
  Answers& answers_;
  ContextCounter& context_;
  ui::UiState& state_;
  std::optional<Undoable> undoable_;
};

}  // namespace octavo::app
