// Plans what chats send, and counts the tokens of files, on a thread of its own: a long text takes
// milliseconds, which typing must not wait for.
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

#include "app/window/plan_context.h"
#include "engine/tokenizer/tokenizer.h"

namespace octavo::app {

// Of a file that is not sent yet.
struct AttachmentCount {
  ChatId chat_id;
  std::uint64_t attachment_id = 0;
  std::int32_t num_tokens = 0;
};

class TokenCounter {
 public:
  TokenCounter(const tokenizer::Tokenizer& tokenizer, std::function<void()> wake_up);
  // Waits for the count in progress.
  ~TokenCounter();
  TokenCounter(const TokenCounter&) = delete;
  TokenCounter& operator=(const TokenCounter&) = delete;

  void plan(PlanWanted wanted);
  // A file by itself, before it is part of a message.
  void count_attachment(ChatId chat_id, std::uint64_t attachment_id, std::string text);

  // Since the last call. What cannot be tokenised gives no count.
  std::vector<PlanMade> take_plans();
  std::vector<AttachmentCount> take_attachment_counts();

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
  std::deque<PlanWanted> questions_;                // guarded by mutex_
  std::map<ChatId, PlanWanted> shown_;              // guarded by mutex_
  std::deque<Attachment> attachments_;              // guarded by mutex_
  std::vector<PlanMade> plans_;                     // guarded by mutex_
  std::vector<AttachmentCount> attachment_counts_;  // guarded by mutex_
  bool stopping_ = false;                           // guarded by mutex_
  std::thread thread_;
};

}  // namespace octavo::app
