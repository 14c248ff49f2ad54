#include "app/window/chat/questions.h"

#include <utility>

#include "app/window/kept_token_ids.h"
#include "engine/base/text.h"

namespace octavo::app {

void Questions::apply(const ui::actions::SendMessage& a) {
  ChatRecord* record = chats_.change(a.chat_id, Changed::kHead);
  if (record == nullptr || answers_.engine() == nullptr) return;
  std::string message = drafts_.take(a.chat_id, a.text);
  if (is_free(*record)) return ask(a.chat_id, record->chat.active_leaf(), message);
  record->queued.push_back(std::move(message));
}

void Questions::apply(const ui::actions::RemoveQueued& a) {
  ChatRecord* record = chats_.change(a.chat_id, Changed::kHead);
  if (record == nullptr || a.index >= record->queued.size()) return;
  record->queued.erase(record->queued.begin() + static_cast<std::ptrdiff_t>(a.index));
}

void Questions::send_queued(ChatId chat_id) {
  const ChatRecord* known = chats_.find(chat_id);
  if (known == nullptr || answers_.engine() == nullptr || known->queued.empty() || !is_free(*known)) return;
  ChatRecord& record = *chats_.change(chat_id, Changed::kHead);
  const std::string next = std::move(record.queued.front());
  record.queued.pop_front();
  ask(chat_id, record.chat.active_leaf(), next);
}

void Questions::ask(ChatId chat_id, MessageId parent, const std::string& text) {
  ChatRecord* record = chats_.change(chat_id, Changed::kMessages);
  if (record != nullptr) answer(chat_id, record->chat.append(parent, Role::kUser, sanitise_utf8(text)));
}

void Questions::answer(ChatId chat_id, MessageId question) {
  ChatRecord* record = chats_.change(chat_id, Changed::kMessages);
  if (record == nullptr || answers_.engine() == nullptr) return;
  Chat& chat = record->chat;
  GenerationRequest request;
  request.prompt = ChatPrompt{chat.chat_messages(question)};
  request.sampling = chat.sampling;
  const MessageId message_id = chat.append(question, Role::kAssistant, {});
  chat.find(message_id)->model = state_.model.name;
  answers_.begin(chat_id, message_id, std::move(request));
}

void Questions::apply(const ui::actions::StopAnswer& a) {
  answers_.stop(a.chat_id);
  send_queued(a.chat_id);
}

void Questions::apply(const ui::actions::Regenerate& a) {
  const ChatRecord* record = chats_.find(a.chat_id);
  const Message* message = record != nullptr ? record->chat.find(a.message_id) : nullptr;
  if (message == nullptr || message->role != Role::kAssistant) return;
  const MessageId question = message->parent;
  answers_.stop(a.chat_id);
  answer(a.chat_id, question);
}

void Questions::apply(const ui::actions::EditMessage& a) {
  const ChatRecord* record = chats_.find(a.chat_id);
  const Message* message = record != nullptr ? record->chat.find(a.message_id) : nullptr;
  if (message == nullptr) return;
  const MessageId parent = message->parent;
  // The files that went with it go with it again.
  const std::string text = with_attachments(a.text, attached_files(split_attachments(message->content)));
  answers_.stop(a.chat_id);
  ask(a.chat_id, parent, text);
}

void Questions::apply(const ui::actions::ContinueAnswer& a) {
  ChatRecord* record = chats_.change(a.chat_id, Changed::kMessages);
  if (record == nullptr || answers_.engine() == nullptr || record->answering || record->submitting) return;
  Message* message = record->chat.find(a.message_id);
  if (message == nullptr || message->role != Role::kAssistant || !message->children.empty() ||
      message->finish_reason == FinishReason::kStop)
    return;
  const bool begun = !message->content.empty();
  if (!begun || !spells(answers_.engine()->tokenizer(), message->token_ids, message->content))
    message->token_ids.clear();
  record->chat.activate(message->id);
  GenerationRequest request;
  request.prompt = ChatPrompt{record->chat.chat_messages(message->id), begun};
  request.sampling = record->chat.sampling;
  message->finish_reason.reset();
  message->interrupted = false;
  message->error.clear();
  message->model = state_.model.name;
  chats_.keep_message(a.chat_id, *message);
  const bool has_ids = !begun || !message->token_ids.empty();
  answers_.begin(a.chat_id, message->id, std::move(request),
                 has_ids ? AnswerTokenIds::kKept : AnswerTokenIds::kDropped);
}

}  // namespace octavo::app
