#include "app/window/chat/trash.h"

#include <algorithm>
#include <vector>

namespace octavo::app {

bool Trash::has(ChatId chat_id) const {
  return chats_.find(chat_id) != nullptr && !chats_.is_listed(chat_id);
}

void Trash::apply(const ui::actions::DeleteChat& a) {
  const auto found = std::find(chats_.list().begin(), chats_.list().end(), a.chat_id);
  if (found == chats_.list().end()) return;
  const auto index = static_cast<std::size_t>(found - chats_.list().begin());
  answers_.stop(a.chat_id);
  undoable_ = a.chat_id;
  state_.deleted_title = title_of(*chats_.find(a.chat_id));
  chats_.put_in_trash(a.chat_id);
  if (chats_.list().empty()) {
    chats_.begin();
  } else if (state_.active_chat == a.chat_id) {
    chats_.show(chats_.list()[std::min(index, chats_.list().size() - 1)]);
  }
}

void Trash::apply(const ui::actions::UndoDelete&) {
  if (undoable_) restore(*undoable_);
}

void Trash::dismiss_undo() {
  undoable_.reset();
  state_.deleted_title.reset();
}

void Trash::restore(ChatId chat_id) {
  if (!has(chat_id)) return;
  if (undoable_ == chat_id) dismiss_undo();
  chats_.take_out_of_trash(chat_id);
  chats_.show(chat_id);
}

void Trash::erase(ChatId chat_id) {
  if (!has(chat_id)) return;
  if (undoable_ == chat_id) dismiss_undo();
  chats_.erase(chat_id);
}

void Trash::apply(const ui::actions::EmptyTrash&) {
  std::vector<ChatId> trashed;
  for (const auto& [id, record] : chats_.all()) {
    if (record.trashed_ms) trashed.push_back(id);
  }
  for (const ChatId id : trashed) erase(id);
}

}  // namespace octavo::app
