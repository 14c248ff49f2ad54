#include "app/window/chat/chat_record.h"

#include "engine/base/text.h"

namespace octavo::app {

std::string title_of(const ChatRecord& record) {
  if (!record.kept.loaded && record.chat.title.empty()) return record.kept.head.shown_title;
  return record.chat.display_title();
}

std::string composed_draft(const ChatRecord& record) {
  return sanitise_utf8(record.draft.text) + record.draft.attachment_blocks;
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
  head.draft = composed_draft(record);
  head.folder = record.folder;
  head.pinned = record.pinned;
  head.position = record.position;
  head.trashed_ms = record.trashed_ms;
  if (record.kept.loaded) head.active_root_child = record.chat.active_first();
  return head;
}

}  // namespace octavo::app
