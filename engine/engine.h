// The engine as programs use it: a model, a pool of KV blocks, and a thread that steps. Any number of
// requests at once.
//
// Thread: submit, cancel, poll, stop and the getters may be called from any thread; events come out in order,
// to whoever polls. Stopping: stop() ends every request, with its events; the destructor stops, too, and what
// nobody polled goes with it. REQUIRES: no call is under way when the destructor begins: a thread that polls
// until its requests have ended returns after stop().
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "engine/api/block_event.h"
#include "engine/api/engine_options.h"
#include "engine/api/event.h"
#include "engine/api/expert_choices.h"
#include "engine/api/kv_snapshot.h"
#include "engine/api/metrics.h"
#include "engine/api/model_description.h"
#include "engine/api/request.h"
#include "engine/base/result.h"
#include "engine/metrics/step_recorder.h"
#include "engine/tokenizer/tokenizer.h"

namespace octavo {

// Fraction done, 0..1, while a model loads; return false to cancel. Called on the loading thread.
using LoadProgress = std::function<bool(double fraction)>;

class Engine {
 public:
  // Loads the model, sizes and allocates the pool, starts the thread. Everything that can be refused is
  // refused here or at submit, never in a step. `options.model` must be a path to a file here: looking up
  // names is app's affair.
  static Result<std::unique_ptr<Engine>> create(const EngineOptions& options, LoadProgress progress = {});
  virtual ~Engine() = default;

  virtual const EngineDescription& description() const = 0;
  virtual const tokenizer::Tokenizer& tokenizer() const = 0;

  // Returns at once; what is wrong with the request comes back as RequestFailed.
  virtual RequestId submit(GenerationRequest request) = 0;

  // All at once, in this order, so that nothing runs between them.
  virtual std::vector<RequestId> submit_all(std::vector<GenerationRequest> requests) = 0;

  // No effect on a request that has ended.
  virtual void cancel(RequestId request_id) = 0;
  // Ends one output of several with kAbort; the others go on, and with the last one the request ends. No
  // effect where outputs are chosen among each other (beams, best_of), and on one that has ended.
  virtual void cancel_output(RequestId request_id, std::int32_t output_index) = 0;
  virtual void reset_prefix_cache() = 0;

  // Ends the threads, after the step under way, and every request as a cancel does: when this returns, each
  // that was submitted has its RequestFinished or RequestFailed, to be polled as ever. From then on polls do
  // not wait, and what is submitted fails (kCancelled). The getters keep their last values. A second call has
  // no effect.
  virtual void stop() = 0;

  // Events since the last call, oldest first; waits up to `timeout` for the first one.
  virtual std::vector<EngineEvent> poll(std::chrono::microseconds timeout) = 0;

  // Called whenever new events or a snapshot are ready (to wake a window): on the engine thread, or by
  // submit() once the engine was stopped. It must return soon and must not call the engine. Set before
  // submitting.
  virtual void set_wake_up(std::function<void()> wake_up) = 0;

  // The newest published state; the pointer is to a value nobody changes. Asking once makes the engine
  // publish one of this scope at the end of the next step (or at once when idle). What is returned meanwhile
  // may be of another scope: KvSnapshot::scope().
  virtual std::shared_ptr<const KvSnapshot> kv_snapshot(SnapshotScope scope) = 0;
  // Snapshots of the pool from the next one on describe this block closely; nullopt or a block that does not
  // exist: none.
  virtual void watch_block(std::optional<BlockId> block) = 0;
  virtual KvTotals kv_totals() const = 0;

  // Which experts tokens chose in the steps since the last call, oldest first. Asking makes the engine gather
  // them for the next kMostStepsUnasked steps; of steps that ran while nobody asked nothing is known, and
  // they cost nothing. Of a model without experts: never any.
  static constexpr std::size_t kMostStepsUnasked = 64;
  virtual std::vector<ExpertChoices> take_expert_choices() { return {}; }

  // Everything that happened to blocks, and the steps: the one record of it, read where it lies, on any
  // thread. It can be read after the engine is gone.
  virtual std::shared_ptr<const metrics::StepRecorder> history() const = 0;
  // What it holds from the given marks on, and the marks to continue with. What was overwritten since is
  // skipped and counted in `num_lost`.
  using Trace = metrics::Trace;
  virtual Trace trace_since(std::uint64_t step_mark, std::uint64_t event_mark) const {
    return history()->read_since(step_mark, event_mark);
  }
};

}  // namespace octavo
