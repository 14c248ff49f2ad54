#include "app/window/compare/compare_workspace.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "engine/base/text.h"

namespace octavo::app {
namespace {

// Answers that are compared are read side by side: a longer one is asked for in the set-up.
constexpr std::int32_t kMostTokensAtFirst = 256;

SamplingParams sampling_to_compare(const SamplingParams& sampling) {
  SamplingParams result = sampling;
  result.max_tokens = std::min(result.max_tokens, kMostTokensAtFirst);
  result.min_tokens = std::min(result.min_tokens, result.max_tokens);
  return result;
}

// A chat asks for one answer, and for no log-probabilities.
SamplingParams sampling_to_chat(const SamplingParams& sampling) {
  SamplingParams result = sampling;
  result.logprobs = 0;
  result.n = 1;
  result.beam_width.reset();
  return result;
}

void add_answer(Chat& chat, MessageId question, const Message& answer) {
  Message& added = *chat.find(chat.append(question, Role::kAssistant, answer.content));
  added.token_ids = answer.token_ids;
  added.finish_reason = answer.finish_reason;
  added.seed = answer.seed;
  added.metrics = answer.metrics;
}

// Adds these messages below each other, and gives the last of them.
MessageId add_messages(Chat& chat, const std::vector<ChatMessage>& messages) {
  MessageId last = kRootMessage;
  for (const ChatMessage& message : messages) {
    if (message.role == Role::kSystem) {
      chat.system_prompt = message.content;
      continue;
    }
    Message added;
    added.parent = last;
    added.role = message.role;
    added.content = message.content;
    added.token_ids = message.token_ids;
    if (message.role == Role::kAssistant) added.finish_reason = FinishReason::kStop;
    last = chat.add(std::move(added));
  }
  return last;
}

}  // namespace

// ---- one engine after the other

void CompareWorkspace::attach_engine(Engine& engine) {
  newest_ = &engine;
  follow_engine();
}

void CompareWorkspace::follow_engine() {
  if (!running()) ask_newest_engine();
}

// What is known as token ids of another engine is forgotten; texts stay.
void CompareWorkspace::ask_newest_engine() {
  if (newest_ == nullptr || asked_ == newest_) return;
  if (asked_ != nullptr) {
    comparison_.stop();
    comparison_.detach_engine("Stopped because the model was switched.");
  }
  asked_ = newest_;
  comparison_.attach_engine(*asked_);
}

void CompareWorkspace::detach_engine() {
  newest_ = asked_ = nullptr;
  comparison_.detach_engine("Stopped because the model was unloaded.");
}

// ---- the question

void CompareWorkspace::apply(const ui::actions::OpenComparison& a) { open(a.chat_id, a.message_id); }

void CompareWorkspace::open(ChatId chat_id, MessageId message_id) {
  const Chat* chat = chats_.chat(chat_id);
  const Message* message = chat != nullptr ? chat->find(message_id) : nullptr;
  if (message == nullptr || message->role != Role::kUser) return;
  ask_newest_engine();
  comparison_.open({.messages = chat->chat_messages(message_id),
                    .chat_id = chat_id,
                    .message_id = message_id,
                    .chat_title = chat->display_title(),
                    .sampling = sampling_to_compare(chat->sampling)});
  state_.workspace = ui::Workspace::kCompare;
}

void CompareWorkspace::apply(const ui::actions::TypeComparison& a) {
  const std::string question = sanitise_utf8(a.text);
  if (question.find_first_not_of(" \t\r\n") == std::string::npos) return;
  ask_newest_engine();
  comparison_.open({.messages = {{Role::kUser, question}}, .sampling = sampling_to_compare(sampling_)});
  state_.workspace = ui::Workspace::kCompare;
}

void CompareWorkspace::show_newest_question() {
  const ChatId chat_id = chats_.active_chat();
  const Chat* chat = chats_.chat(chat_id);
  if (!state_.comparison.messages.empty() || chat == nullptr) return;
  const auto path = chat->active_path();
  const auto question = std::find_if(path.rbegin(), path.rend(),
                                     [&](MessageId id) { return chat->find(id)->role == Role::kUser; });
  if (question != path.rend()) open(chat_id, *question);
}

void CompareWorkspace::apply(const ui::actions::RunComparison&) {
  ask_newest_engine();
  comparison_.run();
}

void CompareWorkspace::apply(const ui::actions::RunComparisonAgain&) {
  ask_newest_engine();
  comparison_.run_again();
}

// ---- answers that are kept

// Whether the chat and the question that were compared are still there.
bool CompareWorkspace::has_source() const {
  const Chat* chat = chats_.chat(state_.comparison.chat_id);
  return chat != nullptr && chat->find(state_.comparison.message_id) != nullptr;
}

void CompareWorkspace::apply(const ui::actions::KeepColumn& a) {
  const std::optional<Message> answer = comparison_.message_of(a.column_id);
  if (!answer) return;
  if (!has_source()) return continue_column(a.column_id);
  const ChatId chat_id = state_.comparison.chat_id;
  const MessageId question = state_.comparison.message_id;
  chats_.edit(chat_id, [&](Chat& chat) { add_answer(chat, question, *answer); });
  chats_.show(chat_id);
}

void CompareWorkspace::apply(const ui::actions::KeepAllColumns&) {
  if (!has_source()) return;
  std::vector<Message> answers;
  for (const ui::ComparedColumn& column : state_.comparison.columns) {
    if (auto answer = comparison_.message_of(column.id)) answers.push_back(*std::move(answer));
  }
  if (answers.empty()) return;
  const ChatId chat_id = state_.comparison.chat_id;
  const MessageId question = state_.comparison.message_id;
  chats_.edit(chat_id, [&](Chat& chat) {
    for (const Message& answer : answers) add_answer(chat, question, answer);
  });
  state_.banner =
      ui::Banner{ui::BannerKind::kNotice, std::to_string(answers.size()) + " answers are now branches of “" +
                                              chats_.chat(chat_id)->display_title() +
                                              "”. Use the arrows below the answer to switch."};
}

void CompareWorkspace::continue_column(ui::ColumnId column_id) {
  const std::optional<Message> answer = comparison_.message_of(column_id);
  if (!answer) return;
  chats_.edit(chats_.begin(), [&](Chat& chat) {
    const MessageId question = add_messages(chat, state_.comparison.messages);
    chat.sampling = sampling_to_chat(ui::find_column(state_.comparison, column_id)->sampling);
    add_answer(chat, question, *answer);
  });
}

void CompareWorkspace::apply(const ui::actions::ExportComparison& a) {
  if (state_.comparison.columns.empty()) return;
  const bool json = a.format == ui::actions::ComparisonFormat::kJson;
  export_ = ExportedComparison{
      json ? "comparison.json" : "comparison.md",
      json ? comparison_to_json(state_.comparison) : comparison_to_markdown(state_.comparison)};
}

}  // namespace octavo::app
