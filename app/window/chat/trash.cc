#include "app/window/chat/trash.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "engine/base/format.h"

namespace octavo::app {

bool Trash::has(ChatId chat_id) const {
  return chats_.find(chat_id) != nullptr && !chats_.is_listed(chat_id);
}

void Trash::apply(const ui::actions::DeleteChat& a) {
  const auto found = std::find(chats_.list().begin(), chats_.list().end(), a.chat_id);
  if (found == chats_.list().end()) return;
  const auto index = static_cast<std::size_t>(found - chats_.list().begin());
  answers_.stop(a.chat_id);
  undoable_ = {a.chat_id, std::nullopt};
  state_.deleted = "“" + title_of(*chats_.find(a.chat_id)) + "”";
  chats_.put_in_trash(a.chat_id);
  if (chats_.list().empty()) {
    chats_.begin();
  } else if (state_.active_chat == a.chat_id) {
    chats_.show(chats_.list()[std::min(index, chats_.list().size() - 1)]);
  }
}

void Trash::apply(const ui::actions::DeleteMessage& a) {
  const ChatRecord* record = chats_.find(a.chat_id);
  if (!chats_.is_listed(a.chat_id) || record->chat.find(a.message_id) == nullptr) return;
  answers_.stop(a.chat_id);
  const bool alone = a.extent == ui::actions::DeleteExtent::kMessage;
  ErasedMessages erased =
      chats_.erase_messages(a.chat_id, a.message_id, alone ? EraseExtent::kMessage : EraseExtent::kBranch);
  for (Message& message : erased.messages) {
    if (message.role == Role::kAssistant && !message.finish_reason)
      message.finish_reason = FinishReason::kAbort;  // it ends here
  }
  state_.deleted = count_text(erased.messages.size(), "message");
  undoable_ = {a.chat_id, std::move(erased)};
  context_.count(a.chat_id);
}

void Trash::apply(const ui::actions::UndoDelete&) {
  if (!undoable_) return;
  if (!undoable_->messages) return restore(undoable_->chat_id);
  Undoable undoable = *std::exchange(undoable_, std::nullopt);
  dismiss_undo();
  chats_.restore_messages(undoable.chat_id, *std::move(undoable.messages));
  chats_.show(undoable.chat_id);
  context_.count(undoable.chat_id);
}

void Trash::dismiss_undo() {
  undoable_.reset();
  state_.deleted.reset();
}

void Trash::dismiss_undo_of(ChatId chat_id) {
  if (undoable_ && undoable_->chat_id == chat_id) dismiss_undo();
}

void Trash::restore(ChatId chat_id) {
  if (!has(chat_id)) return;
  dismiss_undo_of(chat_id);
  chats_.take_out_of_trash(chat_id);
  chats_.show(chat_id);
}

void Trash::erase(ChatId chat_id) {
  if (!has(chat_id)) return;
  dismiss_undo_of(chat_id);
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
