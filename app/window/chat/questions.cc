#include "app/window/chat/questions.h"

#include <utility>
#include <vector>

#include "app/window/kept_token_ids.h"
#include "engine/base/text.h"

namespace octavo::app {

using Kind = PlannedQuestion::Kind;

void Questions::apply(const ui::actions::SendMessage& a) {
  ChatRecord* record = chats_.change(a.chat_id, Changed::kHead);
  if (record == nullptr || answers_.engine() == nullptr) return;
  std::string message = drafts_.take(a.chat_id, a.text);
  if (is_free(*record)) return ask(a.chat_id, {.message_id = record->chat.active_leaf(), .text = message});
  record->queued.push_back(std::move(message));
}

void Questions::apply(const ui::actions::RemoveQueued& a) {
  ChatRecord* record = chats_.change(a.chat_id, Changed::kHead);
  if (record == nullptr) return;
  std::size_t index = a.index;
  if (record->planned && record->planned->kind == Kind::kNew &&
      index-- == 0) {  // it stands before the others
    summaries_.stop(a.chat_id);
    record->planned.reset();
    return send_queued(a.chat_id);
  }
  if (index < record->queued.size())
    record->queued.erase(record->queued.begin() + static_cast<std::ptrdiff_t>(index));
}

void Questions::send_queued(ChatId chat_id) {
  const ChatRecord* known = chats_.find(chat_id);
  if (known == nullptr || answers_.engine() == nullptr || known->queued.empty() || !is_free(*known)) return;
  ChatRecord& record = *chats_.change(chat_id, Changed::kHead);
  std::string next = std::move(record.queued.front());
  record.queued.pop_front();
  ask(chat_id, {.message_id = record.chat.active_leaf(), .text = std::move(next)});
}

void Questions::apply(const ui::actions::StopAnswer& a) {
  if (ChatRecord* record = chats_.change(a.chat_id, Changed::kHead); record != nullptr && record->planned) {
    summaries_.stop(a.chat_id);
    give_back(*record, {});
  }
  answers_.stop(a.chat_id);
  send_queued(a.chat_id);
}

void Questions::apply(const ui::actions::Regenerate& a) {
  const ChatRecord* record = chats_.find(a.chat_id);
  const Message* message = record != nullptr ? record->chat.find(a.message_id) : nullptr;
  if (message == nullptr || message->role != Role::kAssistant) return;
  const MessageId question = message->parent;
  answers_.stop(a.chat_id);
  ask(a.chat_id, {.kind = Kind::kAgain, .message_id = question});
}

void Questions::apply(const ui::actions::EditMessage& a) {
  const ChatRecord* record = chats_.find(a.chat_id);
  const Message* message = record != nullptr ? record->chat.find(a.message_id) : nullptr;
  if (message == nullptr) return;
  const MessageId parent = message->parent;
  // The files that went with it go with it again.
  std::string text = with_attachments(a.text, attached_files(split_attachments(message->content)));
  answers_.stop(a.chat_id);
  ask(a.chat_id, {.message_id = parent, .text = std::move(text)});
}

void Questions::apply(const ui::actions::ContinueAnswer& a) {
  const ChatRecord* record = chats_.find(a.chat_id);
  if (record == nullptr || answers_.engine() == nullptr || !is_free(*record)) return;
  const Message* message = record->chat.find(a.message_id);
  if (message == nullptr || message->role != Role::kAssistant || !message->children.empty() ||
      message->finish_reason == FinishReason::kStop)
    return;
  ask(a.chat_id, {.kind = Kind::kContinued, .message_id = a.message_id});
}

// ---- planning

void Questions::ask(ChatId chat_id, PlannedQuestion question) {
  ChatRecord* record = chats_.change(chat_id, Changed::kHead);
  if (record == nullptr) return;
  if (record->planned) {
    // Another one is faster; what was typed is not lost.
    summaries_.stop(chat_id);
    if (record->planned->kind == Kind::kNew) record->queued.push_front(std::move(record->planned->text));
  }
  question.id = next_question_++;
  question.text = sanitise_utf8(question.text);
  record->planned = std::move(question);
  plan(*record);
}

// The result may come at once.
void Questions::plan(const ChatRecord& record) {
  if (!plan_context_) return;
  const PlannedQuestion& planned = *record.planned;
  PlanWanted wanted{record.id, planned.id,
                    context_question(record.chat, planned.message_id, state_.model.max_model_len)};
  ContextQuestion& question = wanted.question;
  if (planned.kind == Kind::kNew) question.path.push_back({{}, {Role::kUser, planned.text}, {}});
  // An answer that has not begun is asked for again.
  question.continue_answer = planned.kind == Kind::kContinued && !question.path.empty() &&
                             question.path.back().id == planned.message_id;
  if (planned.without_summary) question.policy = ContextPolicy::kRoll;
  plan_context_(std::move(wanted));
}

void Questions::set_plan_context(PlanContext plan_context) {
  plan_context_ = std::move(plan_context);
  if (!plan_context_) return;
  std::vector<ChatId> waiting;
  for (const auto& [id, record] : chats_.all()) {
    if (record.planned) waiting.push_back(id);
  }
  for (const ChatId id : waiting) plan(*chats_.find(id));
}

void Questions::take_plan(PlanMade made) {
  const ChatRecord* known = chats_.find(made.chat_id);
  if (known == nullptr || !known->planned || known->planned->id != made.question_id) return;
  ChatRecord& record = *chats_.change(made.chat_id, Changed::kMessages);
  if (record.trashed_ms) return give_back(record, {});
  if (!made.plan.refusal.empty()) return give_back(record, made.plan.refusal);
  record.context.num_left = made.plan.num_left;
  record.context.refusal.clear();
  record.chat.context_begin = made.plan.begin;
  if (made.plan.summary && answers_.engine() != nullptr)
    return summaries_.begin(record, *answers_.engine(), std::move(*made.plan.summary));
  submit(record, std::move(made.plan.prompt));
}

void Questions::take_summary(ChatId chat_id, const std::string& problem) {
  ChatRecord* record = chats_.change(chat_id, Changed::kHead);
  if (record == nullptr || !record->planned) return;
  if (!problem.empty()) {
    record->planned->without_summary = true;
    state_.banner = ui::Banner{ui::BannerKind::kNotice, problem};
  }
  plan(*record);
}

// It never became a message. What was typed goes back to where it was typed.
void Questions::give_back(ChatRecord& record, const std::string& reason) {
  const PlannedQuestion planned = *std::exchange(record.planned, std::nullopt);
  if (!reason.empty()) state_.banner = ui::Banner{ui::BannerKind::kError, reason};
  if (planned.kind == Kind::kNew) drafts_.give_back(record.id, planned.text);
  context_.count(record.id);
}

// ---- asking

void Questions::submit(ChatRecord& record, ChatPrompt prompt) {
  const PlannedQuestion planned = *std::exchange(record.planned, std::nullopt);
  switch (planned.kind) {
    case Kind::kNew:
      return answer(record, record.chat.append(planned.message_id, Role::kUser, planned.text),
                    std::move(prompt));
    case Kind::kAgain: return answer(record, planned.message_id, std::move(prompt));
    case Kind::kContinued:
      return continue_answer(record, *record.chat.find(planned.message_id), std::move(prompt));
  }
}

void Questions::answer(ChatRecord& record, MessageId question, ChatPrompt prompt) {
  Chat& chat = record.chat;
  GenerationRequest request;
  request.prompt = std::move(prompt);
  request.sampling = chat.sampling;
  const MessageId message_id = chat.append(question, Role::kAssistant, {});
  chat.find(message_id)->model = state_.model.name;
  answers_.begin(record.id, message_id, std::move(request));
}

void Questions::continue_answer(ChatRecord& record, Message& message, ChatPrompt prompt) {
  const bool begun = !message.content.empty();
  if (!begun || (answers_.engine() != nullptr &&
                 !spells(answers_.engine()->tokenizer(), message.token_ids, message.content)))
    message.token_ids.clear();
  if (begun && message.token_ids.empty()) prompt.messages.back().token_ids.clear();
  record.chat.activate(message.id);
  GenerationRequest request;
  request.prompt = std::move(prompt);
  request.sampling = record.chat.sampling;
  message.finish_reason.reset();
  message.interrupted = false;
  message.error.clear();
  message.model = state_.model.name;
  chats_.keep_message(record.id, message);
  const bool has_ids = !begun || !message.token_ids.empty();
  answers_.begin(record.id, message.id, std::move(request),
                 has_ids ? AnswerTokenIds::kKept : AnswerTokenIds::kDropped);
}

}  // namespace octavo::app
