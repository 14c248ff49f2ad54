// What is typed and not sent: the text, and the files that go with it.
//
// UI thread. The chats and the counter must outlive the drafts.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "app/window/chat/chats.h"
#include "app/window/chat/context_counter.h"
#include "app/window/chat/file_reader.h"
#include "ui/chat_actions.h"
#include "ui/desktop_actions.h"

namespace octavo::app {

// Counts tokens of a file that waits to be sent, and hands the result to `Drafts::take_count`.
using CountAttachment = std::function<void(ChatId, std::uint64_t attachment_id, std::string text)>;

class Drafts {
 public:
  Drafts(Chats& chats, ContextCounter& context) : chats_(chats), context_(context) {}

  void apply(const ui::actions::ChangeDraft& a);
  void apply(const ui::actions::RemoveAttachment& a);

  // Why it was not attached, or nothing.
  std::string attach(ChatId chat_id, ReadFile file);
  // The message that was typed, with the files that wait for it; nothing waits afterwards.
  // REQUIRES: the chat exists
  std::string take(ChatId chat_id, const std::string& text);
  // A message that was taken and not sent stands before what has been typed since.
  void give_back(ChatId chat_id, const std::string& message);
  // What the store had of it.
  void restore(Draft& draft, const std::string& kept);

  // Counts what waits already, too. Empty: there is no vocabulary to count with.
  void set_count_attachment(CountAttachment count_attachment);
  void take_count(ChatId chat_id, std::uint64_t attachment_id, std::int32_t num_tokens);

 private:
  Attachment new_attachment(AttachedFile file);
  void count(ChatId chat_id, const Attachment& attachment) const;
  void take_changed(ChatId chat_id, Draft& draft);

  Chats& chats_;
  ContextCounter& context_;
  CountAttachment count_attachment_;
  std::uint64_t next_attachment_ = 1;
};

}  // namespace octavo::app
