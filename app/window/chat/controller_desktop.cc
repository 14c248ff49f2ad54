// The controller's part around the chat: files that were dropped, named or attached, and the panels of
// presets and branches.

#include <algorithm>
#include <utility>
#include <variant>

#include "app/window/controller.h"
#include "engine/base/overloaded.h"
#include "engine/base/text.h"

namespace octavo::app {
namespace {

// Several files together.
constexpr std::int64_t kMostAttachedBytes = std::int64_t{2} << 20;

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
                 [&](const act::ShowWorkspace& a) {
                   state_.workspace = a.workspace;
                   state_.memory_workspace.hover = {};  // what was pointed at is not there any more
                   if (a.workspace == ui::Workspace::kCompare) show_comparison();
                   if (a.workspace == ui::Workspace::kMemory) memory_workspace_.refresh(state_);
                 },
                 [&](const act::CopyText& a) { effects_.clipboard = a.text; },
                 [&](const act::OpenLink& a) { effects_.open_link = a.address; },
                 [&](const act::ShowSampling& a) { state_.sampling_open = a.open; },
                 [&](const act::ShowSettings& a) { state_.settings_open = a.open; },
                 [&](const act::ShowPalette& a) { state_.palette_open = a.open; },
                 [&](const act::ChangeSettings& a) { change_settings(a.settings); },
                 [&](const act::DismissBanner&) { state_.banner.reset(); },
                 [&](const act::ShowAttach& a) { state_.desktop.attach_open = a.open; },
                 [&](const act::AttachFile& a) {
                   state_.desktop.attach_open = false;
                   effects_.files_to_read.push_back({a.chat_id, ReadAs::kText, {a.path}});
                 },
                 [&](const act::RemoveAttachment& a) { remove_attachment(a.chat_id, a.attachment_id); },
                 [&](const act::OpenFiles& a) {
                   effects_.files_to_read.push_back({state_.active_chat, ReadAs::kAny, a.paths});
                 },
                 [&](const act::ShowPresets& a) { state_.desktop.presets_open = a.open; },
                 [&](const act::ShowTree& a) { state_.desktop.tree_open = a.open; },
             },
             action);
  settle();
}

// ---- files

void Controller::take_read_files(FilesRead read) {
  // They were asked for before there was a chat.
  if (read.chat_id == ChatId{}) read.chat_id = state_.active_chat;
  FileOutcomes outcomes;
  for (ReadFile& file : read.files) use_file(read.chat_id, std::move(file), outcomes);
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

void Controller::use_file(ChatId chat_id, ReadFile file, FileOutcomes& outcomes) {
  switch (file.kind) {
    case FileKind::kModel: apply(ui::actions::OpenModelFile{file.path}); return;
    case FileKind::kRecording:
      apply(ui::actions::OpenRecording{file.path});
      apply(ui::actions::ShowWorkspace{ui::Workspace::kMemory});
      return;
    case FileKind::kChats:
      outcomes.imported.push_back(imported_sentence(file.chats.size(), file.name));
      for (Chat& chat : file.chats) show_chat(add_chat(std::move(chat)));
      return;
    case FileKind::kText: {
      const std::string name = escape_for_message(file.name);
      if (std::string problem = attach(chat_id, std::move(file)); !problem.empty()) {
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
std::string Controller::attach(ChatId chat_id, ReadFile file) {
  const std::string name = escape_for_message(file.name);
  OpenChat* open_chat = find_chat(chat_id);
  if (open_chat == nullptr || shown_chat(chat_id) == nullptr)
    return name + " was not attached: there is no chat to attach it to";
  std::int64_t total = static_cast<std::int64_t>(file.text.size());
  for (const Attachment& attachment : open_chat->attachments) total += attachment.shown.num_bytes;
  if (total > kMostAttachedBytes)
    return name + " was not attached: the files of one message may have 2 MiB together";
  Attachment attachment;
  attachment.shown = {
      .id = next_attachment_++, .name = file.name, .num_bytes = static_cast<std::int64_t>(file.text.size())};
  attachment.file = {std::move(file.name), std::move(file.text)};
  open_chat->attachments.push_back(std::move(attachment));
  count_attachment(chat_id, open_chat->attachments.back());
  show_attachments(chat_id);
  return {};
}

void Controller::remove_attachment(ChatId chat_id, std::uint64_t attachment_id) {
  OpenChat* open_chat = find_chat(chat_id);
  if (open_chat == nullptr) return;
  std::erase_if(open_chat->attachments,
                [&](const Attachment& attachment) { return attachment.shown.id == attachment_id; });
  show_attachments(chat_id);
}

// Made once and not on every action: they may be long.
std::string Controller::blocks_of(const std::vector<Attachment>& attachments) {
  std::vector<AttachedFile> files;
  for (const Attachment& attachment : attachments) files.push_back(attachment.file);
  return with_attachments("", files, BlankText::kKeep);
}

void Controller::show_attachments(ChatId chat_id) {
  OpenChat* open_chat = find_chat(chat_id);
  ui::ChatState* shown = shown_chat(chat_id);
  if (open_chat == nullptr || shown == nullptr) return;
  open_chat->attachment_blocks = blocks_of(open_chat->attachments);
  shown->attachments.clear();
  for (const Attachment& attachment : open_chat->attachments) shown->attachments.push_back(attachment.shown);
  count_context(chat_id);
}

void Controller::set_attachment_counter(CountAttachment count_attachment) {
  count_attachment_ = std::move(count_attachment);
  for (const auto& [id, open_chat] : chats_) {
    for (const Attachment& attachment : open_chat.attachments) this->count_attachment(id, attachment);
  }
}

void Controller::count_attachment(ChatId chat_id, const Attachment& attachment) const {
  if (count_attachment_) count_attachment_(chat_id, attachment.shown.id, attachment.file.text);
}

void Controller::fold_attachment_count(ChatId chat_id, std::uint64_t attachment_id, std::int32_t num_tokens) {
  OpenChat* open_chat = find_chat(chat_id);
  ui::ChatState* shown = shown_chat(chat_id);
  if (open_chat == nullptr || shown == nullptr) return;
  for (Attachment& attachment : open_chat->attachments) {
    if (attachment.shown.id == attachment_id) attachment.shown.num_tokens = num_tokens;
  }
  for (ui::AttachmentState& attachment : shown->attachments) {
    if (attachment.id == attachment_id) attachment.num_tokens = num_tokens;
  }
}

// ---- drafts

// The message that was typed, with the files that wait for it; nothing waits afterwards.
std::string Controller::take_draft(ChatId chat_id, const std::string& text) {
  OpenChat& open_chat = *find_chat(chat_id);
  std::vector<AttachedFile> files;
  for (Attachment& attachment : open_chat.attachments) files.push_back(std::move(attachment.file));
  open_chat.attachments.clear();
  open_chat.attachment_blocks.clear();
  open_chat.draft.clear();
  if (ui::ChatState* shown = shown_chat(chat_id)) {
    shown->attachments.clear();
    shown->draft.clear();
  }
  return with_attachments(sanitise_utf8(text), files);
}

// As it would be sent, and as the store keeps it.
std::string Controller::composed_draft(const OpenChat& open_chat) const {
  return sanitise_utf8(open_chat.draft) + open_chat.attachment_blocks;
}

void Controller::restore_draft(OpenChat& open_chat, const std::string& kept) {
  const SplitMessage parts = split_attachments(kept);
  open_chat.draft = parts.text;
  for (AttachedFile& file : attached_files(parts)) {
    Attachment attachment;
    attachment.shown = {.id = next_attachment_++,
                        .name = file.name,
                        .num_bytes = static_cast<std::int64_t>(file.text.size())};
    attachment.file = std::move(file);
    open_chat.attachments.push_back(std::move(attachment));
  }
  open_chat.attachment_blocks = blocks_of(open_chat.attachments);
}

// ---- the tree

void Controller::show_tree() {
  if (!state_.desktop.tree_open) {
    state_.desktop.tree.reset();
    shown_tree_ = {};
    return;
  }
  const OpenChat* open_chat = find_chat(state_.active_chat);
  if (open_chat == nullptr) return;
  const TreeVersion version = tree_version(open_chat->chat, state_.active_chat);
  if (state_.desktop.tree != nullptr && version == shown_tree_) return;
  shown_tree_ = version;
  state_.desktop.tree = branch_tree(open_chat->chat, state_.active_chat);
}

}  // namespace octavo::app
