#include "app/window/chat/shown_chats.h"

#include <algorithm>
#include <string>
#include <utility>

#include "app/chat/attachments.h"
#include "app/window/chat/answer_figures.h"
#include "app/window/models/model_title.h"
#include "engine/chat_template/answer_parts.h"

namespace octavo::app {
namespace {

// The answer that this message is, while it is under way.
const AnswerUnderWay* answer_of(const ChatRecord& record, const Answers& answers) {
  return record.answering ? answers.find(*record.answering) : nullptr;
}

// ---- messages

// Files that went with a question are shown beside its text: they may be a thousand times longer.
void show_question(const Message& message, ui::MessageState& shown) {
  const SplitMessage parts = split_attachments(message.content);
  shown.text = parts.text;
  for (const SplitMessage::File& file : parts.files)
    shown.attachments.push_back(
        {.name = std::string(file.name), .num_bytes = static_cast<std::int64_t>(file.text.size())});
}

ui::MessageState new_message(const Message& message) {
  ui::MessageState shown;
  shown.id = message.id;
  shown.role = message.role;
  if (message.role != Role::kAssistant) show_question(message, shown);
  return shown;
}

// What can be asked for below a message that nothing follows.
ui::AnswerOffer offer_of(const Message& message) {
  if (!message.children.empty()) return ui::AnswerOffer::kNone;
  if (message.role == Role::kUser) return ui::AnswerOffer::kGenerate;
  const bool has_ended = message.finish_reason || message.interrupted;
  if (message.role != Role::kAssistant || !has_ended || message.finish_reason == FinishReason::kStop)
    return ui::AnswerOffer::kNone;
  return message.content.empty() ? ui::AnswerOffer::kGenerate : ui::AnswerOffer::kContinue;
}

ui::AnswerFigures shown_figures(const AnswerUnderWay* under_way, const Message& message) {
  ui::AnswerFigures figures = figures_of(message);
  if (under_way != nullptr && under_way->message_id == message.id) add_live_figures(*under_way, figures);
  return figures;
}

// None for an answer that is nothing but text. While it is under way, its parts are known with its time.
std::vector<ui::MessagePart> shown_parts(const AnswerUnderWay* under_way, const Message& message,
                                         bool is_final) {
  const bool is_read = under_way != nullptr && under_way->message_id == message.id && under_way->thinking;
  const std::vector<AnswerPart> parts =
      is_read ? under_way->thinking->parts() : answer_parts(message.content, is_final, beginning_of(message));
  const AnswerPart whole{PartKind::kAnswer, 0, message.content.size()};
  if (parts.empty() && message.content.empty()) return {};
  if (parts.empty()) return {ui::MessagePart{}};  // only the beginning of a mark
  if (parts.size() == 1 && parts.front() == whole) return {};
  std::vector<ui::MessagePart> shown;
  std::size_t num_thoughts = 0;
  for (const AnswerPart& part : parts) {
    ui::MessagePart& here = shown.emplace_back();
    here.begin = static_cast<std::uint32_t>(part.begin);
    here.end = static_cast<std::uint32_t>(part.end);
    here.thinking = part.kind == PartKind::kThinking;
    here.open = part.open;
    if (!here.thinking) continue;
    const std::vector<std::int64_t>& durations = message.thinking.durations_us;
    if (num_thoughts < durations.size() && durations[num_thoughts] > 0)
      here.duration_ms = static_cast<double>(durations[num_thoughts]) / 1000.0;
    ++num_thoughts;
  }
  return shown;
}

// All of a message that can change.
void show_message(const ChatRecord& record, const AnswerUnderWay* under_way, const Message& message,
                  ui::MessageState& shown) {
  const SiblingPosition position = record.chat.position_among_siblings(message.id);
  shown.sibling_index = position.index;
  shown.num_siblings = position.count;
  shown.offer = offer_of(message);
  shown.created_ms = message.created_ms;
  if (message.role != Role::kAssistant) return;
  const bool streaming = !message.finish_reason && !message.interrupted;
  if (shown.text.size() != message.content.size() || shown.streaming != streaming)
    shown.parts = shown_parts(under_way, message, /*is_final=*/!streaming);
  if (shown.text.size() < message.content.size()) shown.text.append(message.content, shown.text.size());
  shown.error = message.error;
  shown.figures = shown_figures(under_way, message);
  shown.streaming = streaming;
  shown.interrupted = message.interrupted;
  shown.repeats = streaming && under_way != nullptr && under_way->message_id == message.id &&
                  under_way->repetition.repeats();
  shown.edited = message.edited;
  shown.model = message.model;
}

void show_path(const ChatRecord& record, const AnswerUnderWay* under_way,
               std::vector<ui::MessageState>& shown) {
  const std::vector<MessageId> path = record.chat.active_path();
  shown.resize(path.size());
  for (std::size_t i = 0; i < path.size(); ++i) {
    const Message& message = *record.chat.find(path[i]);
    if (shown[i].id != message.id) shown[i] = new_message(message);
    show_message(record, under_way, message, shown[i]);
  }
}

// nullptr when it stands on another branch.
ui::MessageState* find_message(std::vector<ui::MessageState>& shown, MessageId id) {
  const auto found = std::find_if(shown.rbegin(), shown.rend(),
                                  [&](const ui::MessageState& message) { return message.id == id; });
  return found == shown.rend() ? nullptr : &*found;
}

void show_grown(const ChatRecord& record, const AnswerUnderWay* under_way,
                const std::vector<MessageId>& grown, std::vector<ui::MessageState>& shown) {
  for (const MessageId id : grown) {
    ui::MessageState* message = find_message(shown, id);
    if (message != nullptr) show_message(record, under_way, *record.chat.find(id), *message);
  }
}

// ---- what stands around them

void show_head(const ChatRecord& record, ui::ChatState& shown) {
  shown.title = title_of(record);
  shown.colour_index = static_cast<std::uint32_t>(record.id.value - 1);
  shown.system_prompt = record.chat.system_prompt;
  shown.sampling = record.chat.sampling;
  shown.pinned = record.pinned;
  shown.folder = record.folder;
  shown.loading = record.kept.loading;
  shown.context_policy = record.chat.context_policy;
  shown.template_values = record.chat.template_values;
  shown.draft = record.draft.text;
  shown.num_drafts_returned = record.draft.num_returned;
  shown.attachments.clear();
  for (const Attachment& attachment : record.draft.attachments) shown.attachments.push_back(attachment.shown);
  shown.updated_ms = record.kept.head.updated_ms;
  shown.model_path = record.model_path;
  shown.model_name = record.model_path.empty() ? std::string() : model_title(record.model_path, {});
  shown.queued.clear();
  for (const std::string& text : record.queued) shown.queued.emplace_back(split_attachments(text).text);
}

void show_activity(const ChatRecord& record, const Answers& answers, ui::ChatState& shown) {
  shown.context = record.context;
  shown.context.begin = record.chat.context_begin;
  shown.summarising = record.summary_under_way.has_value();
  const Message* first = record.chat.find(record.chat.context_begin);
  shown.summary = shown.summarising ? *record.summary_under_way
                  : first != nullptr && record.chat.context_policy == ContextPolicy::kSummarise
                      ? record.chat.summary_after(first->parent)
                      : std::string();
  shown.activity = shown.summarising                     ? ui::Activity::kGenerating
                   : record.planned || record.submitting ? ui::Activity::kWaiting
                   : record.failed                       ? ui::Activity::kFailed
                                                         : ui::Activity::kIdle;
  shown.tokens_per_second = 0;
  shown.num_ahead = 0;
  const AnswerUnderWay* answer = answer_of(record, answers);
  if (answer == nullptr) return;
  shown.activity = answer->admitted      ? ui::Activity::kGenerating
                   : answer->swapped_out ? ui::Activity::kSwapped
                                         : ui::Activity::kWaiting;
  if (const ui::MessageState* message = find_message(shown.messages, answer->message_id))
    shown.tokens_per_second = message->figures.tokens_per_second.value_or(0);
  if (shown.activity == ui::Activity::kWaiting) shown.num_ahead = answers.num_ahead(*record.answering);
}

void show_chat(const ChatRecord& record, const Answers& answers, const Undrawn& undrawn,
               ui::ChatState& shown) {
  const AnswerUnderWay* under_way = answer_of(record, answers);
  if (undrawn.messages) {
    show_path(record, under_way, shown.messages);
  } else {
    show_grown(record, under_way, undrawn.grown, shown.messages);
  }
  if (undrawn.head) show_head(record, shown);
  show_activity(record, answers, shown);
}

void show_trash(const Chats& chats, std::vector<ui::TrashedChat>& shown) {
  shown.clear();
  for (const auto& [id, record] : chats.all()) {
    if (record.trashed_ms) shown.push_back({id, title_of(record), *record.trashed_ms});
  }
  std::stable_sort(shown.begin(), shown.end(),
                   [](const auto& a, const auto& b) { return a.trashed_ms > b.trashed_ms; });
}

ui::ChatState* find_shown(std::vector<ui::ChatState>& shown, ChatId id) {
  const auto found =
      std::find_if(shown.begin(), shown.end(), [&](const ui::ChatState& chat) { return chat.id == id; });
  return found == shown.end() ? nullptr : &*found;
}

}  // namespace

bool ShownChats::show(Chats& chats, const Answers& answers, ui::UiState& state) {
  const bool list_changed = chats.take_list_changed();
  if (list_changed) {
    arrange(chats, state.chats);
    show_trash(chats, state.library.trash);
  }
  for (const auto& [id, undrawn] : chats.take_undrawn()) {
    ui::ChatState* shown = find_shown(state.chats, id);
    if (shown != nullptr) show_chat(*chats.find(id), answers, undrawn, *shown);
  }
  return list_changed;
}

// The drawn chats in the order of the list. What comes into the list has changed, and is drawn next.
void ShownChats::arrange(const Chats& chats, std::vector<ui::ChatState>& shown) {
  std::map<ChatId, ui::ChatState> before;
  for (ui::ChatState& chat : shown) before.emplace(chat.id, std::move(chat));
  shown.clear();
  for (const ChatId id : chats.list()) {
    auto known = before.extract(id);
    if (!known.empty()) {
      shown.push_back(std::move(known.mapped()));
      continue;
    }
    ui::ChatState& chat = shown.emplace_back();
    chat.id = id;
    if (auto memory = put_away_.extract(id); !memory.empty()) chat.memory = std::move(memory.mapped());
  }
  for (auto& [id, chat] : before) put_away_[id] = std::move(chat.memory);
  std::erase_if(put_away_, [&](const auto& entry) { return chats.find(entry.first) == nullptr; });
}

}  // namespace octavo::app
