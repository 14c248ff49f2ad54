#include "app/store/chat_store.h"

#include <algorithm>
#include <chrono>
#include <iterator>

#include "engine/base/overloaded.h"

namespace octavo::app {

ChatStore::ChatStore(StoreOptions options, const Clock& clock, std::function<void()> wake_up)
    : clock_(clock), wake_up_(std::move(wake_up)), worker_(std::move(options)), thread_([this] { run(); }) {}

ChatStore::~ChatStore() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

StoreTicket ChatStore::push(StoreChange change, Urgency urgency) {
  give(Change{++newest_ticket_, std::move(change), urgency});
  return newest_ticket_;
}

void ChatStore::load(ChatId chat_id) { give(Load{chat_id}); }

void ChatStore::search(std::uint64_t search_id, std::string query) {
  give(Find{search_id, std::move(query)});
}

std::vector<StoreReport> ChatStore::take_reports() {
  const std::lock_guard lock(mutex_);
  return std::exchange(reports_, {});
}

void ChatStore::give(Job job) {
  {
    const std::lock_guard lock(mutex_);
    jobs_.push_back(std::move(job));
  }
  changed_.notify_one();
}

void ChatStore::run() {
  std::unique_lock lock(mutex_);
  while (true) {
    const auto has_work = [this] { return stopping_ || !jobs_.empty(); };
    const auto due_us = worker_.due_us();
    if (!due_us) {
      changed_.wait(lock, has_work);
    } else {
      const std::int64_t wait_us = std::max<std::int64_t>(0, *due_us - clock_.now_us());
      changed_.wait_for(lock, std::chrono::microseconds(wait_us), has_work);
    }
    auto jobs = std::exchange(jobs_, {});
    if (stopping_ && jobs.empty()) return;  // the worker writes the rest as it ends
    lock.unlock();
    take(std::move(jobs));
    worker_.step(clock_.now_us());
    auto reports = worker_.take_reports();
    const StoreTicket committed = worker_.committed();
    const bool news = !reports.empty() || committed != committed_;
    lock.lock();
    reports_.insert(reports_.end(), std::make_move_iterator(reports.begin()),
                    std::make_move_iterator(reports.end()));
    committed_ = committed;
    if (!news) continue;
    lock.unlock();
    wake_up_();
    lock.lock();
  }
}

void ChatStore::take(std::vector<Job> jobs) {
  const std::int64_t now_us = clock_.now_us();
  for (Job& job : jobs) {
    std::visit(Overloaded{[&](Change& change) {
                            worker_.change(change.ticket, std::move(change.change),
                                           change.urgency == Urgency::kNow, now_us);
                          },
                          [&](Load& load) { worker_.load(load.chat_id); },
                          [&](Find& find) { worker_.search(find.search_id, find.query); }},
               job);
  }
}

}  // namespace octavo::app
