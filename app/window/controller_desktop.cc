// The controller's part around the chat: files that were dropped, named or attached, and the panels of
// presets and branches.

#include <algorithm>
#include <utility>
#include <variant>

#include "app/window/controller.h"
#include "engine/base/text.h"

namespace octavo::app {
namespace {

// Several files together.
constexpr std::int64_t kMostAttachedBytes = std::int64_t{2} << 20;

template <class... Handlers>
struct Overloaded : Handlers... {
  using Handlers::operator()...;
};
template <class... Handlers>
Overloaded(Handlers...) -> Overloaded<Handlers...>;

std::string imported_sentence(std::size_t num_chats, const std::string& name) {
  return "Imported " + std::to_string(num_chats) + (num_chats == 1 ? " chat" : " chats") + " from " +
         escape_for_message(name) + ".";
}

// "a, b and c"
std::string enumeration(const std::vector<std::string>& parts) {
  std::string text;
  for (std::size_t i = 0; i < parts.size(); ++i)
    text += (i == 0 ? "" : i + 1 == parts.size() ? " and " : ", ") + parts[i];
  return text;
}

// One sentence about several files of which some could not be used.
std::string sentence_of(const std::vector<std::string>& problems) {
  if (problems.size() == 1) return problems.front() + ".";
  return problems.front() + "; " + std::to_string(problems.size() - 1) +
         (problems.size() == 2 ? " other file could not be used either."
                               : " other files could not be used either.");
}

}  // namespace

void Controller::apply(const ui::actions::DesktopAction& action) {
  namespace act = ui::actions;
  std::visit(Overloaded{
                 [&](const act::ShowAttach& a) { state_.desktop.attach_open = a.open; },
                 [&](const act::AttachFile& a) {
                   state_.desktop.attach_open = false;
                   effects_.files_to_read.push_back({a.session_id, ReadAs::kText, {a.path}});
                 },
                 [&](const act::RemoveAttachment& a) { remove_attachment(a.session_id, a.attachment_id); },
                 [&](const act::OpenFiles& a) {
                   effects_.files_to_read.push_back({state_.active_session, ReadAs::kAny, a.paths});
                 },
                 [&](const act::ShowPresets& a) { state_.desktop.presets_open = a.open; },
                 [&](const act::ShowTree& a) { state_.desktop.tree_open = a.open; },
             },
             action);
}

// ---- files

void Controller::take_read_files(FilesRead read) {
  // They were asked for before there was a chat.
  if (read.session_id == ui::SessionId{}) read.session_id = state_.active_session;
  FileOutcomes outcomes;
  for (ReadFile& file : read.files) use_file(read.session_id, std::move(file), outcomes);
  std::string done = outcomes.attached.empty() ? "" : "Attached " + enumeration(outcomes.attached) + ".";
  for (const std::string& sentence : outcomes.imported) done += (done.empty() ? "" : " ") + sentence;
  if (!outcomes.problems.empty()) {
    show_banner(ui::BannerKind::kError, sentence_of(outcomes.problems));
  } else if (!done.empty()) {
    show_banner(ui::BannerKind::kNotice, done);
  }
  keep_chats();
  show_tree();
}

void Controller::use_file(ui::SessionId session_id, ReadFile file, FileOutcomes& outcomes) {
  switch (file.kind) {
    case FileKind::kModel: apply(ui::actions::Action(ui::actions::OpenModelFile{file.path})); return;
    case FileKind::kRecording:
      apply(ui::actions::Action(ui::actions::Inspect{ui::actions::OpenRecording{file.path}}));
      apply(ui::actions::Action(ui::actions::ShowWorkspace{ui::Workspace::kMemory}));
      return;
    case FileKind::kChats:
      outcomes.imported.push_back(imported_sentence(file.chats.size(), file.name));
      for (Conversation& chat : file.chats) show_session(add_chat(std::move(chat)));
      return;
    case FileKind::kText: {
      const std::string name = escape_for_message(file.name);
      if (std::string problem = attach(session_id, std::move(file)); !problem.empty()) {
        outcomes.problems.push_back(std::move(problem));
      } else {
        outcomes.attached.push_back(name);
      }
      return;
    }
    case FileKind::kUnusable: outcomes.problems.push_back(std::move(file.problem)); return;
  }
}

// Why it was not attached, or nothing.
std::string Controller::attach(ui::SessionId session_id, ReadFile file) {
  const std::string name = escape_for_message(file.name);
  Session* session = find_session(session_id);
  if (session == nullptr || shown_session(session_id) == nullptr)
    return name + " was not attached: there is no chat to attach it to";
  std::int64_t total = static_cast<std::int64_t>(file.text.size());
  for (const Attachment& attachment : session->attachments) total += attachment.shown.num_bytes;
  if (total > kMostAttachedBytes)
    return name + " was not attached: the files of one message may have 2 MiB together";
  Attachment attachment;
  attachment.shown = {
      .id = next_attachment_++, .name = file.name, .num_bytes = static_cast<std::int64_t>(file.text.size())};
  attachment.file = {std::move(file.name), std::move(file.text)};
  session->attachments.push_back(std::move(attachment));
  count_attachment(session_id, session->attachments.back());
  show_attachments(session_id);
  return {};
}

void Controller::remove_attachment(ui::SessionId session_id, std::uint64_t attachment_id) {
  Session* session = find_session(session_id);
  if (session == nullptr) return;
  std::erase_if(session->attachments,
                [&](const Attachment& attachment) { return attachment.shown.id == attachment_id; });
  show_attachments(session_id);
}

// Made once and not on every action: they may be long.
std::string Controller::blocks_of(const std::vector<Attachment>& attachments) {
  std::vector<AttachedFile> files;
  for (const Attachment& attachment : attachments) files.push_back(attachment.file);
  return with_attachments("", files, BlankText::kKeep);
}

void Controller::show_attachments(ui::SessionId session_id) {
  Session* session = find_session(session_id);
  ui::SessionState* shown = shown_session(session_id);
  if (session == nullptr || shown == nullptr) return;
  session->attachment_blocks = blocks_of(session->attachments);
  shown->attachments.clear();
  for (const Attachment& attachment : session->attachments) shown->attachments.push_back(attachment.shown);
  count_context(session_id);
}

void Controller::set_attachment_counter(CountAttachment count_attachment) {
  count_attachment_ = std::move(count_attachment);
  for (const auto& [id, session] : sessions_) {
    for (const Attachment& attachment : session.attachments) this->count_attachment(id, attachment);
  }
}

void Controller::count_attachment(ui::SessionId session_id, const Attachment& attachment) const {
  if (count_attachment_) count_attachment_(session_id, attachment.shown.id, attachment.file.text);
}

void Controller::fold_attachment_count(ui::SessionId session_id, std::uint64_t attachment_id,
                                       std::int32_t num_tokens) {
  Session* session = find_session(session_id);
  ui::SessionState* shown = shown_session(session_id);
  if (session == nullptr || shown == nullptr) return;
  for (Attachment& attachment : session->attachments) {
    if (attachment.shown.id == attachment_id) attachment.shown.num_tokens = num_tokens;
  }
  for (ui::AttachmentState& attachment : shown->attachments) {
    if (attachment.id == attachment_id) attachment.num_tokens = num_tokens;
  }
}

// ---- drafts

// The message that was typed, with the files that wait for it; nothing waits afterwards.
std::string Controller::take_draft(ui::SessionId session_id, const std::string& text) {
  Session& session = *find_session(session_id);
  std::vector<AttachedFile> files;
  for (Attachment& attachment : session.attachments) files.push_back(std::move(attachment.file));
  session.attachments.clear();
  session.attachment_blocks.clear();
  session.draft.clear();
  if (ui::SessionState* shown = shown_session(session_id)) {
    shown->attachments.clear();
    shown->draft.clear();
  }
  return with_attachments(sanitise_utf8(text), files);
}

// As it would be sent, and as the store keeps it.
std::string Controller::composed_draft(const Session& session) const {
  return sanitise_utf8(session.draft) + session.attachment_blocks;
}

void Controller::restore_draft(Session& session, const std::string& kept) {
  const SplitMessage parts = split_attachments(kept);
  session.draft = parts.text;
  for (AttachedFile& file : attached_files(parts)) {
    Attachment attachment;
    attachment.shown = {.id = next_attachment_++,
                        .name = file.name,
                        .num_bytes = static_cast<std::int64_t>(file.text.size())};
    attachment.file = std::move(file);
    session.attachments.push_back(std::move(attachment));
  }
  session.attachment_blocks = blocks_of(session.attachments);
}

// ---- the tree

void Controller::show_tree() {
  if (!state_.desktop.tree_open) {
    state_.desktop.tree.reset();
    shown_tree_ = {};
    return;
  }
  const Session* session = find_session(state_.active_session);
  if (session == nullptr) return;
  const TreeVersion version = tree_version(session->conversation, state_.active_session);
  if (state_.desktop.tree != nullptr && version == shown_tree_) return;
  shown_tree_ = version;
  state_.desktop.tree = conversation_tree(session->conversation, state_.active_session);
}

}  // namespace octavo::app
