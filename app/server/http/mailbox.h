// What other threads want of the server's thread: to look at an answer that has moved on, to stop accepting,
// to end. A message wakes the server from its wait (eventfd).
//
// Ownership: shared by the server and all answers, so that an answer may outlive the server; what is posted
// then is dropped.
// Thread: any, but take and close: the server's.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "app/files/file_descriptor.h"

namespace octavo::http {

// Never given twice by one server: an event for a connection that is gone meets no other.
using ConnectionId = std::uint64_t;

class PendingAnswer;

class Mailbox {
 public:
  explicit Mailbox(app::FileDescriptor event) : event_(std::move(event)) {}

  void post(std::shared_ptr<PendingAnswer> answer);
  void ask_to_stop_accepting();
  void ask_to_end();

  bool is_asked_to_stop_accepting() const { return stop_accepting_; }
  bool is_asked_to_end() const { return end_; }

  int event() const { return event_.get(); }  // readable when there is something
  std::vector<std::shared_ptr<PendingAnswer>> take();
  void close();

 private:
  void wake_up();

  const app::FileDescriptor event_;
  std::atomic<bool> stop_accepting_ = false;
  std::atomic<bool> end_ = false;

  std::mutex mutex_;  // held for a few instructions; nothing is called with it
  std::vector<std::shared_ptr<PendingAnswer>> answers_;
  bool is_closed_ = false;
};

}  // namespace octavo::http
