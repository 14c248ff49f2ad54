// Many who ask one engine: the events of a request go to whoever submitted it, instead of to whoever polls.
//
// Thread: any may submit and cancel. Sinks and the observer are called on the router's own thread, one at a
// time, in the order of events; they must return soon, and must not submit.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <stop_token>
#include <thread>
#include <unordered_map>
#include <vector>

#include "engine/api/event.h"
#include "engine/api/request.h"
#include "engine/base/ids.h"
#include "engine/engine.h"

namespace octavo::app {

// Whether it is the last of its request.
bool is_last_event(const EngineEvent& event);

class RequestRouter {
 public:
  // `request` is its index among those that were submitted together.
  using Sink = std::function<void(std::size_t request, const EngineEvent& event)>;
  using Observer = std::function<void(const EngineEvent& event)>;
  using Tick = std::function<void()>;

  // REQUIRES: nobody else polls the engine, which outlives this.
  //   everything  sees each event before its sink does
  //   tick  called now and then, at least every tenth of a second or so
  RequestRouter(Engine& engine, Observer everything, Tick tick = {});
  // Cancels what still runs; its last events reach their sinks first.
  ~RequestRouter();
  RequestRouter(const RequestRouter&) = delete;
  RequestRouter& operator=(const RequestRouter&) = delete;

  // All at once, in this order.
  //   submitted  is told their ids before any of their events comes
  std::vector<RequestId> submit(std::vector<GenerationRequest> requests, Sink sink,
                                const std::function<void(const std::vector<RequestId>&)>& submitted);
  void cancel(const std::vector<RequestId>& requests);
  void cancel_all();

  std::size_t num_open() const;     // requests that have not ended
  std::size_t num_waiting() const;  // of these, those that have no blocks yet

 private:
  struct Open {
    std::shared_ptr<Sink> sink;  // of all that were submitted together
    std::size_t index = 0;
    bool waiting = true;
  };

  void run(const std::stop_token& stop);
  void pass_on(const EngineEvent& event);

  Engine& engine_;
  const Observer everything_;
  const Tick tick_;
  mutable std::mutex mutex_;                  // held while requests are submitted: their events wait for it
  std::unordered_map<RequestId, Open> open_;  // guarded by mutex_
  std::size_t num_waiting_ = 0;               // guarded by mutex_
  std::jthread thread_;                       // last: it uses all of the above
};

}  // namespace octavo::app
