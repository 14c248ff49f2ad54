// The controller's part that has to do with the store: chats that come from it and go to it, the trash,
// folders, presets, search, and answers that wait until what they answer is saved.

#include <algorithm>
#include <utility>

#include "app/window/chat/kept_token_ids.h"
#include "app/window/controller.h"
#include "engine/base/text.h"

namespace octavo::app {
namespace {

constexpr std::size_t kMostRequestsRemembered = 4'096;
constexpr std::size_t kLongestFileName = 60;

ChatId chat_id_of(ChatId id) { return ChatId{id.value}; }

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
  for (const ui::ChatState& shown : state_.chats) {
    OpenChat& open_chat = chats_.at(shown.id);
    keeper_.keep(open_chat.chat, head_of(open_chat, shown.title), open_chat.kept);
  }
}

StoreTicket Controller::keep_chat(ChatId chat_id, Urgency urgency) {
  OpenChat* open_chat = find_chat(chat_id);
  const ui::ChatState* shown = shown_chat(chat_id);
  if (open_chat == nullptr || shown == nullptr) return 0;
  return keeper_.keep(open_chat->chat, head_of(*open_chat, shown->title), open_chat->kept, urgency);
}

ChatHead Controller::new_head(ChatId chat_id) {
  ChatHead head;
  head.id = chat_id_of(chat_id);
  head.position = next_position_++;
  head.created_ms = keeper_.unix_time_ms();
  return head;
}

ChatHead Controller::head_of(const OpenChat& open_chat, const std::string& shown_title) const {
  ChatHead head = open_chat.head;
  head.title = open_chat.chat.title;
  head.shown_title = shown_title;
  head.system_prompt = open_chat.chat.system_prompt;
  head.sampling = open_chat.chat.sampling;
  head.draft = composed_draft(open_chat);
  if (open_chat.kept.loaded) head.active_root_child = open_chat.chat.active_first();
  return head;
}

std::string Controller::title_of(const OpenChat& open_chat) const {
  if (!open_chat.kept.loaded && open_chat.chat.title.empty()) return open_chat.head.shown_title;
  return open_chat.chat.display_title();
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
  next_chat_ = std::max(next_chat_, contents.last_chat.value + 1);
  next_folder_ = std::max(next_folder_, contents.last_folder.value + 1);
  next_preset_ = std::max(next_preset_, contents.last_preset.value + 1);
  for (const ChatHead& head : contents.chats) {
    if (!chats_.contains(ChatId{head.id.value})) add_stored_chat(head);
  }
  for (const FolderRecord& folder : contents.folders)
    state_.library.folders.push_back({FolderId{folder.id.value}, folder.name});
  for (const PresetRecord& preset : contents.presets)
    state_.library.presets.push_back(
        {PresetId{preset.id.value}, preset.name, preset.system_prompt, preset.sampling});
  store_opened_ = true;
  show_trash();
  if (state_.chats.empty() && engine_ != nullptr) new_chat();
  if (!state_.chats.empty() && shown_chat(state_.active_chat) == nullptr) show_chat(state_.chats.front().id);
}

void Controller::add_stored_chat(const ChatHead& head) {
  const ChatId id{head.id.value};
  OpenChat& open_chat = chats_[id];
  open_chat.chat.title = head.title;
  open_chat.chat.system_prompt = head.system_prompt;
  open_chat.chat.sampling = head.sampling;
  restore_draft(open_chat, head.draft);
  open_chat.head = open_chat.kept.head = head;
  open_chat.kept.stored = true;
  open_chat.kept.loaded = false;
  next_position_ = std::max(next_position_, head.position + 1);
  if (head.trashed_ms) {
    trash_[id] = new_shown(id);
  } else {
    insert_by_position(new_shown(id));
  }
}

ui::ChatState Controller::new_shown(ChatId chat_id) const {
  const OpenChat& open_chat = chats_.at(chat_id);
  ui::ChatState shown;
  shown.id = chat_id;
  shown.title = title_of(open_chat);
  shown.colour_index = static_cast<std::uint32_t>(chat_id.value - 1);
  shown.system_prompt = open_chat.chat.system_prompt;
  shown.sampling = open_chat.chat.sampling;
  shown.pinned = open_chat.head.pinned;
  shown.folder = FolderId{open_chat.head.folder.value};
  shown.draft = open_chat.draft;
  for (const Attachment& attachment : open_chat.attachments) shown.attachments.push_back(attachment.shown);
  return shown;
}

// The list begins with the highest position.
void Controller::insert_by_position(ui::ChatState shown) {
  const std::int64_t position = chats_.at(shown.id).head.position;
  const auto place = std::find_if(state_.chats.begin(), state_.chats.end(), [&](const ui::ChatState& other) {
    return chats_.at(other.id).head.position < position;
  });
  state_.chats.insert(place, std::move(shown));
}

void Controller::fold_report(const StoreProblemChanged& report) {
  const bool had_problem = !state_.library.problem.empty();
  state_.library.problem = report.problem.sentence;
  state_.library.read_only = report.problem && !report.problem.passing();
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
  for (auto& [id, open_chat] : chats_) ChatKeeper::forget(open_chat.kept);
  for (const ui::FolderState& folder : state_.library.folders) save_folder(folder);
  for (const ui::PresetState& preset : state_.library.presets) push_preset(preset);
  keep_chats();
}

void Controller::fold_report(ChatLoaded& report) {
  const ChatId id{report.chat_id.value};
  OpenChat* open_chat = find_chat(id);
  if (open_chat == nullptr || open_chat->kept.loaded) return;
  // What was changed here since the head was read is newer than the file.
  report.chat.title = std::move(open_chat->chat.title);
  report.chat.system_prompt = std::move(open_chat->chat.system_prompt);
  report.chat.sampling = std::move(open_chat->chat.sampling);
  open_chat->chat = std::move(report.chat);
  ChatKeeper::learn(open_chat->chat, open_chat->kept);
  if (focus_when_loaded_ && focus_when_loaded_->chat_id == id) {
    const ui::MessageFocus focus = *std::exchange(focus_when_loaded_, std::nullopt);
    show_message(id, focus.message_id);
  }
  if (ui::ChatState* shown = shown_chat(id)) {
    shown->loading = false;
    show_messages(id);
    show_title(id);
    if (state_.active_chat == id) count_context(id);
  }
  export_loaded();
  send_queued(id);
}

void Controller::fold_report(const SearchProgress& report) {
  ui::SearchState& search = state_.library.search;
  if (report.search_id != newest_search_) return;
  for (const SearchHit& hit : report.hits) {
    const ui::ChatState* shown = shown_chat(ChatId{hit.chat_id.value});
    if (shown == nullptr) continue;  // in the trash
    search.hits.push_back({.chat_id = shown->id,
                           .message_id = hit.message_id,
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

void Controller::show_chat(ChatId chat_id) {
  state_.active_chat = chat_id;
  state_.workspace = ui::Workspace::kChat;
  load_chat(chat_id);
}

void Controller::load_chat(ChatId chat_id) {
  OpenChat* open_chat = find_chat(chat_id);
  if (open_chat == nullptr || open_chat->kept.loaded || open_chat->kept.loading || keeper_.store() == nullptr)
    return;
  open_chat->kept.loading = true;
  if (ui::ChatState* shown = shown_chat(chat_id)) shown->loading = true;
  keeper_.store()->load(chat_id_of(chat_id));
}

void Controller::show_message(ChatId chat_id, MessageId message_id) {
  OpenChat* open_chat = find_chat(chat_id);
  if (open_chat == nullptr || shown_chat(chat_id) == nullptr) return;
  show_chat(chat_id);
  if (!open_chat->kept.loaded) {
    focus_when_loaded_ = ui::MessageFocus{chat_id, message_id, 0};
    return;
  }
  if (open_chat->chat.find(message_id) == nullptr) return;
  open_chat->chat.activate(message_id);
  show_messages(chat_id);
  count_context(chat_id);
  state_.library.focus = {chat_id, message_id, state_.library.focus.serial + 1};
}

void Controller::show_search(bool open) {
  state_.search_open = open;
  if (!open) search_chats({});
}

void Controller::search_chats(const std::string& query) {
  ui::SearchState& search = state_.library.search;
  search = {.query = sanitise_utf8(query), .hits = {}};
  const TextQuery words(search.query);
  for (const ui::ChatState& shown : state_.chats) {
    const auto match = words.find_in(shown.title);
    if (!match) continue;
    ui::SearchHitState& hit = search.hits.emplace_back();
    hit.chat_id = shown.id;
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

void Controller::delete_chat(ChatId chat_id) {
  const auto found = std::find_if(state_.chats.begin(), state_.chats.end(),
                                  [&](const ui::ChatState& shown) { return shown.id == chat_id; });
  if (found == state_.chats.end()) return;
  stop(chat_id);
  const auto index = static_cast<std::size_t>(found - state_.chats.begin());
  state_.deleted_title = found->title;
  undoable_ = chat_id;
  chats_.at(chat_id).head.trashed_ms = keeper_.unix_time_ms();
  trash_[chat_id] = std::move(*found);
  state_.chats.erase(found);
  keep_trashed(chat_id);
  show_trash();
  if (state_.chats.empty()) {
    new_chat();
  } else if (state_.active_chat == chat_id) {
    show_chat(state_.chats[std::min(index, state_.chats.size() - 1)].id);
  }
}

// A chat in the trash is in no list that `keep_chats` walks.
void Controller::keep_trashed(ChatId chat_id) {
  OpenChat& open_chat = chats_.at(chat_id);
  keeper_.keep(open_chat.chat, head_of(open_chat, trash_.at(chat_id).title), open_chat.kept);
}

void Controller::undo_delete() {
  if (undoable_) restore_chat(*undoable_);
}

void Controller::dismiss_undo() {
  undoable_.reset();
  state_.deleted_title.reset();
}

void Controller::restore_chat(ChatId chat_id) {
  auto found = trash_.extract(chat_id);
  if (found.empty()) return;
  if (undoable_ == chat_id) dismiss_undo();
  OpenChat& open_chat = chats_.at(chat_id);
  open_chat.head.trashed_ms.reset();
  keeper_.keep(open_chat.chat, head_of(open_chat, found.mapped().title), open_chat.kept);
  insert_by_position(std::move(found.mapped()));
  show_trash();
  show_chat(chat_id);
  if (open_chat.kept.loaded) show_messages(chat_id);
  show_activity();
}

void Controller::erase_chat(ChatId chat_id) {
  if (trash_.erase(chat_id) == 0) return;
  if (undoable_ == chat_id) dismiss_undo();
  keeper_.erase(chats_.at(chat_id).kept);
  chats_.erase(chat_id);
  show_trash();
}

void Controller::empty_trash() {
  while (!trash_.empty()) erase_chat(trash_.begin()->first);
}

void Controller::show_trash() {
  std::vector<ui::TrashedChat>& shown = state_.library.trash;
  shown.clear();
  for (const auto& [id, open_chat] : trash_) {
    shown.push_back({id, open_chat.title, chats_.at(id).head.trashed_ms.value_or(0)});
  }
  std::stable_sort(shown.begin(), shown.end(),
                   [](const auto& a, const auto& b) { return a.trashed_ms > b.trashed_ms; });
}

// ---- order, folders, presets

void Controller::pin_chat(ChatId chat_id, bool pinned) {
  OpenChat* open_chat = find_chat(chat_id);
  ui::ChatState* shown = shown_chat(chat_id);
  if (open_chat == nullptr || shown == nullptr) return;
  open_chat->head.pinned = pinned;
  shown->pinned = pinned;
}

void Controller::move_chat(ChatId chat_id, ChatId before) {
  auto& list = state_.chats;
  const auto place_of = [&list](ChatId id) {
    return std::find_if(list.begin(), list.end(), [&](const auto& shown) { return shown.id == id; });
  };
  const auto found = place_of(chat_id);
  if (found == list.end() || chat_id == before) return;
  ui::ChatState moved = std::move(*found);
  list.erase(found);
  list.insert(place_of(before), std::move(moved));
  number_positions();
}

void Controller::number_positions() {
  auto position = static_cast<std::int64_t>(state_.chats.size());
  for (const ui::ChatState& shown : state_.chats) chats_.at(shown.id).head.position = position--;
  next_position_ = static_cast<std::int64_t>(state_.chats.size()) + 1;
}

void Controller::create_folder(const std::string& name) {
  const ui::FolderState folder{FolderId{next_folder_++}, clean_name(name)};
  state_.library.folders.push_back(folder);
  save_folder(folder);
}

void Controller::rename_folder(FolderId folder_id, const std::string& name) {
  for (ui::FolderState& folder : state_.library.folders) {
    if (folder.id != folder_id) continue;
    folder.name = clean_name(name);
    save_folder(folder);
  }
}

void Controller::save_folder(const ui::FolderState& folder) {
  keeper_.push(changes::SaveFolder{
      {FolderId{folder.id.value}, folder.name, static_cast<std::int64_t>(folder.id.value)}});
}

void Controller::delete_folder(FolderId folder_id) {
  if (std::erase_if(state_.library.folders, [&](const auto& folder) { return folder.id == folder_id; }) == 0)
    return;
  for (auto& [id, open_chat] : chats_) {
    if (open_chat.head.folder.value == folder_id.value)
      open_chat.head.folder = open_chat.kept.head.folder = {};
  }
  for (ui::ChatState& shown : state_.chats) {
    if (shown.folder == folder_id) shown.folder = {};
  }
  for (auto& [id, shown] : trash_) {
    if (shown.folder == folder_id) shown.folder = {};
  }
  keeper_.push(changes::EraseFolder{FolderId{folder_id.value}});
}

void Controller::move_to_folder(ChatId chat_id, FolderId folder_id) {
  OpenChat* open_chat = find_chat(chat_id);
  ui::ChatState* shown = shown_chat(chat_id);
  if (open_chat == nullptr || shown == nullptr) return;
  const auto& folders = state_.library.folders;
  const bool exists =
      std::any_of(folders.begin(), folders.end(), [&](const auto& f) { return f.id == folder_id; });
  if (folder_id.value != 0 && !exists) return;
  open_chat->head.folder = FolderId{folder_id.value};
  shown->folder = folder_id;
}

void Controller::save_preset(const ui::PresetState& preset) {
  auto& presets = state_.library.presets;
  ui::PresetState saved = preset;
  saved.name = clean_name(preset.name);
  saved.system_prompt = sanitise_utf8(preset.system_prompt);
  const auto found =
      std::find_if(presets.begin(), presets.end(), [&](const auto& p) { return p.id == preset.id; });
  if (found == presets.end()) {
    saved.id = PresetId{next_preset_++};
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

void Controller::erase_preset(PresetId preset_id) {
  if (std::erase_if(state_.library.presets, [&](const auto& preset) { return preset.id == preset_id; }) > 0)
    keeper_.push(changes::ErasePreset{PresetId{preset_id.value}});
}

void Controller::apply_preset(ChatId chat_id, PresetId preset_id) {
  OpenChat* open_chat = find_chat(chat_id);
  ui::ChatState* shown = shown_chat(chat_id);
  const auto& presets = state_.library.presets;
  const auto found =
      std::find_if(presets.begin(), presets.end(), [&](const auto& p) { return p.id == preset_id; });
  if (open_chat == nullptr || shown == nullptr || found == presets.end()) return;
  shown->system_prompt = open_chat->chat.system_prompt = found->system_prompt;
  shown->sampling = open_chat->chat.sampling = found->sampling;
  count_context(chat_id);
}

// ---- files

void Controller::export_chat(const ui::actions::ExportChat& action) {
  if (shown_chat(action.chat_id) == nullptr) return;
  waiting_exports_.push_back(action);
  load_chat(action.chat_id);
  export_loaded();
}

void Controller::export_all_chats(const std::string& path) {
  exporting_all_ = path;
  for (const ui::ChatState& shown : state_.chats) load_chat(shown.id);
  export_loaded();
}

// What waits for nothing more to be read.
void Controller::export_loaded() {
  std::erase_if(waiting_exports_, [this](const ui::actions::ExportChat& action) {
    const OpenChat* open_chat = find_chat(action.chat_id);
    if (open_chat == nullptr) return true;
    if (!open_chat->kept.loaded) return false;
    const bool json = action.format == ui::actions::ChatFormat::kJson;
    effects_.chat_exports.push_back({{open_chat->chat},
                                     action.format,
                                     action.path,
                                     file_name_of(title_of(*open_chat), json ? ".json" : ".md")});
    return true;
  });
  const auto is_loaded = [this](const ui::ChatState& shown) { return chats_.at(shown.id).kept.loaded; };
  if (!exporting_all_ || !std::all_of(state_.chats.begin(), state_.chats.end(), is_loaded)) return;
  ChatExport all{
      {}, ui::actions::ChatFormat::kJson, *std::exchange(exporting_all_, std::nullopt), "octavo-chats.json"};
  for (const ui::ChatState& shown : state_.chats) {
    const Chat& chat = chats_.at(shown.id).chat;
    if (!chat.messages().empty()) all.chats.push_back(chat);
  }
  effects_.chat_exports.push_back(std::move(all));
}

void Controller::take_imported(std::vector<Chat> chats) {
  for (Chat& chat : chats) show_chat(add_chat(std::move(chat)));
  keep_chats();
}

ChatId Controller::add_chat(Chat chat) {
  const ChatId id{next_chat_++};
  OpenChat& open_chat = chats_[id];
  open_chat.chat = std::move(chat);
  open_chat.head = new_head(id);
  insert_by_position(new_shown(id));
  show_messages(id);
  return id;
}

// ---- answers

void Controller::submit_when_saved(ChatId chat_id, MessageId message_id, GenerationRequest request,
                                   bool keeps_token_ids) {
  OpenChat& open_chat = *find_chat(chat_id);
  open_chat.submitting = true;
  open_chat.failed = false;
  show_title(chat_id);
  const StoreTicket ticket = keep_chat(chat_id, Urgency::kNow);
  submissions_.push_back({chat_id, message_id, std::move(request), ticket, keeps_token_ids});
  submit_saved();
  show_messages(chat_id);
  show_activity();
}

// In the order in which they were asked for. While the disk fails, which the window says, nobody waits for
// it.
bool Controller::submit_saved() {
  bool submitted = false;
  while (!submissions_.empty()) {
    if (!keeper_.saved(submissions_.front().ticket) && state_.library.problem.empty()) break;
    Submission next = std::move(submissions_.front());
    submissions_.pop_front();
    submit(std::move(next));
    submitted = true;
  }
  return submitted;
}

void Controller::submit(Submission submission) {
  OpenChat* open_chat = find_chat(submission.chat_id);
  if (open_chat == nullptr || engine_ == nullptr) return;
  forget_foreign_ids(engine_->tokenizer(), submission.request);
  const RequestId request_id = engine_->submit(std::move(submission.request));
  answers_[request_id] = {.chat_id = submission.chat_id,
                          .message_id = submission.message_id,
                          .engine = engine_,
                          .submitted_us = clock_.now_us(),
                          .keeps_token_ids = submission.keeps_token_ids};
  request_chats_[request_id] = submission.chat_id;
  note_prompt(request_id, submission.chat_id, submission.message_id);
  if (request_chats_.size() > kMostRequestsRemembered) request_chats_.erase(request_chats_.begin());
  open_chat->submitting = false;
  open_chat->answering = request_id;
  show_activity();
}

void Controller::drop_submissions(ChatId chat_id) {
  const auto dropped = std::erase_if(submissions_, [&](const Submission& submission) {
    if (submission.chat_id != chat_id) return false;
    OpenChat& open_chat = chats_.at(chat_id);
    Message& message = *open_chat.chat.find(submission.message_id);
    message.finish_reason = FinishReason::kAbort;
    keeper_.keep_message(open_chat.kept, message);
    open_chat.submitting = false;
    return true;
  });
  if (dropped == 0) return;
  show_messages(chat_id);
  show_activity();
}

// The engine goes: what is not done can be continued with the next one.
void Controller::interrupt_answers() {
  const auto interrupt = [this](ChatId chat_id, MessageId message_id) {
    OpenChat* open_chat = find_chat(chat_id);
    if (open_chat == nullptr) return;
    Message& message = *open_chat->chat.find(message_id);
    message.interrupted = true;
    keeper_.keep_message(open_chat->kept, message);
    open_chat->submitting = false;
    open_chat->answering.reset();
    show_messages(chat_id);
  };
  const auto answers = std::exchange(answers_, {});
  const auto submissions = std::exchange(submissions_, {});
  for (const auto& [request_id, answer] : answers) interrupt(answer.chat_id, answer.message_id);
  for (const Submission& submission : submissions) interrupt(submission.chat_id, submission.message_id);
  show_activity();
}

void Controller::continue_answer(ChatId chat_id, MessageId message_id) {
  OpenChat* open_chat = find_chat(chat_id);
  if (open_chat == nullptr || engine_ == nullptr || open_chat->answering || open_chat->submitting) return;
  Message* message = open_chat->chat.find(message_id);
  if (message == nullptr || message->role != Role::kAssistant || !message->children.empty() ||
      message->finish_reason == FinishReason::kStop)
    return;
  const bool begun = !message->content.empty();
  if (!begun || !spells(engine_->tokenizer(), message->token_ids, message->content))
    message->token_ids.clear();
  GenerationRequest request;
  open_chat->chat.activate(message_id);
  request.prompt = ChatPrompt{open_chat->chat.chat_messages(message_id), begun};
  request.sampling = open_chat->chat.sampling;
  message->finish_reason.reset();
  message->interrupted = false;
  message->error.clear();
  message->model = state_.model.name;
  keeper_.keep_message(open_chat->kept, *message);
  submit_when_saved(chat_id, message_id, std::move(request), !begun || !message->token_ids.empty());
}

void Controller::send_queued(ChatId chat_id) {
  OpenChat* open_chat = find_chat(chat_id);
  if (open_chat == nullptr || engine_ == nullptr || open_chat->queued.empty()) return;
  if (open_chat->answering || open_chat->submitting || !open_chat->kept.loaded) return;
  const std::string next = std::move(open_chat->queued.front());
  open_chat->queued.pop_front();
  show_queue(chat_id);
  ask(chat_id, open_chat->chat.active_leaf(), next);
}

}  // namespace octavo::app
