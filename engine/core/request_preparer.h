// Prepares requests on threads of its own, so that the engine never waits for a text: a prompt of megabytes
// delays those that were submitted after it, and nobody who runs. What wants structured output delays nobody
// but others that want it, and of these two are compiled at a time: a grammar may take seconds, so such a
// request enters the engine when it is ready, before others or after them.
//
// Thread: any. `deliver` is called with the queues locked, so that what it is given keeps its order; it may
// wait for the engine to take its commands, and must not call the preparer.
#pragma once

#include <array>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "engine/base/ids.h"
#include "engine/core/command.h"
#include "engine/core/preparation_queue.h"
#include "engine/core/request_intake.h"

namespace octavo {

class RequestPreparer {
 public:
  using Deliver = std::function<void(std::vector<EngineCommand> commands)>;

  RequestPreparer(IntakeSources sources, Deliver deliver);
  ~RequestPreparer() { close(); }

  // Abandons what is not prepared, delivers that, and ends the threads. A second call has no effect.
  void close();

  // One call's requests; they are delivered together. False: closed, and nothing was taken.
  bool submit(std::vector<SubmitRequest> batch);

  // A request that is still here is abandoned at once; for any other a CancelRequest is delivered, behind the
  // request itself.
  void cancel(RequestId request_id);
  // Delivers a CancelOutput, behind the request itself.
  void cancel_output(RequestId request_id, std::int32_t output_index);

 private:
  enum class Work { kTexts, kStructured };
  using QueuePointer = std::shared_ptr<PreparationQueue>;  // a thread may finish in one that has been left

  void run(Work work);
  std::optional<std::pair<QueuePointer, PreparationQueue::Job>> take(Work work);
  void deliver_ready();

  const IntakeSources sources_;
  const Deliver deliver_;

  std::mutex mutex_;
  std::condition_variable changed_;
  // Guarded by mutex_. The first is of texts, in order; each other of one call that wants structured output.
  std::vector<QueuePointer> queues_;
  bool closing_ = false;                // guarded by mutex_
  std::array<std::thread, 3> threads_;  // last: everything above exists before they run
};

}  // namespace octavo
