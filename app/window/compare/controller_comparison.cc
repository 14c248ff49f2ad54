// The Compare workspace's side of the controller: where its questions come from, and where its answers go.

#include "app/window/compare/comparison_export.h"
#include "app/window/controller.h"
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

}  // namespace

void Controller::open_comparison(ChatId chat_id, MessageId message_id) {
  const OpenChat* open_chat = find_chat(chat_id);
  const Message* message = open_chat != nullptr ? open_chat->chat.find(message_id) : nullptr;
  if (message == nullptr || message->role != Role::kUser) return;
  attach_comparison();
  comparison_.open({.messages = open_chat->chat.chat_messages(message_id),
                    .chat_id = chat_id,
                    .message_id = message_id,
                    .chat_title = open_chat->chat.display_title(),
                    .sampling = sampling_to_compare(open_chat->chat.sampling)});
  state_.workspace = ui::Workspace::kCompare;
}

void Controller::type_comparison(const std::string& text) {
  const std::string question = sanitise_utf8(text);
  if (question.find_first_not_of(" \t\r\n") == std::string::npos) return;
  attach_comparison();
  comparison_.open(
      {.messages = {{Role::kUser, question}}, .sampling = sampling_to_compare(settings_.sampling)});
  state_.workspace = ui::Workspace::kCompare;
}

// Shown without a question: the newest one of the chat at hand is the likeliest to be meant.
void Controller::show_comparison() {
  const OpenChat* open_chat = find_chat(state_.active_chat);
  if (!state_.comparison.messages.empty() || open_chat == nullptr) return;
  const auto path = open_chat->chat.active_path();
  for (auto id = path.rbegin(); id != path.rend(); ++id) {
    if (open_chat->chat.find(*id)->role == Role::kUser) return open_comparison(state_.active_chat, *id);
  }
}

void Controller::keep_column(ui::ColumnId column_id) {
  const std::optional<Message> answer = comparison_.message_of(column_id);
  const ChatId chat_id = state_.comparison.chat_id;
  const MessageId question = state_.comparison.message_id;
  OpenChat* open_chat = find_chat(chat_id);
  if (!answer) return;
  if (open_chat == nullptr || open_chat->chat.find(question) == nullptr) return continue_column(column_id);
  add_answer(*open_chat, question, *answer);
  show_messages(chat_id);
  count_context(chat_id);
  state_.active_chat = chat_id;
  state_.workspace = ui::Workspace::kChat;
}

void Controller::keep_all_columns() {
  const ChatId chat_id = state_.comparison.chat_id;
  const MessageId question = state_.comparison.message_id;
  OpenChat* open_chat = find_chat(chat_id);
  const bool from_chat = open_chat != nullptr && open_chat->chat.find(question) != nullptr;
  if (!from_chat) return;
  std::int32_t num_kept = 0;
  for (const ui::ComparedColumn& column : state_.comparison.columns) {
    const std::optional<Message> answer = comparison_.message_of(column.id);
    if (!answer) continue;
    add_answer(*open_chat, question, *answer);
    ++num_kept;
  }
  if (num_kept == 0) return;
  show_messages(chat_id);
  count_context(chat_id);
  show_banner(ui::BannerKind::kNotice, std::to_string(num_kept) + " answers stand beside each other in “" +
                                           open_chat->chat.display_title() +
                                           "”: the arrows below the answer walk them.");
}

void Controller::continue_column(ui::ColumnId column_id) {
  const std::optional<Message> answer = comparison_.message_of(column_id);
  if (!answer) return;
  const ChatId chat_id = new_chat();
  OpenChat& open_chat = *find_chat(chat_id);
  MessageId last = kRootMessage;
  for (const ChatMessage& message : state_.comparison.messages) {
    if (message.role == Role::kSystem) {
      open_chat.chat.system_prompt = message.content;
      continue;
    }
    last = open_chat.chat.append(last, message.role, message.content);
    Message& added = *open_chat.chat.find(last);
    added.token_ids = message.token_ids;
    if (message.role == Role::kAssistant) added.finish_reason = FinishReason::kStop;
  }
  open_chat.chat.sampling = ui::find_column(state_.comparison, column_id)->sampling;
  open_chat.chat.sampling.logprobs = 0;
  open_chat.chat.sampling.n = 1;
  open_chat.chat.sampling.beam_width.reset();
  add_answer(open_chat, last, *answer);
  ui::ChatState& shown = *shown_chat(chat_id);
  shown.system_prompt = open_chat.chat.system_prompt;
  shown.sampling = open_chat.chat.sampling;
  show_title(chat_id);
  show_messages(chat_id);
  count_context(chat_id);
}

void Controller::add_answer(OpenChat& open_chat, MessageId question, const Message& answer) {
  const MessageId id = open_chat.chat.append(question, Role::kAssistant, answer.content);
  Message& added = *open_chat.chat.find(id);
  added.token_ids = answer.token_ids;
  added.finish_reason = answer.finish_reason;
  added.seed = answer.seed;
  added.metrics = answer.metrics;
}

void Controller::export_comparison(ui::actions::ComparisonFormat format) {
  if (state_.comparison.columns.empty()) return;
  const bool json = format == ui::actions::ComparisonFormat::kJson;
  effects_.exported_comparison = ExportedComparison{
      json ? "comparison.json" : "comparison.md",
      json ? comparison_to_json(state_.comparison) : comparison_to_markdown(state_.comparison)};
}

}  // namespace octavo::app
