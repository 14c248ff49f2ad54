#include "app/window/controller.h"

#include <algorithm>
#include <cstdio>
#include <utility>
#include <variant>

#include "engine/base/overloaded.h"
#include "engine/base/text.h"

namespace octavo::app {

namespace act = ui::actions;

namespace {

// After the last event the engine may still owe a snapshot; it is asked for this often before it is let be.
constexpr int kPollsAfterWork = 20;
const std::vector<TokenId> kNoTokenIds;

std::string stop_text(FinishReason reason, const StopReason& stop_reason) {
  switch (reason) {
    case FinishReason::kStop:
      if (const auto* text = std::get_if<std::string>(&stop_reason))
        return "stopped at " + escape_for_message(*text, 24);
      return "finished";
    case FinishReason::kLength: return "cut at its longest length";
    case FinishReason::kAbort: return "stopped";
    case FinishReason::kError: return "failed";
  }
  return {};
}

double milliseconds(std::int64_t us) { return static_cast<double>(us) / 1000.0; }

// Files that went with a question are shown beside its text: they may be a thousand times longer.
void show_content(const Message& message, ui::MessageState& shown) {
  if (message.role == Role::kAssistant) {
    shown.text = message.content;
    return;
  }
  const SplitMessage parts = split_attachments(message.content);
  shown.text = parts.text;
  for (const SplitMessage::File& file : parts.files)
    shown.attachments.push_back(
        {.name = std::string(file.name), .num_bytes = static_cast<std::int64_t>(file.text.size())});
}

}  // namespace

Controller::Controller(const Clock& clock, const Settings& settings)
    : clock_(clock), settings_(settings), comparison_(clock, state_.comparison) {
  memory_workspace_.name_others([this](RequestId request, std::int32_t output_index) {
    return comparison_.name_of(request, output_index);
  });
  state_.settings = settings.ui;
  picker_.set_recent(settings.recent_models);
}

void Controller::show_banner(ui::BannerKind kind, std::string text) {
  state_.banner = ui::Banner{kind, std::move(text)};
}

void Controller::apply(const act::ChatAction& action) {
  std::visit(Overloaded{
                 [&](const act::NewChat&) { new_chat(); },
                 [&](const act::SelectChat& a) {
                   if (shown_chat(a.chat_id) == nullptr) return;
                   show_chat(a.chat_id);
                 },
                 [&](const act::SelectNeighbour& a) { select_neighbour(a.offset); },
                 [&](const act::RenameChat& a) {
                   if (OpenChat* open_chat = find_chat(a.chat_id)) {
                     open_chat->chat.title = first_line(sanitise_utf8(a.title), 200);
                     show_title(a.chat_id);
                   }
                 },
                 [&](const act::DeleteChat& a) { delete_chat(a.chat_id); },
                 [&](const act::UndoDelete&) { undo_delete(); },
                 [&](const act::DismissUndo&) { dismiss_undo(); },
                 [&](const act::SendMessage& a) { send(a.chat_id, a.text); },
                 [&](const act::ChangeDraft& a) {
                   if (OpenChat* open_chat = find_chat(a.chat_id)) {
                     open_chat->draft = a.text;
                     if (ui::ChatState* shown = shown_chat(a.chat_id)) shown->draft = a.text;
                     count_context(a.chat_id);
                   }
                 },
                 [&](const act::RemoveQueued& a) {
                   OpenChat* open_chat = find_chat(a.chat_id);
                   if (open_chat == nullptr || a.index >= open_chat->queued.size()) return;
                   open_chat->queued.erase(open_chat->queued.begin() + static_cast<std::ptrdiff_t>(a.index));
                   show_queue(a.chat_id);
                 },
                 [&](const act::StopAnswer& a) {
                   stop(a.chat_id);
                   send_queued(a.chat_id);
                 },
                 [&](const act::Regenerate& a) { regenerate(a.chat_id, a.message_id); },
                 [&](const act::EditMessage& a) {
                   const OpenChat* open_chat = find_chat(a.chat_id);
                   const Message* message = open_chat ? open_chat->chat.find(a.message_id) : nullptr;
                   if (message == nullptr) return;
                   const MessageId parent = message->parent;
                   // The files that went with it go with it again.
                   const std::string text =
                       with_attachments(a.text, attached_files(split_attachments(message->content)));
                   stop(a.chat_id);
                   ask(a.chat_id, parent, text);
                 },
                 [&](const act::ShowSibling& a) {
                   OpenChat* open_chat = find_chat(a.chat_id);
                   if (open_chat == nullptr || open_chat->chat.find(a.message_id) == nullptr) return;
                   open_chat->chat.activate(open_chat->chat.sibling(a.message_id, a.offset));
                   show_messages(a.chat_id);
                   count_context(a.chat_id);
                 },
                 [&](const act::ChangeSystemPrompt& a) {
                   OpenChat* open_chat = find_chat(a.chat_id);
                   ui::ChatState* shown = shown_chat(a.chat_id);
                   if (open_chat == nullptr || shown == nullptr) return;
                   open_chat->chat.system_prompt = sanitise_utf8(a.text);
                   shown->system_prompt = open_chat->chat.system_prompt;
                   count_context(a.chat_id);
                 },
                 [&](const act::ChangeSampling& a) { change_sampling(a.chat_id, a.sampling); },
                 [&](const act::ShowSearch& a) { show_search(a.open); },
                 [&](const act::ContinueAnswer& a) { continue_answer(a.chat_id, a.message_id); },
                 [&](const act::RestoreChat& a) { restore_chat(a.chat_id); },
                 [&](const act::EraseChat& a) { erase_chat(a.chat_id); },
                 [&](const act::EmptyTrash&) { empty_trash(); },
                 [&](const act::PinChat& a) { pin_chat(a.chat_id, a.pinned); },
                 [&](const act::MoveChat& a) { move_chat(a.chat_id, a.before); },
                 [&](const act::CreateFolder& a) { create_folder(a.name); },
                 [&](const act::RenameFolder& a) { rename_folder(a.folder_id, a.name); },
                 [&](const act::DeleteFolder& a) { delete_folder(a.folder_id); },
                 [&](const act::MoveToFolder& a) { move_to_folder(a.chat_id, a.folder_id); },
                 [&](const act::SearchChats& a) { search_chats(a.query); },
                 [&](const act::ShowMessage& a) { show_message(a.chat_id, a.message_id); },
                 [&](const act::SavePreset& a) { save_preset(a.preset); },
                 [&](const act::ErasePreset& a) { erase_preset(a.preset_id); },
                 [&](const act::ApplyPreset& a) { apply_preset(a.chat_id, a.preset_id); },
                 [&](const act::ExportChat& a) { export_chat(a); },
                 [&](const act::ExportAllChats& a) { export_all_chats(a.path); },
                 [&](const act::ImportChats& a) { effects_.import_path = a.path; },
             },
             action);
  settle();
}

void Controller::apply(const act::CompareAction& action) {
  std::visit(
      Overloaded{
          [&](const act::OpenComparison& a) { open_comparison(a.chat_id, a.message_id); },
          [&](const act::TypeComparison& a) { type_comparison(a.text); },
          [&](const act::ChangeComparison& a) { comparison_.change_setup(a.setup); },
          [&](const act::RunComparison&) {
            attach_comparison();
            comparison_.run();
          },
          [&](const act::RunComparisonAgain&) {
            attach_comparison();
            comparison_.run_again();
          },
          [&](const act::StopComparison&) { comparison_.stop(); },
          [&](const act::ForkAtToken& a) { comparison_.fork(a.column_id, a.token_index, a.alternative); },
          [&](const act::KeepColumn& a) { keep_column(a.column_id); },
          [&](const act::KeepAllColumns&) { keep_all_columns(); },
          [&](const act::ContinueColumn& a) { continue_column(a.column_id); },
          [&](const act::ExportComparison& a) { export_comparison(a.format); },
      },
      action);
  settle();
}

void Controller::apply(const act::MemoryAction& action) {
  memory_workspace_.apply(action, state_);
  take_memory_effects();
  settle();
}

void Controller::apply(const act::ModelAction& action) {
  std::visit(Overloaded{
                 [&](const act::ContinueOnCpu&) {
                   state_.banner.reset();
                   effects_.continue_on_cpu = true;
                 },
                 [&](const act::LoadModel&) { effects_.load_model = true; },
                 [&](const act::CancelLoading&) {
                   effects_.cancel_loading = true;
                   picker_.show_cancelling();
                 },
                 [&](const act::OpenModelPicker&) { pick_model(action); },
                 [&](const act::OpenModelFile&) { pick_model(action); },
                 [&](const act::ModelPickerAction&) { pick_model(action); },
             },
             action);
  settle();
}

// What every action may have changed.
void Controller::settle() {
  keep_chats();
  show_tree();
}

// ---- chats

ChatId Controller::new_chat() {
  state_.workspace = ui::Workspace::kChat;
  // An empty chat at the top is what a new one would be.
  if (!state_.chats.empty() && state_.chats.front().messages.empty() &&
      chats_.at(state_.chats.front().id).chat.messages().empty() &&
      !chats_.at(state_.chats.front().id).kept.stored) {
    state_.active_chat = state_.chats.front().id;
    return state_.active_chat;
  }
  const ChatId id{next_chat_++};
  OpenChat& open_chat = chats_[id];
  open_chat.chat.sampling = settings_.sampling;
  open_chat.head = new_head(id);
  ui::ChatState shown;
  shown.id = id;
  shown.title = open_chat.chat.display_title();
  shown.colour_index = static_cast<std::uint32_t>(id.value - 1);
  shown.sampling = open_chat.chat.sampling;
  state_.chats.insert(state_.chats.begin(), std::move(shown));
  state_.active_chat = id;
  return id;
}

void Controller::select_neighbour(std::int32_t offset) {
  const auto count = static_cast<std::int32_t>(state_.chats.size());
  for (std::int32_t i = 0; i < count; ++i) {
    if (state_.chats[static_cast<std::size_t>(i)].id != state_.active_chat) continue;
    const std::int32_t next = ((i + offset) % count + count) % count;
    show_chat(state_.chats[static_cast<std::size_t>(next)].id);
    return;
  }
}

// ---- answers

void Controller::send(ChatId chat_id, const std::string& text) {
  OpenChat* open_chat = find_chat(chat_id);
  if (open_chat == nullptr || engine_ == nullptr) return;
  std::string message = take_draft(chat_id, text);
  if (open_chat->answering || open_chat->submitting || !open_chat->kept.loaded) {
    open_chat->queued.push_back(std::move(message));
    show_queue(chat_id);
    return;
  }
  ask(chat_id, open_chat->chat.active_leaf(), message);
}

void Controller::ask(ChatId chat_id, MessageId parent, const std::string& text) {
  OpenChat* open_chat = find_chat(chat_id);
  if (open_chat == nullptr) return;
  const MessageId question = open_chat->chat.append(parent, Role::kUser, sanitise_utf8(text));
  answer(chat_id, question);
  show_title(chat_id);
}

void Controller::answer(ChatId chat_id, MessageId question) {
  OpenChat* open_chat = find_chat(chat_id);
  if (open_chat == nullptr || engine_ == nullptr) return;
  Chat& chat = open_chat->chat;
  GenerationRequest request;
  request.prompt = ChatPrompt{chat.chat_messages(question)};
  request.sampling = chat.sampling;
  const MessageId message_id = chat.append(question, Role::kAssistant, {});
  chat.find(message_id)->model = state_.model.name;
  submit_when_saved(chat_id, message_id, std::move(request));
}

void Controller::regenerate(ChatId chat_id, MessageId message_id) {
  OpenChat* open_chat = find_chat(chat_id);
  const Message* message = open_chat != nullptr ? open_chat->chat.find(message_id) : nullptr;
  if (message == nullptr || message->role != Role::kAssistant) return;
  const MessageId question = message->parent;
  stop(chat_id);
  answer(chat_id, question);
}

void Controller::stop(ChatId chat_id) {
  const OpenChat* open_chat = find_chat(chat_id);
  if (open_chat != nullptr && open_chat->answering)
    answers_.at(*open_chat->answering).engine->cancel(*open_chat->answering);
  drop_submissions(chat_id);
}

void Controller::change_settings(const ui::SettingsState& settings) {
  state_.settings = settings;
  settings_.ui = settings;
  effects_.settings_changed = true;
}

void Controller::change_sampling(ChatId chat_id, const SamplingParams& sampling) {
  OpenChat* open_chat = find_chat(chat_id);
  ui::ChatState* shown = shown_chat(chat_id);
  if (open_chat == nullptr || shown == nullptr) return;
  open_chat->chat.sampling = sampling;
  shown->sampling = sampling;
  settings_.sampling = sampling;
  settings_.sampling.seed.reset();  // a seed belongs to one chat
  effects_.settings_changed = true;
}

Settings Controller::settings() const {
  Settings settings = settings_;
  settings.recent_models = picker_.recent();
  return settings;
}

// ---- events

bool Controller::poll_engine() {
  const bool moved = memory_workspace_.tick(clock_.now_us(), state_);
  if (moved) take_memory_effects();
  if (engine_ == nullptr) return moved;
  const bool heard = poll_retired();
  const auto events = engine_->poll(std::chrono::microseconds(0));
  for (const EngineEvent& event : events) take_event(event);
  if (heard || !events.empty()) show_activity();
  comparison_.finish_poll();
  show_running();
  if (!events.empty() || busy()) polls_left_ = kPollsAfterWork;
  const bool reported = fold_reports();
  if (!events.empty()) show_tree();
  return moved || heard || !events.empty() || reported;
}

bool Controller::fold_reports() {
  if (polls_left_ == 0) return false;
  --polls_left_;
  const auto snapshot = engine_->kv_snapshot();
  const auto trace = engine_->trace_since(step_mark_, event_mark_);
  step_mark_ = trace.next_step_mark;
  event_mark_ = trace.next_event_mark;
  if (!trace.steps.empty()) newest_step_ = trace.steps.back().step;
  const bool fresh = snapshot != nullptr && snapshot != state_.memory.snapshot;
  if (fresh) memory_.learn_sequences(*snapshot, [this](RequestId id) { return chat_of(id); });
  memory_.fold_trace(trace);
  if (comparison_engine_ == engine_) comparison_.fold_trace(trace);
  if (fresh && comparison_engine_ == engine_) comparison_.fold_snapshot(*snapshot);
  if (fresh) memory_.fold_snapshot(snapshot, state_);
  memory_workspace_.fold(
      trace, fresh ? snapshot : nullptr, [this](RequestId id) { return chat_of(id); }, state_);
  const bool up_to_date = state_.memory.snapshot != nullptr && state_.memory.snapshot->step >= newest_step_;
  if (up_to_date && !busy()) polls_left_ = 0;
  return fresh || !trace.steps.empty() || !trace.block_events.empty();
}

std::optional<ChatId> Controller::chat_of(RequestId request_id) const {
  const auto found = request_chats_.find(request_id);
  if (found == request_chats_.end()) return std::nullopt;
  return found->second;
}

// Which bytes of which message the tokens of a prompt are.
void Controller::note_prompt(RequestId request_id, ChatId chat_id, MessageId answer) {
  const Chat& chat = find_chat(chat_id)->chat;
  std::vector<PromptMessage> path;
  const Message* message = chat.find(answer);
  while (message != nullptr) {
    message = chat.find(message->parent);
    if (message != nullptr) path.insert(path.begin(), {message->id, message->content});
  }
  memory_workspace_.tokens().begin(request_id, chat_id, std::move(path), answer);
}

void Controller::take_memory_effects() {
  MemoryEffects effects = memory_workspace_.take_effects();
  if (effects.problem) show_banner(ui::BannerKind::kError, *effects.problem);
  if (effects.notice) show_banner(ui::BannerKind::kNotice, *effects.notice);
  if (effects.picture) effects_.picture = std::move(effects.picture);
  if (effects.changes_watched_block && engine_ != nullptr) engine_->watch_block(effects.watched_block);
}

void Controller::fold(const EngineEvent& event) {
  take_event(event);
  show_activity();
}

void Controller::take_event(const EngineEvent& event) {
  const auto* failed = std::get_if<RequestFailed>(&event);
  if (failed != nullptr && failed->error.code == ErrorCode::kDeviceLost) offer_cpu(failed->error);
  if (comparison_.fold(event)) return;
  std::visit([this](const auto& e) { fold_event(e); }, event);
}

void Controller::fold_event(const RequestAccepted& event) {
  const auto found = answers_.find(event.request_id);
  if (found == answers_.end()) return;
  Answer& answer = found->second;
  memory_workspace_.tokens().accept(event.request_id, event.prompt_token_ids);
  answer.num_prompt_tokens = static_cast<std::int32_t>(event.prompt_token_ids.size());
  if (OpenChat* open_chat = find_chat(answer.chat_id)) {
    Message& message = *open_chat->chat.find(answer.message_id);
    message.seed = event.seed;
    keeper_.keep_message(open_chat->kept, message);
  }
  show_answer_figures(answer);
}

void Controller::fold_event(const RequestAdmitted& event) {
  const auto found = answers_.find(event.request_id);
  if (found == answers_.end()) return;
  found->second.admitted = true;
  found->second.num_cached_tokens = event.num_cached_tokens;
  show_answer_figures(found->second);
}

void Controller::fold_event(const TokensGenerated& event) {
  const auto found = answers_.find(event.request_id);
  if (found == answers_.end()) return;
  Answer& answer = found->second;
  answer.admitted = true;
  answer.swapped_out = false;
  answer.newest_token_us = clock_.now_us();
  if (answer.num_tokens == 0) answer.first_token_us = answer.newest_token_us;
  memory_workspace_.tokens().generate(event.request_id, event.output_index, event.token_ids, event.text);
  answer.num_tokens += static_cast<std::int32_t>(event.token_ids.size());
  OpenChat* open_chat = find_chat(answer.chat_id);
  if (open_chat == nullptr) return;
  Message& message = *open_chat->chat.find(answer.message_id);
  const std::vector<TokenId>& token_ids = answer.keeps_token_ids ? event.token_ids : kNoTokenIds;
  keeper_.keep_growth(open_chat->kept, message, event.text, token_ids);
  message.content += event.text;
  message.token_ids.insert(message.token_ids.end(), token_ids.begin(), token_ids.end());
  if (ui::MessageState* shown = shown_message(answer.chat_id, answer.message_id)) shown->text += event.text;
  show_answer_figures(answer);
  show_context(answer.chat_id, answer.num_prompt_tokens + answer.num_tokens);
}

void Controller::fold_event(const RequestPreempted& event) {
  const auto found = answers_.find(event.request_id);
  if (found == answers_.end()) return;
  found->second.admitted = false;
  found->second.swapped_out = event.num_tokens_dropped == 0;
}

void Controller::fold_event(const OutputFinished& event) {
  const auto found = answers_.find(event.request_id);
  if (found == answers_.end()) return;
  found->second.stop_reason = event.stop_reason;
  if (OpenChat* open_chat = find_chat(found->second.chat_id)) {
    open_chat->chat.find(found->second.message_id)->finish_reason = event.finish_reason;
  }
}

void Controller::fold_event(const RequestFinished& event) { finish(event.request_id, event.metrics, {}); }

void Controller::fold_event(const RequestFailed& event) {
  finish(event.request_id, event.metrics, sanitise_utf8(event.error.message));
}

void Controller::finish(RequestId request_id, const RequestMetrics& metrics, const std::string& error) {
  const auto found = answers_.find(request_id);
  if (found == answers_.end()) return;
  const Answer answer = found->second;
  answers_.erase(found);
  OpenChat* open_chat = find_chat(answer.chat_id);
  if (open_chat == nullptr) return;
  Message& message = *open_chat->chat.find(answer.message_id);
  if (!error.empty()) message.finish_reason = FinishReason::kError;
  if (!message.finish_reason) message.finish_reason = FinishReason::kAbort;
  message.error = error;
  message.metrics = AnswerMetrics{answer.num_prompt_tokens, answer.num_cached_tokens, metrics};
  drop_end_token(answer, message);
  keeper_.keep_message(open_chat->kept, message);
  if (ui::MessageState* shown = shown_message(answer.chat_id, answer.message_id)) {
    *shown = message_state(*open_chat, message);
    shown->figures.stop_reason = stop_text(*message.finish_reason, answer.stop_reason);
  }
  const bool current = open_chat->answering == request_id;
  if (current) {
    open_chat->answering.reset();
    open_chat->failed = !error.empty();
    if (ui::MessageState* shown = shown_message(answer.chat_id, answer.message_id)) shown->streaming = false;
  }
  count_context(answer.chat_id);
  if (current) send_queued(answer.chat_id);
}

// The next turn uses the ids again only if they are exactly the text.
void Controller::drop_end_token(const Answer& answer, Message& message) const {
  if (message.token_ids.empty() || message.finish_reason != FinishReason::kStop) return;
  if (std::holds_alternative<std::string>(answer.stop_reason)) {
    message.token_ids.clear();
    return;
  }
  const TokenId last = message.token_ids.back();
  const bool stop_token =
      std::holds_alternative<TokenId>(answer.stop_reason) && std::get<TokenId>(answer.stop_reason) == last;
  if (stop_token || answer.engine->tokenizer().is_end_of_sequence(last)) message.token_ids.pop_back();
}

void Controller::fold_token_count(ChatId chat_id, std::int32_t num_tokens) {
  const OpenChat* open_chat = find_chat(chat_id);
  if (open_chat != nullptr && !open_chat->answering) show_context(chat_id, num_tokens);
}

// ---- what is shown

Controller::OpenChat* Controller::find_chat(ChatId chat_id) {
  const auto found = chats_.find(chat_id);
  return found == chats_.end() ? nullptr : &found->second;
}

ui::ChatState* Controller::shown_chat(ChatId chat_id) {
  for (ui::ChatState& shown : state_.chats) {
    if (shown.id == chat_id) return &shown;
  }
  return nullptr;
}

ui::MessageState* Controller::shown_message(ChatId chat_id, MessageId message_id) {
  ui::ChatState* shown = shown_chat(chat_id);
  if (shown == nullptr) return nullptr;
  const auto found = std::find_if(shown->messages.rbegin(), shown->messages.rend(),
                                  [&](const ui::MessageState& message) { return message.id == message_id; });
  return found == shown->messages.rend() ? nullptr : &*found;
}

const Chat* Controller::chat(ChatId chat_id) const {
  const auto found = chats_.find(chat_id);
  return found == chats_.end() ? nullptr : &found->second.chat;
}

ui::AnswerFigures Controller::figures_of(const Message& message) const {
  ui::AnswerFigures figures;
  figures.seed = message.seed;
  if (message.finish_reason) figures.stop_reason = stop_text(*message.finish_reason, {});
  if (!message.metrics) return figures;
  const AnswerMetrics& metrics = *message.metrics;
  if (metrics.request.tpot_us > 0)
    figures.tokens_per_second = 1e6 / static_cast<double>(metrics.request.tpot_us);
  if (metrics.request.ttft_us > 0) figures.first_token_ms = milliseconds(metrics.request.ttft_us);
  if (metrics.num_prompt_tokens > 0) {
    figures.num_prompt_tokens = metrics.num_prompt_tokens;
    figures.num_cached_tokens = metrics.num_cached_tokens;
  }
  return figures;
}

ui::MessageState Controller::message_state(const OpenChat& open_chat, const Message& message) const {
  const SiblingPosition position = open_chat.chat.position_among_siblings(message.id);
  ui::MessageState shown;
  shown.id = message.id;
  shown.role = message.role;
  show_content(message, shown);
  shown.sibling_index = position.index;
  shown.num_siblings = position.count;
  shown.error = message.error;
  if (message.role == Role::kAssistant) shown.figures = figures_of(message);
  shown.streaming = message.role == Role::kAssistant && !message.finish_reason && !message.interrupted;
  shown.interrupted = message.interrupted;
  shown.model = message.model;
  return shown;
}

void Controller::show_messages(ChatId chat_id) {
  const OpenChat* open_chat = find_chat(chat_id);
  ui::ChatState* shown = shown_chat(chat_id);
  if (open_chat == nullptr || shown == nullptr) return;
  shown->messages.clear();
  for (const MessageId id : open_chat->chat.active_path()) {
    shown->messages.push_back(message_state(*open_chat, *open_chat->chat.find(id)));
  }
  if (open_chat->answering) show_answer_figures(answers_.at(*open_chat->answering));
}

void Controller::show_title(ChatId chat_id) {
  const OpenChat* open_chat = find_chat(chat_id);
  ui::ChatState* shown = shown_chat(chat_id);
  if (open_chat != nullptr && shown != nullptr) shown->title = title_of(*open_chat);
}

void Controller::show_queue(ChatId chat_id) {
  const OpenChat* open_chat = find_chat(chat_id);
  ui::ChatState* shown = shown_chat(chat_id);
  if (open_chat == nullptr || shown == nullptr) return;
  shown->queued.clear();
  for (const std::string& text : open_chat->queued) shown->queued.emplace_back(split_attachments(text).text);
}

void Controller::show_answer_figures(const Answer& answer) {
  ui::MessageState* shown = shown_message(answer.chat_id, answer.message_id);
  OpenChat* open_chat = find_chat(answer.chat_id);
  if (shown == nullptr || open_chat == nullptr) return;
  ui::AnswerFigures& figures = shown->figures;
  figures.seed = open_chat->chat.find(answer.message_id)->seed;
  if (answer.num_prompt_tokens > 0) figures.num_prompt_tokens = answer.num_prompt_tokens;
  if (answer.admitted) figures.num_cached_tokens = answer.num_cached_tokens;
  if (answer.num_tokens > 0)
    figures.first_token_ms = milliseconds(answer.first_token_us - answer.submitted_us);
  const std::int64_t elapsed = answer.newest_token_us - answer.first_token_us;
  if (answer.num_tokens > 1 && elapsed > 0) {
    figures.tokens_per_second =
        static_cast<double>(answer.num_tokens - 1) * 1e6 / static_cast<double>(elapsed);
  }
}

void Controller::show_activity() {
  for (ui::ChatState& shown : state_.chats) {
    const OpenChat& open_chat = chats_.at(shown.id);
    shown.activity = open_chat.failed ? ui::Activity::kFailed : ui::Activity::kIdle;
    shown.tokens_per_second = 0;
    shown.num_ahead = 0;
    if (open_chat.submitting) shown.activity = ui::Activity::kWaiting;
    if (!open_chat.answering) continue;
    const Answer& answer = answers_.at(*open_chat.answering);
    shown.activity = answer.admitted      ? ui::Activity::kGenerating
                     : answer.swapped_out ? ui::Activity::kSwapped
                                          : ui::Activity::kWaiting;
    if (const ui::MessageState* message = shown_message(shown.id, answer.message_id)) {
      shown.tokens_per_second = message->figures.tokens_per_second.value_or(0);
    }
    if (answer.admitted || answer.swapped_out) continue;
    shown.num_ahead = static_cast<std::int32_t>(
        std::count_if(answers_.begin(), answers_.find(*open_chat.answering), [&answer](const auto& entry) {
          return !entry.second.admitted && entry.second.engine == answer.engine;
        }));
  }
}

void Controller::show_context(ChatId chat_id, std::int32_t num_tokens) {
  ui::ChatState* shown = shown_chat(chat_id);
  if (shown == nullptr) return;
  const std::int32_t block_size = std::max(1, state_.model.block_size);
  shown->context = {num_tokens, (num_tokens + block_size - 1) / block_size};
}

void Controller::count_context(ChatId chat_id) {
  const OpenChat* open_chat = find_chat(chat_id);
  if (open_chat == nullptr || open_chat->answering || open_chat->submitting || !count_tokens_) return;
  std::vector<ChatMessage> messages = open_chat->chat.chat_messages(open_chat->chat.active_leaf());
  if (std::string draft = composed_draft(*open_chat); !draft.empty())
    messages.push_back({Role::kUser, std::move(draft)});
  if (messages.empty()) return show_context(chat_id, 0);
  count_tokens_(chat_id, std::move(messages));
}

}  // namespace octavo::app
