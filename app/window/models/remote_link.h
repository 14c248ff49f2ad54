// Asks servers for the window, on threads of its own: for their models and, while somebody looks, for their
// load once a second.
//
// Thread: calls from the window's; `wake_up` is called from the others.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "app/window/job_thread.h"
#include "app/window/models/remote_models.h"
#include "engine/base/clock.h"

namespace octavo::app {

// Whose load is watched.
struct WatchedServer {
  std::string address;
  std::string model;
  bool operator==(const WatchedServer&) const = default;
};

class RemoteLink {
 public:
  // The clock must outlive it.
  RemoteLink(RemoteKeys keys, const Clock& clock, std::function<void()> wake_up);
  // Ends what is asked.
  ~RemoteLink();
  RemoteLink(const RemoteLink&) = delete;
  RemoteLink& operator=(const RemoteLink&) = delete;

  void give(RemoteJob job) { jobs_.give(std::move(job)); }
  std::vector<RemoteListed> take_listed() { return jobs_.take_outcomes(); }

  // nullopt: nobody looks.
  void watch(std::optional<WatchedServer> server);
  std::vector<RemoteLoadTold> take_loads();

 private:
  std::optional<RemoteListed> ask(const RemoteJob& job);
  void run_watch();
  RemoteLoadTold look(http::Client& client, const WatchedServer& server, const std::string& key);
  bool is_stopping() const;

  const Clock& clock_;
  const std::function<void()> wake_up_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  RemoteKeys keys_;  // guarded by keys_mutex_
  std::mutex keys_mutex_;
  std::optional<WatchedServer> watched_;  // guarded by mutex_, as the next two
  std::vector<RemoteLoadTold> loads_;
  bool stopping_ = false;
  JobThread<RemoteJob, RemoteListed> jobs_;
  std::thread watch_thread_;
};

}  // namespace octavo::app
