#include "app/window/token_counter.h"

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

void TokenCounter::count(ui::SessionId session_id, std::vector<ChatMessage> messages) {
  {
    const std::lock_guard lock(mutex_);
    wanted_[session_id] = std::move(messages);
  }
  changed_.notify_one();
}

std::vector<TokenCount> TokenCounter::take_results() {
  const std::lock_guard lock(mutex_);
  return std::exchange(results_, {});
}

void TokenCounter::run() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return stopping_ || !wanted_.empty(); });
    if (stopping_) return;
    const auto job = wanted_.extract(wanted_.begin());
    lock.unlock();
    const auto token_ids =
        tokenizer_.encode_chat(job.mapped(), static_cast<std::int64_t>(std::time(nullptr)));
    lock.lock();
    if (!token_ids) continue;
    results_.push_back({job.key(), static_cast<std::int32_t>(token_ids->size())});
    lock.unlock();
    wake_up_();
    lock.lock();
  }
}

}  // namespace octavo::app
