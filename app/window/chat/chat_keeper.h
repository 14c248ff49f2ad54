// Keeps the store in step with the chats of the window: compares what a chat is with what the store was last
// told of it, and pushes the difference. So whatever changes a chat, nothing has to remember to save
// it; only a message that changes after it was added must be named.
//
// The messages of a very long chat go in parts, as fast as the disk takes them: they are never all in memory
// twice.
//
// UI thread. Without a store every call has no effect, and everything counts as saved.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "app/chat/chat.h"
#include "app/store/chat_store.h"

namespace octavo::app {

// What the store knows of one chat.
struct KeptChat {
  ChatHead head;                               // as last pushed
  bool stored = false;                         // an empty chat is not worth a row
  bool loaded = true;                          // false: the messages are still in the file only
  bool loading = false;                        // asked for
  std::string first_system_prompt;             // that it began with: alone it is not worth a row
  std::vector<MessageId> choices;              // the active child of each message that was pushed
  bool in_parts = false;                       // the rest of its messages waits for the disk
  std::map<MessageId, std::string> summaries;  // as pushed
};

class ChatKeeper {
 public:
  explicit ChatKeeper(std::function<std::int64_t()> unix_time_ms) : unix_time_ms_(std::move(unix_time_ms)) {}

  // The store must outlive the keeper.
  void attach_store(ChatStore& store) { store_ = &store; }
  ChatStore* store() const { return store_; }
  std::int64_t unix_time_ms() const { return unix_time_ms_(); }

  // Pushes what is new: all of it with kNow, otherwise as much as may wait for the disk, and is called again
  // while the chat is `in_parts`. The ticket is of everything that was ever pushed; 0 without a store.
  StoreTicket keep(const Chat& chat, const ChatHead& now, KeptChat& kept, Urgency urgency = Urgency::kSoon);
  // A message that changed since it was added.
  void keep_message(const KeptChat& kept, const Message& message);
  // Text that is about to be added at the message's end.
  void keep_growth(const KeptChat& kept, const Message& message, std::string_view text,
                   const std::vector<TokenId>& token_ids);
  void erase(const KeptChat& kept);
  void push(StoreChange change, Urgency urgency = Urgency::kSoon);

  // Whether all up to this ticket is on the disk.
  bool saved(StoreTicket ticket) const { return store_ == nullptr || store_->committed(ticket); }
  // Forgets what was pushed, so that the next `keep` pushes all of it.
  static void forget(KeptChat& kept);
  // The chat is what the store has.
  static void learn(const Chat& chat, KeptChat& kept);

 private:
  bool has_room() const;
  bool keep_messages(const Chat& chat, KeptChat& kept, Urgency urgency);
  void keep_summaries(const Chat& chat, KeptChat& kept);
  bool keep_head(const Chat& chat, ChatHead now, KeptChat& kept, bool changed, Urgency urgency);

  ChatStore* store_ = nullptr;
  std::function<std::int64_t()> unix_time_ms_;
  StoreTicket newest_ = 0;
};

}  // namespace octavo::app
