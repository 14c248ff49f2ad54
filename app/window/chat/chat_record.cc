#include "app/window/chat/chat_record.h"

#include <utility>

#include "engine/base/text.h"

namespace octavo::app {

std::string title_of(const ChatRecord& record) {
  if (!record.kept.loaded && record.chat.title.empty()) return record.kept.head.shown_title;
  return record.chat.display_title();
}

std::string composed_draft(const ChatRecord& record) {
  return sanitise_utf8(record.draft.text) + record.draft.attachment_blocks;
}

std::string kept_draft(const ChatRecord& record) {
  if (record.queued.empty()) return composed_draft(record);
  std::string text;
  std::vector<AttachedFile> files;
  for (const std::string& question : record.queued) {
    const SplitMessage parts = split_attachments(question);
    text += std::string(parts.text) + "\n\n";
    for (AttachedFile& file : attached_files(parts)) files.push_back(std::move(file));
  }
  for (const Attachment& attachment : record.draft.attachments) files.push_back(attachment.file);
  text += sanitise_utf8(record.draft.text);
  while (text.ends_with('\n')) text.pop_back();
  return with_attachments(text, files, BlankText::kKeep);
}

// What is not named here is as the store knows it already.
ChatHead head_of(const ChatRecord& record) {
  ChatHead head = record.kept.head;
  head.id = record.id;
  head.title = record.chat.title;
  head.shown_title = title_of(record);
  head.system_prompt = record.chat.system_prompt;
  head.sampling = record.chat.sampling;
  head.context_policy = record.chat.context_policy;
  head.template_values = record.chat.template_values;
  head.draft = kept_draft(record);
  head.folder = record.folder;
  head.pinned = record.pinned;
  head.position = record.position;
  head.trashed_ms = record.trashed_ms;
  head.model_path = record.model_path;
  if (record.kept.loaded) head.active_root_child = record.chat.active_first();
  return head;
}

}  // namespace octavo::app
