#include "app/window/chat/context_counter.h"

#include <algorithm>
#include <string>
#include <utility>

namespace octavo::app {

void ContextCounter::count(ChatId chat_id) {
  const ChatRecord* record = chats_.find(chat_id);
  if (record == nullptr || record->answering || record->submitting || !count_tokens_) return;
  std::vector<ChatMessage> messages = record->chat.chat_messages(record->chat.active_leaf());
  if (std::string draft = composed_draft(*record); !draft.empty())
    messages.push_back({Role::kUser, std::move(draft)});
  if (messages.empty()) return show(chat_id, 0);
  count_tokens_(chat_id, std::move(messages));
}

void ContextCounter::take_count(ChatId chat_id, std::int32_t num_tokens) {
  const ChatRecord* record = chats_.find(chat_id);
  if (record != nullptr && !record->answering) show(chat_id, num_tokens);
}

void ContextCounter::show(ChatId chat_id, std::int32_t num_tokens) {
  const std::int32_t block_size = std::max(1, state_.model.block_size);
  if (ChatRecord* record = chats_.change(chat_id, Changed::kFigures))
    record->context = {num_tokens, (num_tokens + block_size - 1) / block_size};
}

}  // namespace octavo::app
