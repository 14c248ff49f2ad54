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

void TokenCounter::plan(PlanWanted wanted) {
  {
    const std::lock_guard lock(mutex_);
    if (wanted.purpose.kind == PlanPurpose::Kind::kShown) {
      shown_[wanted.purpose.chat_id] = std::move(wanted);
    } else {
      questions_.push_back(std::move(wanted));
    }
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

std::vector<PlanMade> TokenCounter::take_plans() {
  const std::lock_guard lock(mutex_);
  return std::exchange(plans_, {});
}

std::vector<AttachmentCount> TokenCounter::take_attachment_counts() {
  const std::lock_guard lock(mutex_);
  return std::exchange(attachment_counts_, {});
}

// Questions wait for their plans; what is only shown is asked for on every key; the files wait for both.
void TokenCounter::run() {
  TokenCounts counts(tokenizer_);
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] {
      return stopping_ || !questions_.empty() || !shown_.empty() || !attachments_.empty();
    });
    if (stopping_) return;
    if (!questions_.empty() || !shown_.empty()) {
      PlanWanted wanted;
      if (questions_.empty()) {
        wanted = std::move(shown_.extract(shown_.begin()).mapped());
      } else {
        wanted = std::move(questions_.front());
        questions_.pop_front();
      }
      lock.unlock();
      ContextPlan plan = plan_context(wanted.question, counts, static_cast<std::int64_t>(std::time(nullptr)));
      lock.lock();
      plans_.push_back({wanted.purpose, std::move(plan)});
    } else {
      const Attachment file = std::move(attachments_.front());
      attachments_.pop_front();
      lock.unlock();
      const auto token_ids = tokenizer_.encode(file.text, /*parse_special=*/false, /*add_bos=*/false);
      lock.lock();
      if (!token_ids) continue;
      attachment_counts_.push_back(
          {file.chat_id, file.attachment_id, static_cast<std::int32_t>(token_ids->size())});
    }
    lock.unlock();
    wake_up_();
    lock.lock();
  }
}

}  // namespace octavo::app
