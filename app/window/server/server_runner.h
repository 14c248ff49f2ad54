// Opens and closes the port of the window's server, on a thread that may wait: answers that run when it is
// closed get their ends first.
//
// Thread: calls from the window's.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <variant>
#include <vector>

#include "app/server/http/server.h"
#include "app/window/job_thread.h"
#include "app/window/server/server_door.h"
#include "engine/base/result.h"

namespace octavo::app {

// What became of a wish: it listens there, it ended (port 0), or why it does not listen.
struct ServerReport {
  std::uint16_t port = 0;
  std::optional<Error> problem = {};
};

class ServerRunner {
 public:
  // The door must outlive this.
  ServerRunner(ServerDoor& door, std::function<void()> wake_up);
  // Closes the port, and waits for the ends of answers as stop() does. Whoever answers has cancelled them.
  ~ServerRunner();

  // On this machine alone.
  void start(std::uint16_t port) { jobs_.give(Start{port}); }
  // Nobody is let in any more; whoever answers has to cancel what runs. What has no end then is cut.
  void stop() { jobs_.give(Stop{}); }
  // Since the last call, in the order of the wishes.
  std::vector<ServerReport> take_reports() { return jobs_.take_outcomes(); }

  // Requests that have no complete answer yet.
  std::size_t num_open_answers() const;

 private:
  struct Start {
    std::uint16_t port;
  };
  struct Stop {};
  using Job = std::variant<Start, Stop>;

  ServerReport perform(const Job& job);
  void close();

  ServerDoor& door_;
  mutable std::mutex mutex_;
  std::unique_ptr<http::Server> server_;  // guarded by mutex_
  JobThread<Job, ServerReport> jobs_;     // last: it uses all of the above
};

}  // namespace octavo::app
