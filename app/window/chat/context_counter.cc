#include "app/window/chat/context_counter.h"

#include <algorithm>
#include <string>
#include <utility>

namespace octavo::app {

void ContextCounter::count(ChatId chat_id) {
  const ChatRecord* record = chats_.find(chat_id);
  if (record == nullptr || record->answering || record->submitting || record->planned || !plan_context_)
    return;
  const Chat& chat = record->chat;
  PlanWanted wanted{{PlanPurpose::Kind::kShown, chat_id},
                    context_question(chat, chat.active_leaf(), state_.model.max_model_len)};
  std::vector<PathMessage>& path = wanted.question.path;
  if (std::string draft = composed_draft(*record); !draft.empty()) {
    path.push_back({{}, {Role::kUser, std::move(draft)}, {}});
  } else {
    // Nothing is asked: an answer at the end is no message that might be too long.
    wanted.question.continue_answer = !path.empty() && path.back().message.role == Role::kAssistant;
  }
  if (path.empty()) return take(chat_id, {});
  plan_context_(std::move(wanted));
}

void ContextCounter::take(ChatId chat_id, const ContextPlan& plan) {
  const ChatRecord* known = chats_.find(chat_id);
  if (known == nullptr || known->answering) return;
  show(chat_id, plan.num_tokens);
  ChatRecord& record = *chats_.change(chat_id, Changed::kFigures);
  record.context.num_left = plan.num_left;
  record.context.refusal = plan.refusal;
  record.chat.context_begin = plan.begin;
}

void ContextCounter::show(ChatId chat_id, std::int32_t num_tokens) {
  const std::int32_t block_size = std::max(1, state_.model.block_size);
  if (ChatRecord* record = chats_.change(chat_id, Changed::kFigures)) {
    record->context.num_tokens = num_tokens;
    record->context.num_blocks = (num_tokens + block_size - 1) / block_size;
  }
}

}  // namespace octavo::app
