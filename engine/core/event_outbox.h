// Events on their way from the engine thread to whoever polls. The engine never waits for a slow reader, and
// the outbox stays bounded all the same: while nobody polls, what is added about an output joins the piece
// that already waits for the reader. So for each output of a request there is at most one TokensGenerated,
// and for each request at most one of every other kind: no more memory than the answers themselves, however
// long they wait.
//
// Joined are the tokens and text of one output, the steps of one beam search, and the preemptions of one
// request (their tokens dropped add up). The order of events of one output, and of a request's beginning and
// end, is kept.
//
// Thread: any.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "engine/api/event.h"
#include "engine/base/ids.h"

namespace octavo {

class EventOutbox {
 public:
  void add(std::vector<EngineEvent> events);

  // From now on nobody waits in take(). Events may still be added.
  void close();

  // Everything that waits, oldest first. Waits up to `timeout` for the first event; empty when none came.
  std::vector<EngineEvent> take(std::chrono::microseconds timeout);

 private:
  void add_locked(EngineEvent event);

  std::mutex mutex_;
  std::condition_variable not_empty_;
  std::vector<EngineEvent> waiting_;  // guarded by mutex_
  bool closed_ = false;               // guarded by mutex_
  // Where in waiting_ the joinable event stands: TokensGenerated of an output, the others of a request.
  std::map<std::pair<RequestId, std::int32_t>, std::size_t> tokens_at_;     // guarded by mutex_
  std::map<RequestId, std::size_t> beams_at_, preempted_at_, progress_at_;  // guarded by mutex_
};

}  // namespace octavo
