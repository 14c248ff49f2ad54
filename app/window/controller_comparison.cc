// The Compare workspace's side of the controller: where its questions come from, and where its answers go.

#include "app/window/comparison_export.h"
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

void Controller::open_comparison(ui::SessionId session_id, MessageId message_id) {
  const Session* session = find_session(session_id);
  const Message* message = session != nullptr ? session->conversation.find(message_id) : nullptr;
  if (message == nullptr || message->role != Role::kUser) return;
  attach_comparison();
  comparison_.open({.messages = session->conversation.chat_messages(message_id),
                    .session_id = session_id.value,
                    .message_id = message_id.value,
                    .session_title = session->conversation.display_title(),
                    .sampling = sampling_to_compare(session->conversation.sampling)});
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
  const Session* session = find_session(state_.active_session);
  if (!state_.comparison.messages.empty() || session == nullptr) return;
  const auto path = session->conversation.active_path();
  for (auto id = path.rbegin(); id != path.rend(); ++id) {
    if (session->conversation.find(*id)->role == Role::kUser)
      return open_comparison(state_.active_session, *id);
  }
}

void Controller::keep_column(ui::ColumnId column_id) {
  const std::optional<Message> answer = comparison_.message_of(column_id);
  const ui::SessionId session_id{state_.comparison.session_id};
  const MessageId question{state_.comparison.message_id};
  Session* session = find_session(session_id);
  if (!answer) return;
  if (session == nullptr || session->conversation.find(question) == nullptr)
    return continue_column(column_id);
  add_answer(*session, question, *answer);
  show_messages(session_id);
  count_context(session_id);
  state_.active_session = session_id;
  state_.workspace = ui::Workspace::kChat;
}

void Controller::keep_all_columns() {
  const ui::SessionId session_id{state_.comparison.session_id};
  const MessageId question{state_.comparison.message_id};
  Session* session = find_session(session_id);
  const bool from_chat = session != nullptr && session->conversation.find(question) != nullptr;
  if (!from_chat) return;
  std::int32_t num_kept = 0;
  for (const ui::ComparedColumn& column : state_.comparison.columns) {
    const std::optional<Message> answer = comparison_.message_of(column.id);
    if (!answer) continue;
    add_answer(*session, question, *answer);
    ++num_kept;
  }
  if (num_kept == 0) return;
  show_messages(session_id);
  count_context(session_id);
  show_banner(ui::BannerKind::kNotice, std::to_string(num_kept) + " answers stand beside each other in “" +
                                           session->conversation.display_title() +
                                           "”: the arrows below the answer walk them.");
}

void Controller::continue_column(ui::ColumnId column_id) {
  const std::optional<Message> answer = comparison_.message_of(column_id);
  if (!answer) return;
  const ui::SessionId session_id = new_session();
  Session& session = *find_session(session_id);
  MessageId last = kRootMessage;
  for (const ChatMessage& message : state_.comparison.messages) {
    if (message.role == Role::kSystem) {
      session.conversation.system_prompt = message.content;
      continue;
    }
    last = session.conversation.append(last, message.role, message.content);
    Message& added = *session.conversation.find(last);
    added.token_ids = message.token_ids;
    if (message.role == Role::kAssistant) added.finish_reason = FinishReason::kStop;
  }
  session.conversation.sampling = ui::find_column(state_.comparison, column_id)->sampling;
  session.conversation.sampling.logprobs = 0;
  session.conversation.sampling.n = 1;
  session.conversation.sampling.beam_width.reset();
  add_answer(session, last, *answer);
  ui::SessionState& shown = *shown_session(session_id);
  shown.system_prompt = session.conversation.system_prompt;
  shown.sampling = session.conversation.sampling;
  show_title(session_id);
  show_messages(session_id);
  count_context(session_id);
}

void Controller::add_answer(Session& session, MessageId question, const Message& answer) {
  const MessageId id = session.conversation.append(question, Role::kAssistant, answer.content);
  Message& added = *session.conversation.find(id);
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
