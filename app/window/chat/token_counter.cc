#include "app/window/chat/token_counter.h"

#include <ctime>
#include <utility>

namespace octavo::app {

TokenCounter::TokenCounter(const tokenizer::Tokenizer& tokenizer, std::function<void()> wake_up)
    : tokenizer_(tokenizer), wake_up_(std::move(wake_up)), thread_([this] { run(); }) {}

TokenCounter::~TokenCounter() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

void TokenCounter::count(ChatId chat_id, std::vector<ChatMessage> messages) {
  {
    const std::lock_guard lock(mutex_);
    wanted_[chat_id] = std::move(messages);
  }
  changed_.notify_one();
}

void TokenCounter::count_attachment(ChatId chat_id, std::uint64_t attachment_id, std::string text) {
  {
    const std::lock_guard lock(mutex_);
    attachments_.push_back({chat_id, attachment_id, std::move(text)});
  }
  changed_.notify_one();
}

std::vector<TokenCount> TokenCounter::take_results() {
  const std::lock_guard lock(mutex_);
  return std::exchange(results_, {});
}

// What the chat comes to is asked for on every key; the files wait for it.
void TokenCounter::run() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return stopping_ || !wanted_.empty() || !attachments_.empty(); });
    if (stopping_) return;
    TokenCount count;
    bool counted = true;
    if (!wanted_.empty()) {
      const auto job = wanted_.extract(wanted_.begin());
      lock.unlock();
      const auto token_ids =
          tokenizer_.encode_chat(job.mapped(), static_cast<std::int64_t>(std::time(nullptr)));
      counted = token_ids.has_value();
      if (counted) count = {job.key(), 0, static_cast<std::int32_t>(token_ids->size())};
    } else {
      const Attachment file = std::move(attachments_.front());
      attachments_.pop_front();
      lock.unlock();
      const auto token_ids = tokenizer_.encode(file.text, /*parse_special=*/false, /*add_bos=*/false);
      counted = token_ids.has_value();
      if (counted) count = {file.chat_id, file.attachment_id, static_cast<std::int32_t>(token_ids->size())};
    }
    lock.lock();
    if (!counted) continue;
    results_.push_back(count);
    lock.unlock();
    wake_up_();
    lock.lock();
  }
}

}  // namespace octavo::app
