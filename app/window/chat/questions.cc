#include "app/window/chat/questions.h"

#include <utility>
#include <vector>

#include "app/window/kept_token_ids.h"
#include "engine/base/text.h"

namespace octavo::app {

using Kind = PlannedQuestion::Kind;

void Questions::apply(const ui::actions::SendMessage& a) {
  ChatRecord* record = chats_.change(a.chat_id, Changed::kHead);
  if (record == nullptr || state_.model.phase == ui::ModelPhase::kNone) return;
  std::string message = drafts_.take(a.chat_id, a.text);
  if (answers_.engine() != nullptr && is_free(*record))
    return ask_new(a.chat_id, record->chat.active_leaf(), message);
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
  ask_new(chat_id, record.chat.active_leaf(), next);
}

void Questions::apply(const ui::actions::StopAnswer& a) {
  if (ChatRecord* record = chats_.change(a.chat_id, Changed::kMessages);
      record != nullptr && record->planned) {
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
  ask(a.chat_id, {.message_id = question});
}

void Questions::apply(const ui::actions::EditMessage& a) {
  const ChatRecord* record = chats_.find(a.chat_id);
  const Message* message = record != nullptr ? record->chat.find(a.message_id) : nullptr;
  if (message == nullptr || message->role == Role::kAssistant) return;
  const MessageId parent = message->parent;
  // The files that went with it go with it again.
  const std::string text = with_attachments(a.text, attached_files(split_attachments(message->content)));
  if (record->planned && record->planned->message_id == a.message_id) {
    summaries_.stop(a.chat_id);
    take_back(*chats_.change(a.chat_id, Changed::kMessages));  // this one is asked in its place
  }
  answers_.stop(a.chat_id);
  ask_new(a.chat_id, parent, text);
}

void Questions::apply(const ui::actions::ContinueAnswer& a) {
  const ChatRecord* record = chats_.find(a.chat_id);
  if (record == nullptr || answers_.engine() == nullptr || !is_free(*record)) return;
  const Message* message = record->chat.find(a.message_id);
  if (message == nullptr || !message->children.empty()) return;
  if (message->role == Role::kUser) return ask(a.chat_id, {.message_id = a.message_id});
  if (message->role != Role::kAssistant || message->finish_reason == FinishReason::kStop) return;
  ask(a.chat_id, {.kind = Kind::kContinued, .message_id = a.message_id});
}

void Questions::apply(const ui::actions::WriteAnswer& a) {
  const ChatRecord* record = chats_.find(a.chat_id);
  const Message* named = record != nullptr ? record->chat.find(a.message_id) : nullptr;
  if (named == nullptr) return;
  const bool is_answer = named->role == Role::kAssistant;
  const MessageId question = is_answer ? named->parent : named->id;
  const std::string model = is_answer ? named->model : std::string();
  const bool goes_on = a.end == ui::actions::AnswerEnd::kContinued && answers_.engine() != nullptr;
  answers_.stop(a.chat_id);
  make_way(*chats_.change(a.chat_id, Changed::kMessages), question);
  Message& written = chats_.append_message(a.chat_id, question, Role::kAssistant, sanitise_utf8(a.text));
  written.edited = true;
  written.model = model;
  written.finish_reason = goes_on ? FinishReason::kAbort : FinishReason::kStop;
  if (goes_on) return ask(a.chat_id, {.kind = Kind::kContinued, .message_id = written.id});
  context_.count(a.chat_id);
  send_queued(a.chat_id);
}

// ---- planning

void Questions::ask_new(ChatId chat_id, MessageId parent, const std::string& text) {
  ChatRecord* record = chats_.change(chat_id, Changed::kMessages);
  if (record == nullptr) return;
  make_way(*record);
  const MessageId shown_before = record->chat.active_leaf();
  const Message& question = chats_.append_message(chat_id, parent, Role::kUser, sanitise_utf8(text));
  ask(chat_id, {.message_id = question.id, .shown_before = shown_before});
}

void Questions::ask(ChatId chat_id, PlannedQuestion question) {
  ChatRecord* record = chats_.change(chat_id, Changed::kMessages);
  if (record == nullptr) return;
  make_way(*record);
  question.id = next_question_++;
  record->failed = false;
  record->planned = std::move(question);
  plan(*record);
}

// Another one is faster than what is planned; what was typed is not lost. The question that `kept` names
// stays where it is.
void Questions::make_way(ChatRecord& record, MessageId kept) {
  if (!record.planned) return;
  summaries_.stop(record.id);
  if (record.planned->message_id == kept) return record.planned.reset();
  if (std::string text = take_back(record); !text.empty()) record.queued.push_front(std::move(text));
}

// The result may come at once.
void Questions::plan(ChatRecord& record) {
  if (!plan_context_) return;
  const PlannedQuestion& planned = *record.planned;
  if (record.chat.find(planned.message_id) == nullptr) return record.planned.reset();  // it was erased
  PlanWanted wanted{{PlanPurpose::Kind::kQuestion, record.id, planned.id},
                    context_question(record.chat, planned.message_id, state_.model.max_model_len)};
  ContextQuestion& question = wanted.question;
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
  for (const ChatId id : waiting) plan(*chats_.change(id, Changed::kMessages));
}

void Questions::take_plan(PlanMade made) {
  const ChatId chat_id = made.purpose.chat_id;
  const ChatRecord* known = chats_.find(chat_id);
  if (known == nullptr || !known->planned || known->planned->id != made.purpose.asked_id) return;
  ChatRecord& record = *chats_.change(chat_id, Changed::kMessages);
  if (record.chat.find(record.planned->message_id) == nullptr) return record.planned.reset();
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
  ChatRecord* record = chats_.change(chat_id, Changed::kMessages);
  if (record == nullptr || !record->planned) return;
  if (!problem.empty()) {
    record->planned->without_summary = true;
    state_.banner = ui::Banner{ui::BannerKind::kNotice, problem};
  }
  plan(*record);
}

// What was typed goes back to where it was typed.
void Questions::give_back(ChatRecord& record, const std::string& reason) {
  if (!reason.empty())
    state_.banner =
        ui::Banner{.kind = ui::BannerKind::kError, .text = reason, .topic = ui::BannerTopic::kQuestion};
  if (const std::string text = take_back(record); !text.empty()) drafts_.give_back(record.id, text);
  context_.count(record.id);
}

// The text of a question that was written for what is planned: it is no message any more.
std::string Questions::take_back(ChatRecord& record) {
  const PlannedQuestion planned = *std::exchange(record.planned, std::nullopt);
  if (!planned.shown_before || record.chat.find(planned.message_id) == nullptr) return {};
  ErasedMessages erased = chats_.erase_messages(record.id, planned.message_id, EraseExtent::kBranch);
  if (record.chat.find(*planned.shown_before) != nullptr) record.chat.activate(*planned.shown_before);
  return std::move(erased.messages.front().content);
}

// ---- asking

void Questions::submit(ChatRecord& record, ChatPrompt prompt) {
  const PlannedQuestion planned = *std::exchange(record.planned, std::nullopt);
  ui::settle(state_.banner, ui::BannerTopic::kQuestion);
  switch (planned.kind) {
    case Kind::kAnswered: return answer(record, planned.message_id, std::move(prompt));
    case Kind::kContinued:
      return continue_answer(record, *record.chat.find(planned.message_id), std::move(prompt));
  }
}

void Questions::answer(ChatRecord& record, MessageId question, ChatPrompt prompt) {
  Chat& chat = record.chat;
  GenerationRequest request;
  request.prompt = std::move(prompt);
  request.sampling = chat.sampling;
  Message& message = chats_.append_message(record.id, question, Role::kAssistant, {});
  message.model = state_.model.name;
  answers_.begin(record.id, message.id, std::move(request));
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
  message.context_full = false;
  message.stop_text.clear();
  message.interrupted = false;
  message.error.clear();
  message.model = state_.model.name;
  chats_.keep_message(record.id, message);
  const bool has_ids = !begun || !message.token_ids.empty();
  answers_.begin(record.id, message.id, std::move(request),
                 has_ids ? AnswerTokenIds::kKept : AnswerTokenIds::kDropped);
}

}  // namespace octavo::app
