#include "app/window/chat/branches.h"

#include <utility>

namespace octavo::app {

void Branches::apply(const ui::actions::ShowSibling& a) {
  const ChatRecord* record = chats_.find(a.chat_id);
  if (record == nullptr || record->chat.find(a.message_id) == nullptr) return;
  Chat& chat = chats_.change(a.chat_id, Changed::kMessages)->chat;
  chat.activate(chat.sibling(a.message_id, a.offset));
  context_.count(a.chat_id);
}

void Branches::apply(const ui::actions::ShowMessage& a) {
  if (!chats_.is_listed(a.chat_id)) return;
  chats_.show(a.chat_id);
  const ui::MessageFocus wanted{a.chat_id, a.message_id, a.editor};
  if (chats_.find(a.chat_id)->kept.loaded) {
    show_message(wanted);
  } else {
    focus_when_loaded_ = wanted;
  }
}

void Branches::take_loaded(ChatId chat_id) {
  if (!focus_when_loaded_ || focus_when_loaded_->chat_id != chat_id) return;
  const ui::MessageFocus wanted = *std::exchange(focus_when_loaded_, std::nullopt);
  if (!chats_.is_listed(chat_id)) return;
  chats_.show(chat_id);
  show_message(wanted);
}

void Branches::show_message(const ui::MessageFocus& wanted) {
  if (chats_.find(wanted.chat_id)->chat.find(wanted.message_id) == nullptr) return;
  chats_.change(wanted.chat_id, Changed::kMessages)->chat.activate(wanted.message_id);
  const std::uint64_t serial = state_.library.focus.serial + 1;
  state_.library.focus = {wanted.chat_id, wanted.message_id, wanted.editor, serial};
  context_.count(wanted.chat_id);
}

void Branches::show_tree() {
  if (!state_.desktop.tree_open) {
    state_.desktop.tree.reset();
    shown_tree_ = {};
    return;
  }
  const ChatRecord* record = chats_.find(state_.active_chat);
  if (record == nullptr) return;
  const TreeVersion version = tree_version(record->chat, record->id);
  if (state_.desktop.tree != nullptr && version == shown_tree_) return;
  shown_tree_ = version;
  state_.desktop.tree = branch_tree(record->chat, record->id);
}

}  // namespace octavo::app
