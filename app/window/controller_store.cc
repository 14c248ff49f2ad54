// The controller's part that has to do with the store: chats that come from it and go to it, the trash,
// folders, presets, search, and answers that wait until what they answer is saved.

#include <algorithm>
#include <utility>

#include "app/window/controller.h"
#include "app/window/kept_token_ids.h"
#include "engine/base/text.h"

namespace octavo::app {
namespace {

constexpr std::size_t kMostRequestsRemembered = 4'096;
constexpr std::size_t kLongestFileName = 60;

ChatId chat_id_of(ui::SessionId id) { return ChatId{id.value}; }

std::string clean_name(const std::string& name) { return first_line(sanitise_utf8(name), 200); }

// A title as a name that every file system takes.
std::string file_name_of(const std::string& title, const char* extension) {
  std::string name = first_line(title, kLongestFileName);
  std::replace_if(
      name.begin(), name.end(),
      [](char c) {
        return static_cast<unsigned char>(c) < 0x20 || c == 0x7f ||
               std::string_view("/\\:*?\"<>|").find(c) != std::string_view::npos;
      },
      '_');
  if (name.empty() || name.front() == '.') name = "_" + name;
  return name + extension;
}

}  // namespace

// ---- to the store

void Controller::attach_store(ChatStore& store, std::function<std::int64_t()> unix_time_ms) {
  keeper_ = ChatKeeper(store, std::move(unix_time_ms));
  store_opened_ = false;
}

void Controller::keep_chats() {
  if (keeper_.store() == nullptr || !store_opened_) return;
  for (const ui::SessionState& shown : state_.sessions) {
    Session& session = sessions_.at(shown.id);
    keeper_.keep(session.conversation, head_of(session, shown.title), session.kept);
  }
}

StoreTicket Controller::keep_chat(ui::SessionId session_id, Urgency urgency) {
  Session* session = find_session(session_id);
  const ui::SessionState* shown = shown_session(session_id);
  if (session == nullptr || shown == nullptr) return 0;
  return keeper_.keep(session->conversation, head_of(*session, shown->title), session->kept, urgency);
}

ChatHead Controller::new_head(ui::SessionId session_id) {
  ChatHead head;
  head.id = chat_id_of(session_id);
  head.position = next_position_++;
  head.created_ms = keeper_.unix_time_ms();
  return head;
}

ChatHead Controller::head_of(const Session& session, const std::string& shown_title) const {
  ChatHead head = session.head;
  head.title = session.conversation.title;
  head.shown_title = shown_title;
  head.system_prompt = session.conversation.system_prompt;
  head.sampling = session.conversation.sampling;
  head.draft = composed_draft(session);
  if (session.kept.loaded) head.active_root_child = session.conversation.active_first();
  return head;
}

std::string Controller::title_of(const Session& session) const {
  if (!session.kept.loaded && session.conversation.title.empty()) return session.head.shown_title;
  return session.conversation.display_title();
}

// ---- from the store

bool Controller::poll_store() {
  if (keeper_.store() == nullptr) return false;
  auto reports = keeper_.store()->take_reports();
  for (StoreReport& report : reports) {
    std::visit([this](auto& r) { fold_report(r); }, report);
  }
  const bool submitted = submit_saved();
  if (!reports.empty()) show_tree();
  return !reports.empty() || submitted;
}

void Controller::fold_report(const StoreOpened& report) {
  const StoreContents& contents = report.contents;
  next_session_ = std::max(next_session_, contents.last_chat.value + 1);
  next_folder_ = std::max(next_folder_, contents.last_folder.value + 1);
  next_preset_ = std::max(next_preset_, contents.last_preset.value + 1);
  for (const ChatHead& head : contents.chats) {
    if (!sessions_.contains(ui::SessionId{head.id.value})) add_stored_chat(head);
  }
  for (const FolderRecord& folder : contents.folders)
    state_.chats.folders.push_back({ui::FolderId{folder.id.value}, folder.name});
  for (const PresetRecord& preset : contents.presets)
    state_.chats.presets.push_back(
        {ui::PresetId{preset.id.value}, preset.name, preset.system_prompt, preset.sampling});
  store_opened_ = true;
  show_trash();
  if (state_.sessions.empty() && engine_ != nullptr) new_session();
  if (!state_.sessions.empty() && shown_session(state_.active_session) == nullptr)
    show_session(state_.sessions.front().id);
}

void Controller::add_stored_chat(const ChatHead& head) {
  const ui::SessionId id{head.id.value};
  Session& session = sessions_[id];
  session.conversation.title = head.title;
  session.conversation.system_prompt = head.system_prompt;
  session.conversation.sampling = head.sampling;
  restore_draft(session, head.draft);
  session.head = session.kept.head = head;
  session.kept.stored = true;
  session.kept.loaded = false;
  next_position_ = std::max(next_position_, head.position + 1);
  if (head.trashed_ms) {
    trash_[id] = new_shown(id);
  } else {
    insert_by_position(new_shown(id));
  }
}

ui::SessionState Controller::new_shown(ui::SessionId session_id) const {
  const Session& session = sessions_.at(session_id);
  ui::SessionState shown;
  shown.id = session_id;
  shown.title = title_of(session);
  shown.colour_index = static_cast<std::uint32_t>(session_id.value - 1);
  shown.system_prompt = session.conversation.system_prompt;
  shown.sampling = session.conversation.sampling;
  shown.pinned = session.head.pinned;
  shown.folder = ui::FolderId{session.head.folder.value};
  shown.draft = session.draft;
  for (const Attachment& attachment : session.attachments) shown.attachments.push_back(attachment.shown);
  return shown;
}

// The list begins with the highest position.
void Controller::insert_by_position(ui::SessionState shown) {
  const std::int64_t position = sessions_.at(shown.id).head.position;
  const auto place = std::find_if(
      state_.sessions.begin(), state_.sessions.end(),
      [&](const ui::SessionState& other) { return sessions_.at(other.id).head.position < position; });
  state_.sessions.insert(place, std::move(shown));
}

void Controller::fold_report(const StoreProblemChanged& report) {
  const bool had_problem = !state_.chats.problem.empty();
  state_.chats.problem = report.problem.sentence;
  state_.chats.read_only = report.problem && !report.problem.passing();
  if (report.problem) {
    show_banner(report.problem.passing() ? ui::BannerKind::kError : ui::BannerKind::kNotice,
                report.problem.sentence);
  } else if (had_problem) {
    show_banner(ui::BannerKind::kNotice, "All chats are saved again.");
  }
}

void Controller::fold_report(const StoreNotice& report) {
  show_banner(ui::BannerKind::kNotice, report.sentence);
  if (!report.save_everything_again) return;
  for (auto& [id, session] : sessions_) ChatKeeper::forget(session.kept);
  for (const ui::FolderState& folder : state_.chats.folders) save_folder(folder);
  for (const ui::PresetState& preset : state_.chats.presets) push_preset(preset);
  keep_chats();
}

void Controller::fold_report(ChatLoaded& report) {
  const ui::SessionId id{report.chat_id.value};
  Session* session = find_session(id);
  if (session == nullptr || session->kept.loaded) return;
  // What was changed here since the head was read is newer than the file.
  report.conversation.title = std::move(session->conversation.title);
  report.conversation.system_prompt = std::move(session->conversation.system_prompt);
  report.conversation.sampling = std::move(session->conversation.sampling);
  session->conversation = std::move(report.conversation);
  ChatKeeper::learn(session->conversation, session->kept);
  if (focus_when_loaded_ && focus_when_loaded_->session_id == id) {
    const ui::MessageFocus focus = *std::exchange(focus_when_loaded_, std::nullopt);
    show_message(id, MessageId{focus.message_id});
  }
  if (ui::SessionState* shown = shown_session(id)) {
    shown->loading = false;
    show_messages(id);
    show_title(id);
    if (state_.active_session == id) count_context(id);
  }
  export_loaded();
  send_queued(id);
}

void Controller::fold_report(const SearchProgress& report) {
  ui::SearchState& search = state_.chats.search;
  if (report.search_id != newest_search_) return;
  for (const SearchHit& hit : report.hits) {
    const ui::SessionState* shown = shown_session(ui::SessionId{hit.chat_id.value});
    if (shown == nullptr) continue;  // in the trash
    search.hits.push_back({.session_id = shown->id,
                           .message_id = hit.message_id.value,
                           .title = shown->title,
                           .excerpt = hit.match.excerpt,
                           .match_begin = hit.match.begin,
                           .match_end = hit.match.end,
                           .role = hit.role,
                           .branch_index = hit.branch.index,
                           .num_branches = hit.branch.count,
                           .on_shown_path = hit.on_active_path});
  }
  search.running = !report.done;
}

// ---- showing and reading

void Controller::show_session(ui::SessionId session_id) {
  state_.active_session = session_id;
  state_.workspace = ui::Workspace::kChat;
  load_session(session_id);
}

void Controller::load_session(ui::SessionId session_id) {
  Session* session = find_session(session_id);
  if (session == nullptr || session->kept.loaded || session->kept.loading || keeper_.store() == nullptr)
    return;
  session->kept.loading = true;
  if (ui::SessionState* shown = shown_session(session_id)) shown->loading = true;
  keeper_.store()->load(chat_id_of(session_id));
}

void Controller::show_message(ui::SessionId session_id, MessageId message_id) {
  Session* session = find_session(session_id);
  if (session == nullptr || shown_session(session_id) == nullptr) return;
  show_session(session_id);
  if (!session->kept.loaded) {
    focus_when_loaded_ = ui::MessageFocus{session_id, message_id.value, 0};
    return;
  }
  if (session->conversation.find(message_id) == nullptr) return;
  session->conversation.activate(message_id);
  show_messages(session_id);
  count_context(session_id);
  state_.chats.focus = {session_id, message_id.value, state_.chats.focus.serial + 1};
}

void Controller::show_search(bool open) {
  state_.search_open = open;
  if (!open) search_chats({});
}

void Controller::search_chats(const std::string& query) {
  ui::SearchState& search = state_.chats.search;
  search = {.query = sanitise_utf8(query), .hits = {}};
  const TextQuery words(search.query);
  for (const ui::SessionState& shown : state_.sessions) {
    const auto match = words.find_in(shown.title);
    if (!match) continue;
    ui::SearchHitState& hit = search.hits.emplace_back();
    hit.session_id = shown.id;
    hit.title = shown.title;
    hit.excerpt = match->excerpt;
    hit.match_begin = match->begin;
    hit.match_end = match->end;
  }
  ++newest_search_;
  if (keeper_.store() == nullptr) return;
  keeper_.store()->search(newest_search_, search.query);
  search.running = !words.empty();
}

// ---- the trash

void Controller::delete_session(ui::SessionId session_id) {
  const auto found = std::find_if(state_.sessions.begin(), state_.sessions.end(),
                                  [&](const ui::SessionState& shown) { return shown.id == session_id; });
  if (found == state_.sessions.end()) return;
  stop(session_id);
  const auto index = static_cast<std::size_t>(found - state_.sessions.begin());
  state_.deleted_title = found->title;
  undoable_ = session_id;
  sessions_.at(session_id).head.trashed_ms = keeper_.unix_time_ms();
  trash_[session_id] = std::move(*found);
  state_.sessions.erase(found);
  keep_trashed(session_id);
  show_trash();
  if (state_.sessions.empty()) {
    new_session();
  } else if (state_.active_session == session_id) {
    show_session(state_.sessions[std::min(index, state_.sessions.size() - 1)].id);
  }
}

// A chat in the trash is in no list that `keep_chats` walks.
void Controller::keep_trashed(ui::SessionId session_id) {
  Session& session = sessions_.at(session_id);
  keeper_.keep(session.conversation, head_of(session, trash_.at(session_id).title), session.kept);
}

void Controller::undo_delete() {
  if (undoable_) restore_session(*undoable_);
}

void Controller::dismiss_undo() {
  undoable_.reset();
  state_.deleted_title.reset();
}

void Controller::restore_session(ui::SessionId session_id) {
  auto found = trash_.extract(session_id);
  if (found.empty()) return;
  if (undoable_ == session_id) dismiss_undo();
  Session& session = sessions_.at(session_id);
  session.head.trashed_ms.reset();
  keeper_.keep(session.conversation, head_of(session, found.mapped().title), session.kept);
  insert_by_position(std::move(found.mapped()));
  show_trash();
  show_session(session_id);
  if (session.kept.loaded) show_messages(session_id);
  show_activity();
}

void Controller::erase_session(ui::SessionId session_id) {
  if (trash_.erase(session_id) == 0) return;
  if (undoable_ == session_id) dismiss_undo();
  keeper_.erase(sessions_.at(session_id).kept);
  sessions_.erase(session_id);
  show_trash();
}

void Controller::empty_trash() {
  while (!trash_.empty()) erase_session(trash_.begin()->first);
}

void Controller::show_trash() {
  std::vector<ui::TrashedSession>& shown = state_.chats.trash;
  shown.clear();
  for (const auto& [id, session] : trash_) {
    shown.push_back({id, session.title, sessions_.at(id).head.trashed_ms.value_or(0)});
  }
  std::stable_sort(shown.begin(), shown.end(),
                   [](const auto& a, const auto& b) { return a.trashed_ms > b.trashed_ms; });
}

// ---- order, folders, presets

void Controller::pin_session(ui::SessionId session_id, bool pinned) {
  Session* session = find_session(session_id);
  ui::SessionState* shown = shown_session(session_id);
  if (session == nullptr || shown == nullptr) return;
  session->head.pinned = pinned;
  shown->pinned = pinned;
}

void Controller::move_session(ui::SessionId session_id, ui::SessionId before) {
  auto& list = state_.sessions;
  const auto place_of = [&list](ui::SessionId id) {
    return std::find_if(list.begin(), list.end(), [&](const auto& shown) { return shown.id == id; });
  };
  const auto found = place_of(session_id);
  if (found == list.end() || session_id == before) return;
  ui::SessionState moved = std::move(*found);
  list.erase(found);
  list.insert(place_of(before), std::move(moved));
  number_positions();
}

void Controller::number_positions() {
  auto position = static_cast<std::int64_t>(state_.sessions.size());
  for (const ui::SessionState& shown : state_.sessions) sessions_.at(shown.id).head.position = position--;
  next_position_ = static_cast<std::int64_t>(state_.sessions.size()) + 1;
}

void Controller::create_folder(const std::string& name) {
  const ui::FolderState folder{ui::FolderId{next_folder_++}, clean_name(name)};
  state_.chats.folders.push_back(folder);
  save_folder(folder);
}

void Controller::rename_folder(ui::FolderId folder_id, const std::string& name) {
  for (ui::FolderState& folder : state_.chats.folders) {
    if (folder.id != folder_id) continue;
    folder.name = clean_name(name);
    save_folder(folder);
  }
}

void Controller::save_folder(const ui::FolderState& folder) {
  keeper_.push(changes::SaveFolder{
      {FolderId{folder.id.value}, folder.name, static_cast<std::int64_t>(folder.id.value)}});
}

void Controller::delete_folder(ui::FolderId folder_id) {
  if (std::erase_if(state_.chats.folders, [&](const auto& folder) { return folder.id == folder_id; }) == 0)
    return;
  for (auto& [id, session] : sessions_) {
    if (session.head.folder.value == folder_id.value) session.head.folder = session.kept.head.folder = {};
  }
  for (ui::SessionState& shown : state_.sessions) {
    if (shown.folder == folder_id) shown.folder = {};
  }
  for (auto& [id, shown] : trash_) {
    if (shown.folder == folder_id) shown.folder = {};
  }
  keeper_.push(changes::EraseFolder{FolderId{folder_id.value}});
}

void Controller::move_to_folder(ui::SessionId session_id, ui::FolderId folder_id) {
  Session* session = find_session(session_id);
  ui::SessionState* shown = shown_session(session_id);
  if (session == nullptr || shown == nullptr) return;
  const auto& folders = state_.chats.folders;
  const bool exists =
      std::any_of(folders.begin(), folders.end(), [&](const auto& f) { return f.id == folder_id; });
  if (folder_id.value != 0 && !exists) return;
  session->head.folder = FolderId{folder_id.value};
  shown->folder = folder_id;
}

void Controller::save_preset(const ui::PresetState& preset) {
  auto& presets = state_.chats.presets;
  ui::PresetState saved = preset;
  saved.name = clean_name(preset.name);
  saved.system_prompt = sanitise_utf8(preset.system_prompt);
  const auto found =
      std::find_if(presets.begin(), presets.end(), [&](const auto& p) { return p.id == preset.id; });
  if (found == presets.end()) {
    saved.id = ui::PresetId{next_preset_++};
    presets.push_back(saved);
  } else {
    *found = saved;
  }
  push_preset(saved);
}

void Controller::push_preset(const ui::PresetState& preset) {
  keeper_.push(
      changes::SavePreset{{PresetId{preset.id.value}, preset.name, preset.system_prompt, preset.sampling}});
}

void Controller::erase_preset(ui::PresetId preset_id) {
  if (std::erase_if(state_.chats.presets, [&](const auto& preset) { return preset.id == preset_id; }) > 0)
    keeper_.push(changes::ErasePreset{PresetId{preset_id.value}});
}

void Controller::apply_preset(ui::SessionId session_id, ui::PresetId preset_id) {
  Session* session = find_session(session_id);
  ui::SessionState* shown = shown_session(session_id);
  const auto& presets = state_.chats.presets;
  const auto found =
      std::find_if(presets.begin(), presets.end(), [&](const auto& p) { return p.id == preset_id; });
  if (session == nullptr || shown == nullptr || found == presets.end()) return;
  shown->system_prompt = session->conversation.system_prompt = found->system_prompt;
  shown->sampling = session->conversation.sampling = found->sampling;
  count_context(session_id);
}

// ---- files

void Controller::export_session(const ui::actions::ExportSession& action) {
  if (shown_session(action.session_id) == nullptr) return;
  waiting_exports_.push_back(action);
  load_session(action.session_id);
  export_loaded();
}

void Controller::export_all_sessions(const std::string& path) {
  exporting_all_ = path;
  for (const ui::SessionState& shown : state_.sessions) load_session(shown.id);
  export_loaded();
}

// What waits for nothing more to be read.
void Controller::export_loaded() {
  std::erase_if(waiting_exports_, [this](const ui::actions::ExportSession& action) {
    const Session* session = find_session(action.session_id);
    if (session == nullptr) return true;
    if (!session->kept.loaded) return false;
    const bool json = action.format == ui::actions::ChatFormat::kJson;
    effects_.chat_exports.push_back({{session->conversation},
                                     action.format,
                                     action.path,
                                     file_name_of(title_of(*session), json ? ".json" : ".md")});
    return true;
  });
  const auto is_loaded = [this](const ui::SessionState& shown) { return sessions_.at(shown.id).kept.loaded; };
  if (!exporting_all_ || !std::all_of(state_.sessions.begin(), state_.sessions.end(), is_loaded)) return;
  ChatExport all{
      {}, ui::actions::ChatFormat::kJson, *std::exchange(exporting_all_, std::nullopt), "octavo-chats.json"};
  for (const ui::SessionState& shown : state_.sessions) {
    const Conversation& conversation = sessions_.at(shown.id).conversation;
    if (!conversation.messages().empty()) all.conversations.push_back(conversation);
  }
  effects_.chat_exports.push_back(std::move(all));
}

void Controller::take_imported(std::vector<Conversation> conversations) {
  for (Conversation& conversation : conversations) show_session(add_chat(std::move(conversation)));
  keep_chats();
}

ui::SessionId Controller::add_chat(Conversation conversation) {
  const ui::SessionId id{next_session_++};
  Session& session = sessions_[id];
  session.conversation = std::move(conversation);
  session.head = new_head(id);
  insert_by_position(new_shown(id));
  show_messages(id);
  return id;
}

// ---- answers

void Controller::submit_when_saved(ui::SessionId session_id, MessageId message_id, GenerationRequest request,
                                   bool keeps_token_ids) {
  Session& session = *find_session(session_id);
  session.submitting = true;
  session.failed = false;
  show_title(session_id);
  const StoreTicket ticket = keep_chat(session_id, Urgency::kNow);
  submissions_.push_back({session_id, message_id, std::move(request), ticket, keeps_token_ids});
  submit_saved();
  show_messages(session_id);
  show_activity();
}

// In the order in which they were asked for. While the disk fails, which the window says, nobody waits for
// it.
bool Controller::submit_saved() {
  bool submitted = false;
  while (!submissions_.empty()) {
    if (!keeper_.saved(submissions_.front().ticket) && state_.chats.problem.empty()) break;
    Submission next = std::move(submissions_.front());
    submissions_.pop_front();
    submit(std::move(next));
    submitted = true;
  }
  return submitted;
}

void Controller::submit(Submission submission) {
  Session* session = find_session(submission.session_id);
  if (session == nullptr || engine_ == nullptr) return;
  forget_foreign_ids(engine_->tokenizer(), submission.request);
  const RequestId request_id = engine_->submit(std::move(submission.request));
  answers_[request_id] = {.session_id = submission.session_id,
                          .message_id = submission.message_id,
                          .engine = engine_,
                          .submitted_us = clock_.now_us(),
                          .keeps_token_ids = submission.keeps_token_ids};
  request_sessions_[request_id] = submission.session_id;
  note_prompt(request_id, submission.session_id, submission.message_id);
  if (request_sessions_.size() > kMostRequestsRemembered) request_sessions_.erase(request_sessions_.begin());
  session->submitting = false;
  session->answering = request_id;
  show_activity();
}

void Controller::drop_submissions(ui::SessionId session_id) {
  const auto dropped = std::erase_if(submissions_, [&](const Submission& submission) {
    if (submission.session_id != session_id) return false;
    Session& session = sessions_.at(session_id);
    Message& message = *session.conversation.find(submission.message_id);
    message.finish_reason = FinishReason::kAbort;
    keeper_.keep_message(session.kept, message);
    session.submitting = false;
    return true;
  });
  if (dropped == 0) return;
  show_messages(session_id);
  show_activity();
}

// The engine goes: what is not done can be continued with the next one.
void Controller::interrupt_answers() {
  const auto interrupt = [this](ui::SessionId session_id, MessageId message_id) {
    Session* session = find_session(session_id);
    if (session == nullptr) return;
    Message& message = *session->conversation.find(message_id);
    message.interrupted = true;
    keeper_.keep_message(session->kept, message);
    session->submitting = false;
    session->answering.reset();
    show_messages(session_id);
  };
  const auto answers = std::exchange(answers_, {});
  const auto submissions = std::exchange(submissions_, {});
  for (const auto& [request_id, answer] : answers) interrupt(answer.session_id, answer.message_id);
  for (const Submission& submission : submissions) interrupt(submission.session_id, submission.message_id);
  show_activity();
}

void Controller::continue_answer(ui::SessionId session_id, MessageId message_id) {
  Session* session = find_session(session_id);
  if (session == nullptr || engine_ == nullptr || session->answering || session->submitting) return;
  Message* message = session->conversation.find(message_id);
  if (message == nullptr || message->role != Role::kAssistant || !message->children.empty() ||
      message->finish_reason == FinishReason::kStop)
    return;
  const bool begun = !message->content.empty();
  if (!begun || !spells(engine_->tokenizer(), message->token_ids, message->content))
    message->token_ids.clear();
  GenerationRequest request;
  session->conversation.activate(message_id);
  request.prompt = ChatPrompt{session->conversation.chat_messages(message_id), begun};
  request.sampling = session->conversation.sampling;
  message->finish_reason.reset();
  message->interrupted = false;
  message->error.clear();
  message->model = state_.model.name;
  keeper_.keep_message(session->kept, *message);
  submit_when_saved(session_id, message_id, std::move(request), !begun || !message->token_ids.empty());
}

void Controller::send_queued(ui::SessionId session_id) {
  Session* session = find_session(session_id);
  if (session == nullptr || engine_ == nullptr || session->queued.empty()) return;
  if (session->answering || session->submitting || !session->kept.loaded) return;
  const std::string next = std::move(session->queued.front());
  session->queued.pop_front();
  show_queue(session_id);
  ask(session_id, session->conversation.active_leaf(), next);
}

}  // namespace octavo::app
