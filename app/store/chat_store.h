// The chats on the disk, as the window uses them: everything goes in as values and comes out as values, and
// nothing here ever waits for the disk but the constructor's thread of its own, which alone touches the file.
// What the store promises stands in store_worker.h and store_opening.h.
//
// Thread: all calls from the window's; `wake_up` is called from the store's.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include "app/store/store_worker.h"
#include "engine/base/clock.h"

namespace octavo::app {

enum class Urgency {
  kSoon,  // with the next batch
  kNow,   // at once, with everything that was pushed before
};

class ChatStore {
 public:
  // Opens the file on its own thread; StoreOpened is the first report. `wake_up` is called whenever there are
  // reports or more is committed. The clock must outlive the store.
  ChatStore(StoreOptions options, const Clock& clock, std::function<void()> wake_up);
  // Writes what is pending, then ends.
  ~ChatStore();
  ChatStore(const ChatStore&) = delete;
  ChatStore& operator=(const ChatStore&) = delete;

  StoreTicket push(StoreChange change, Urgency urgency = Urgency::kSoon);
  bool committed(StoreTicket ticket) const { return ticket <= committed_; }

  // ChatLoaded follows, with everything that was pushed before.
  void load(ChatId chat_id);
  // SearchProgress follows. A new search ends the one before; an empty query only ends it.
  void search(std::uint64_t search_id, std::string query);

  std::vector<StoreReport> take_reports();

 private:
  struct Change {
    StoreTicket ticket;
    StoreChange change;
    Urgency urgency;
  };
  struct Load {
    ChatId chat_id;
  };
  struct Find {
    std::uint64_t search_id;
    std::string query;
  };
  using Job = std::variant<Change, Load, Find>;

  void give(Job job);
  void run();
  void take(std::vector<Job> jobs);

  const Clock& clock_;
  const std::function<void()> wake_up_;
  StoreWorker worker_;  // the thread's, from the moment that it runs
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Job> jobs_;             // guarded by mutex_
  std::vector<StoreReport> reports_;  // guarded by mutex_
  bool stopping_ = false;             // guarded by mutex_
  std::atomic<StoreTicket> committed_ = 0;
  StoreTicket newest_ticket_ = 0;
  std::thread thread_;
};

}  // namespace octavo::app
