// Prepares requests on a thread of its own, so that the engine never waits for a text: a prompt of megabytes
// delays those that were submitted after it, and nobody who runs.
//
// Thread: any. `deliver` is called with the queue locked, so that what it is given keeps its order; it may
// wait for the engine to take its commands, and must not call the preparer.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>
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

  // Abandons what is not prepared, delivers that, and ends the thread. A second call has no effect.
  void close();

  // One call's requests; they are delivered together. False: closed, and nothing was taken.
  bool submit(std::vector<SubmitRequest> batch);

  // A request that is still here is abandoned at once; for any other a CancelRequest is delivered, behind the
  // request itself.
  void cancel(RequestId request_id);
  // Delivers a CancelOutput, behind the request itself.
  void cancel_output(RequestId request_id, std::int32_t output_index);

 private:
  void run();
  void deliver_ready();

  const Deliver deliver_;
  RequestIntake intake_;  // preparing thread only

  std::mutex mutex_;
  std::condition_variable changed_;
  PreparationQueue queue_;  // guarded by mutex_
  bool closing_ = false;    // guarded by mutex_
  std::thread thread_;      // last: everything above exists before it runs
};

}  // namespace octavo
