#include "app/window/controller.h"

#include <algorithm>
#include <cstdio>
#include <utility>
#include <variant>

#include "engine/base/text.h"

namespace octavo::app {
namespace {

// After the last event the engine may still owe a snapshot; it is asked for this often before it is let be.
constexpr int kPollsAfterWork = 20;
const std::vector<TokenId> kNoTokenIds;

template <class... Handlers>
struct Overloaded : Handlers... {
  using Handlers::operator()...;
};
template <class... Handlers>
Overloaded(Handlers...) -> Overloaded<Handlers...>;

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
  const SequenceNamer name_of = [this](RequestId request, std::int32_t output_index) {
    return comparison_.name_of(request, output_index);
  };
  memory_.name_others(name_of);
  inspector_.name_others(name_of);
  state_.settings = settings.ui;
  picker_.set_recent(settings.recent_models);
}

void Controller::show_banner(ui::BannerKind kind, std::string text) {
  state_.banner = ui::Banner{kind, std::move(text)};
}

void Controller::apply(const ui::Action& action) {
  namespace act = ui::actions;
  std::visit(
      Overloaded{
          [&](const act::ShowWorkspace& a) {
            state_.workspace = a.workspace;
            state_.inspector.hover = {};  // what was pointed at is not there any more
            if (a.workspace == ui::Workspace::kCompare) show_comparison();
            if (a.workspace == ui::Workspace::kMemory) inspector_.refresh(state_);
          },
          [&](const act::NewSession&) { new_session(); },
          [&](const act::SelectSession& a) {
            if (shown_session(a.session_id) == nullptr) return;
            show_session(a.session_id);
          },
          [&](const act::SelectNeighbour& a) { select_neighbour(a.offset); },
          [&](const act::RenameSession& a) {
            if (Session* session = find_session(a.session_id)) {
              session->conversation.title = first_line(sanitise_utf8(a.title), 200);
              show_title(a.session_id);
            }
          },
          [&](const act::DeleteSession& a) { delete_session(a.session_id); },
          [&](const act::UndoDelete&) { undo_delete(); },
          [&](const act::DismissUndo&) { dismiss_undo(); },
          [&](const act::SendMessage& a) { send(a.session_id, a.text); },
          [&](const act::ChangeDraft& a) {
            if (Session* session = find_session(a.session_id)) {
              session->draft = a.text;
              if (ui::SessionState* shown = shown_session(a.session_id)) shown->draft = a.text;
              count_context(a.session_id);
            }
          },
          [&](const act::RemoveQueued& a) {
            Session* session = find_session(a.session_id);
            if (session == nullptr || a.index >= session->queued.size()) return;
            session->queued.erase(session->queued.begin() + static_cast<std::ptrdiff_t>(a.index));
            show_queue(a.session_id);
          },
          [&](const act::StopAnswer& a) {
            stop(a.session_id);
            send_queued(a.session_id);
          },
          [&](const act::Regenerate& a) { regenerate(a.session_id, MessageId{a.message_id}); },
          [&](const act::EditMessage& a) {
            const Session* session = find_session(a.session_id);
            const Message* message = session ? session->conversation.find(MessageId{a.message_id}) : nullptr;
            if (message == nullptr) return;
            const MessageId parent = message->parent;
            // The files that went with it go with it again.
            const std::string text =
                with_attachments(a.text, attached_files(split_attachments(message->content)));
            stop(a.session_id);
            ask(a.session_id, parent, text);
          },
          [&](const act::ShowSibling& a) {
            Session* session = find_session(a.session_id);
            if (session == nullptr || session->conversation.find(MessageId{a.message_id}) == nullptr) return;
            session->conversation.activate(session->conversation.sibling(MessageId{a.message_id}, a.offset));
            show_messages(a.session_id);
            count_context(a.session_id);
          },
          [&](const act::CopyText& a) { effects_.clipboard = a.text; },
          [&](const act::OpenLink& a) { effects_.open_link = a.address; },
          [&](const act::ChangeSystemPrompt& a) {
            Session* session = find_session(a.session_id);
            ui::SessionState* shown = shown_session(a.session_id);
            if (session == nullptr || shown == nullptr) return;
            session->conversation.system_prompt = sanitise_utf8(a.text);
            shown->system_prompt = session->conversation.system_prompt;
            count_context(a.session_id);
          },
          [&](const act::ChangeSampling& a) { change_sampling(a.session_id, a.sampling); },
          [&](const act::ShowSampling& a) { state_.sampling_open = a.open; },
          [&](const act::ShowSettings& a) { state_.settings_open = a.open; },
          [&](const act::ShowPalette& a) { state_.palette_open = a.open; },
          [&](const act::ShowSearch& a) { show_search(a.open); },
          [&](const act::ChangeSettings& a) { change_settings(a.settings); },
          [&](const act::Inspect& a) {
            inspector_.apply(a.action, state_);
            take_inspector_effects();
          },
          [&](const act::DismissBanner&) { state_.banner.reset(); },
          [&](const act::ContinueOnCpu&) {
            state_.banner.reset();
            effects_.continue_on_cpu = true;
          },
          [&](const act::LoadModel&) { effects_.load_model = true; },
          [&](const act::CancelLoading&) {
            effects_.cancel_loading = true;
            picker_.show_cancelling();
          },
          [&](const act::OpenComparison& a) {
            open_comparison(ui::SessionId{a.session_id}, MessageId{a.message_id});
          },
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
          [&](const act::ContinueAnswer& a) { continue_answer(a.session_id, MessageId{a.message_id}); },
          [&](const act::RestoreSession& a) { restore_session(a.session_id); },
          [&](const act::EraseSession& a) { erase_session(a.session_id); },
          [&](const act::EmptyTrash&) { empty_trash(); },
          [&](const act::PinSession& a) { pin_session(a.session_id, a.pinned); },
          [&](const act::MoveSession& a) { move_session(a.session_id, a.before); },
          [&](const act::CreateFolder& a) { create_folder(a.name); },
          [&](const act::RenameFolder& a) { rename_folder(a.folder_id, a.name); },
          [&](const act::DeleteFolder& a) { delete_folder(a.folder_id); },
          [&](const act::MoveToFolder& a) { move_to_folder(a.session_id, a.folder_id); },
          [&](const act::SearchChats& a) { search_chats(a.query); },
          [&](const act::ShowMessage& a) { show_message(a.session_id, MessageId{a.message_id}); },
          [&](const act::SavePreset& a) { save_preset(a.preset); },
          [&](const act::ErasePreset& a) { erase_preset(a.preset_id); },
          [&](const act::ApplyPreset& a) { apply_preset(a.session_id, a.preset_id); },
          [&](const act::ExportSession& a) { export_session(a); },
          [&](const act::ExportAllSessions& a) { export_all_sessions(a.path); },
          [&](const act::ImportChats& a) { effects_.import_path = a.path; },
          [&](const act::Desktop& a) { apply(a.action); },
          [&](const act::OpenModelPicker&) { pick_model(action); },
          [&](const act::OpenModelFile&) { pick_model(action); },
          [&](const act::PickModel&) { pick_model(action); },
      },
      action);
  keep_chats();
  show_tree();
}

// ---- chats

ui::SessionId Controller::new_session() {
  state_.workspace = ui::Workspace::kChat;
  // An empty chat at the top is what a new one would be.
  if (!state_.sessions.empty() && state_.sessions.front().messages.empty() &&
      sessions_.at(state_.sessions.front().id).conversation.messages().empty() &&
      !sessions_.at(state_.sessions.front().id).kept.stored) {
    state_.active_session = state_.sessions.front().id;
    return state_.active_session;
  }
  const ui::SessionId id{next_session_++};
  Session& session = sessions_[id];
  session.conversation.sampling = settings_.sampling;
  session.head = new_head(id);
  ui::SessionState shown;
  shown.id = id;
  shown.title = session.conversation.display_title();
  shown.colour_index = static_cast<std::uint32_t>(id.value - 1);
  shown.sampling = session.conversation.sampling;
  state_.sessions.insert(state_.sessions.begin(), std::move(shown));
  state_.active_session = id;
  return id;
}

void Controller::select_neighbour(std::int32_t offset) {
  const auto count = static_cast<std::int32_t>(state_.sessions.size());
  for (std::int32_t i = 0; i < count; ++i) {
    if (state_.sessions[static_cast<std::size_t>(i)].id != state_.active_session) continue;
    const std::int32_t next = ((i + offset) % count + count) % count;
    show_session(state_.sessions[static_cast<std::size_t>(next)].id);
    return;
  }
}

// ---- answers

void Controller::send(ui::SessionId session_id, const std::string& text) {
  Session* session = find_session(session_id);
  if (session == nullptr || engine_ == nullptr) return;
  std::string message = take_draft(session_id, text);
  if (session->answering || session->submitting || !session->kept.loaded) {
    session->queued.push_back(std::move(message));
    show_queue(session_id);
    return;
  }
  ask(session_id, session->conversation.active_leaf(), message);
}

void Controller::ask(ui::SessionId session_id, MessageId parent, const std::string& text) {
  Session* session = find_session(session_id);
  if (session == nullptr) return;
  const MessageId question = session->conversation.append(parent, Role::kUser, sanitise_utf8(text));
  answer(session_id, question);
  show_title(session_id);
}

void Controller::answer(ui::SessionId session_id, MessageId question) {
  Session* session = find_session(session_id);
  if (session == nullptr || engine_ == nullptr) return;
  Conversation& conversation = session->conversation;
  GenerationRequest request;
  request.prompt = ChatPrompt{conversation.chat_messages(question)};
  request.sampling = conversation.sampling;
  const MessageId message_id = conversation.append(question, Role::kAssistant, {});
  conversation.find(message_id)->model = state_.model.name;
  submit_when_saved(session_id, message_id, std::move(request));
}

void Controller::regenerate(ui::SessionId session_id, MessageId message_id) {
  Session* session = find_session(session_id);
  const Message* message = session != nullptr ? session->conversation.find(message_id) : nullptr;
  if (message == nullptr || message->role != Role::kAssistant) return;
  const MessageId question = message->parent;
  stop(session_id);
  answer(session_id, question);
}

void Controller::stop(ui::SessionId session_id) {
  const Session* session = find_session(session_id);
  if (session != nullptr && session->answering)
    answers_.at(*session->answering).engine->cancel(*session->answering);
  drop_submissions(session_id);
}

void Controller::change_settings(const ui::SettingsState& settings) {
  state_.settings = settings;
  settings_.ui = settings;
  effects_.settings_changed = true;
}

void Controller::change_sampling(ui::SessionId session_id, const SamplingParams& sampling) {
  Session* session = find_session(session_id);
  ui::SessionState* shown = shown_session(session_id);
  if (session == nullptr || shown == nullptr) return;
  session->conversation.sampling = sampling;
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
  const bool moved = inspector_.tick(clock_.now_us(), state_);
  if (moved) take_inspector_effects();
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
  if (fresh) memory_.learn_sequences(*snapshot, [this](RequestId id) { return session_of(id); });
  memory_.fold_trace(trace, state_);
  if (comparison_engine_ == engine_) comparison_.fold_trace(trace);
  if (fresh && comparison_engine_ == engine_) comparison_.fold_snapshot(*snapshot);
  if (fresh) memory_.fold_snapshot(snapshot, state_);
  inspector_.fold(
      trace, fresh ? snapshot : nullptr, [this](RequestId id) { return session_of(id); },
      [this](std::uint64_t mark) { return engine_->state_at(mark); }, state_);
  const bool up_to_date = state_.memory.snapshot != nullptr && state_.memory.snapshot->step >= newest_step_;
  if (up_to_date && !busy()) polls_left_ = 0;
  return fresh || !trace.steps.empty() || !trace.block_events.empty();
}

std::optional<ui::SessionId> Controller::session_of(RequestId request_id) const {
  const auto found = request_sessions_.find(request_id);
  if (found == request_sessions_.end()) return std::nullopt;
  return found->second;
}

// Which bytes of which message the tokens of a prompt are.
void Controller::note_prompt(RequestId request_id, ui::SessionId session_id, MessageId answer) {
  const Conversation& conversation = find_session(session_id)->conversation;
  std::vector<PromptMessage> path;
  const Message* message = conversation.find(answer);
  while (message != nullptr) {
    message = conversation.find(message->parent);
    if (message != nullptr) path.insert(path.begin(), {message->id.value, message->content});
  }
  inspector_.tokens().begin(request_id, session_id, std::move(path), answer.value);
}

void Controller::take_inspector_effects() {
  InspectorEffects effects = inspector_.take_effects();
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
  inspector_.tokens().accept(event.request_id, event.prompt_token_ids);
  answer.num_prompt_tokens = static_cast<std::int32_t>(event.prompt_token_ids.size());
  if (Session* session = find_session(answer.session_id)) {
    Message& message = *session->conversation.find(answer.message_id);
    message.seed = event.seed;
    keeper_.keep_message(session->kept, message);
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
  inspector_.tokens().generate(event.request_id, event.output_index, event.token_ids, event.text);
  answer.num_tokens += static_cast<std::int32_t>(event.token_ids.size());
  Session* session = find_session(answer.session_id);
  if (session == nullptr) return;
  Message& message = *session->conversation.find(answer.message_id);
  const std::vector<TokenId>& token_ids = answer.keeps_token_ids ? event.token_ids : kNoTokenIds;
  keeper_.keep_growth(session->kept, message, event.text, token_ids);
  message.content += event.text;
  message.token_ids.insert(message.token_ids.end(), token_ids.begin(), token_ids.end());
  if (ui::MessageState* shown = shown_message(answer.session_id, answer.message_id))
    shown->text += event.text;
  show_answer_figures(answer);
  show_context(answer.session_id, answer.num_prompt_tokens + answer.num_tokens);
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
  if (Session* session = find_session(found->second.session_id)) {
    session->conversation.find(found->second.message_id)->finish_reason = event.finish_reason;
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
  Session* session = find_session(answer.session_id);
  if (session == nullptr) return;
  Message& message = *session->conversation.find(answer.message_id);
  if (!error.empty()) message.finish_reason = FinishReason::kError;
  if (!message.finish_reason) message.finish_reason = FinishReason::kAbort;
  message.error = error;
  message.metrics = AnswerMetrics{answer.num_prompt_tokens, answer.num_cached_tokens, metrics};
  drop_end_token(answer, message);
  keeper_.keep_message(session->kept, message);
  if (ui::MessageState* shown = shown_message(answer.session_id, answer.message_id)) {
    *shown = message_state(*session, message);
    shown->figures.stop_reason = stop_text(*message.finish_reason, answer.stop_reason);
  }
  const bool current = session->answering == request_id;
  if (current) {
    session->answering.reset();
    session->failed = !error.empty();
    if (ui::MessageState* shown = shown_message(answer.session_id, answer.message_id))
      shown->streaming = false;
  }
  count_context(answer.session_id);
  if (current) send_queued(answer.session_id);
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

void Controller::fold_token_count(ui::SessionId session_id, std::int32_t num_tokens) {
  const Session* session = find_session(session_id);
  if (session != nullptr && !session->answering) show_context(session_id, num_tokens);
}

// ---- what is shown

Controller::Session* Controller::find_session(ui::SessionId session_id) {
  const auto found = sessions_.find(session_id);
  return found == sessions_.end() ? nullptr : &found->second;
}

ui::SessionState* Controller::shown_session(ui::SessionId session_id) {
  for (ui::SessionState& shown : state_.sessions) {
    if (shown.id == session_id) return &shown;
  }
  return nullptr;
}

ui::MessageState* Controller::shown_message(ui::SessionId session_id, MessageId message_id) {
  ui::SessionState* shown = shown_session(session_id);
  if (shown == nullptr) return nullptr;
  const auto found =
      std::find_if(shown->messages.rbegin(), shown->messages.rend(),
                   [&](const ui::MessageState& message) { return message.id == message_id.value; });
  return found == shown->messages.rend() ? nullptr : &*found;
}

const Conversation* Controller::conversation(ui::SessionId session_id) const {
  const auto found = sessions_.find(session_id);
  return found == sessions_.end() ? nullptr : &found->second.conversation;
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

ui::MessageState Controller::message_state(const Session& session, const Message& message) const {
  const SiblingPosition position = session.conversation.position_among_siblings(message.id);
  ui::MessageState shown;
  shown.id = message.id.value;
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

void Controller::show_messages(ui::SessionId session_id) {
  const Session* session = find_session(session_id);
  ui::SessionState* shown = shown_session(session_id);
  if (session == nullptr || shown == nullptr) return;
  shown->messages.clear();
  for (const MessageId id : session->conversation.active_path()) {
    shown->messages.push_back(message_state(*session, *session->conversation.find(id)));
  }
  if (session->answering) show_answer_figures(answers_.at(*session->answering));
}

void Controller::show_title(ui::SessionId session_id) {
  const Session* session = find_session(session_id);
  ui::SessionState* shown = shown_session(session_id);
  if (session != nullptr && shown != nullptr) shown->title = title_of(*session);
}

void Controller::show_queue(ui::SessionId session_id) {
  const Session* session = find_session(session_id);
  ui::SessionState* shown = shown_session(session_id);
  if (session == nullptr || shown == nullptr) return;
  shown->queued.clear();
  for (const std::string& text : session->queued) shown->queued.emplace_back(split_attachments(text).text);
}

void Controller::show_answer_figures(const Answer& answer) {
  ui::MessageState* shown = shown_message(answer.session_id, answer.message_id);
  Session* session = find_session(answer.session_id);
  if (shown == nullptr || session == nullptr) return;
  ui::AnswerFigures& figures = shown->figures;
  figures.seed = session->conversation.find(answer.message_id)->seed;
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
  for (ui::SessionState& shown : state_.sessions) {
    const Session& session = sessions_.at(shown.id);
    shown.activity = session.failed ? ui::Activity::kFailed : ui::Activity::kIdle;
    shown.tokens_per_second = 0;
    shown.num_ahead = 0;
    if (session.submitting) shown.activity = ui::Activity::kWaiting;
    if (!session.answering) continue;
    const Answer& answer = answers_.at(*session.answering);
    shown.activity = answer.admitted      ? ui::Activity::kGenerating
                     : answer.swapped_out ? ui::Activity::kSwapped
                                          : ui::Activity::kWaiting;
    if (const ui::MessageState* message = shown_message(shown.id, answer.message_id)) {
      shown.tokens_per_second = message->figures.tokens_per_second.value_or(0);
    }
    if (answer.admitted || answer.swapped_out) continue;
    shown.num_ahead = static_cast<std::int32_t>(
        std::count_if(answers_.begin(), answers_.find(*session.answering), [&answer](const auto& entry) {
          return !entry.second.admitted && entry.second.engine == answer.engine;
        }));
  }
}

void Controller::show_context(ui::SessionId session_id, std::int32_t num_tokens) {
  ui::SessionState* shown = shown_session(session_id);
  if (shown == nullptr) return;
  const std::int32_t block_size = std::max(1, state_.model.block_size);
  shown->context = {num_tokens, (num_tokens + block_size - 1) / block_size};
}

void Controller::count_context(ui::SessionId session_id) {
  const Session* session = find_session(session_id);
  if (session == nullptr || session->answering || session->submitting || !count_tokens_) return;
  std::vector<ChatMessage> messages =
      session->conversation.chat_messages(session->conversation.active_leaf());
  if (std::string draft = composed_draft(*session); !draft.empty())
    messages.push_back({Role::kUser, std::move(draft)});
  if (messages.empty()) return show_context(session_id, 0);
  count_tokens_(session_id, std::move(messages));
}

}  // namespace octavo::app
