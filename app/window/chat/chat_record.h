// One chat of the window, kept once: what is drawn of it is made from this (shown_chats.h), and so is what
// the disk has of it (chat_keeper.h).
//
// A value type. UI thread.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "app/chat/attachments.h"
#include "app/chat/chat.h"
#include "app/window/chat/chat_keeper.h"
#include "engine/api/request.h"
#include "ui/chat_state.h"

namespace octavo::app {

// A file that goes with the next message.
struct Attachment {
  ui::AttachmentState shown;
  AttachedFile file;
};

// What is typed and not sent.
struct Draft {
  std::string text = {};
  std::vector<Attachment> attachments = {};
  // Of these, as they stand behind a message. Made when they change and not when it is asked for: they may be
  // long.
  std::string attachment_blocks = {};
  // Counts how often a question came back into it: then it is newer than what is typed.
  std::uint64_t num_returned = 0;
};

// A question that waits until it is known what it sends. It is a message already, so that it is on the disk
// whatever becomes of the window.
struct PlannedQuestion {
  enum class Kind { kAnswered, kContinued };
  std::uint64_t id = 0;
  Kind kind = Kind::kAnswered;
  MessageId message_id = {};  // the question that is answered, or the answer that is continued
  // Of a question that was written for this: the end of the path before. When it cannot be sent, it is a
  // draft again.
  std::optional<MessageId> shown_before = {};
  // Whether the summary that is to be sent could not be written: the oldest turns leave without one.
  bool without_summary = false;
};

struct ChatRecord {
  ChatId id;
  Chat chat;  // until kept.loaded without its messages
  KeptChat kept;
  FolderId folder;
  bool pinned = false;
  std::int64_t position = 0;               // the list begins with the highest
  std::optional<std::int64_t> trashed_ms;  // since when it lies in the trash
  Draft draft;
  std::deque<std::string> queued;  // asked when the answer under way is done or the model loaded, in turn
  std::optional<RequestId> answering;
  std::optional<PlannedQuestion> planned;
  // Of what has left the context, as far as it is written by now.
  std::optional<std::string> summary_under_way;
  bool submitting = false;  // an answer waits for its question to be on the disk
  bool failed = false;      // the last answer did
  std::string model_path;   // of the model that answered last, valid UTF-8; empty: none, or not known
  ui::ContextMeter context;
};

// Whether a question can be asked at once, and need not be queued.
inline bool is_free(const ChatRecord& record) {
  return !record.answering && !record.submitting && !record.planned && record.kept.loaded;
}

std::string title_of(const ChatRecord& record);
// The draft as it would be sent.
std::string composed_draft(const ChatRecord& record);
// What is written and not asked yet, as the store keeps it: questions that wait in the queue, and the draft.
std::string kept_draft(const ChatRecord& record);
// As the store is to know it.
ChatHead head_of(const ChatRecord& record);

}  // namespace octavo::app
