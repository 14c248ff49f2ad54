// Counts the tokens of chats on a thread of its own: a long one takes milliseconds, which typing must
// not wait for. Of several requests for the same chat only the newest is counted.
//
// Thread: calls from the window's; `wake_up` is called from the counting one. The tokenizer must outlive the
// counter.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "engine/api/request.h"
#include "engine/tokenizer/tokenizer.h"

namespace octavo::app {

struct TokenCount {
  ChatId chat_id;
  std::uint64_t attachment_id = 0;  // 0: of the chat
  std::int32_t num_tokens = 0;
};

class TokenCounter {
 public:
  TokenCounter(const tokenizer::Tokenizer& tokenizer, std::function<void()> wake_up);
  // Waits for the count in progress.
  ~TokenCounter();
  TokenCounter(const TokenCounter&) = delete;
  TokenCounter& operator=(const TokenCounter&) = delete;

  void count(ChatId chat_id, std::vector<ChatMessage> messages);
  // A file by itself, before it is part of a message.
  void count_attachment(ChatId chat_id, std::uint64_t attachment_id, std::string text);
  // Results since the last call. What cannot be tokenised gives none.
  std::vector<TokenCount> take_results();

 private:
  struct Attachment {
    ChatId chat_id;
    std::uint64_t attachment_id;
    std::string text;
  };

  void run();

  const tokenizer::Tokenizer& tokenizer_;
  const std::function<void()> wake_up_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<ChatId, std::vector<ChatMessage>> wanted_;  // guarded by mutex_
  std::deque<Attachment> attachments_;                 // guarded by mutex_
  std::vector<TokenCount> results_;                    // guarded by mutex_
  bool stopping_ = false;                              // guarded by mutex_
  std::thread thread_;
};

}  // namespace octavo::app
