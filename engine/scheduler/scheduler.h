// Decides, step by step, which sequences run how many tokens in which blocks. Policy only: no clock, thread, tensor or
// random device; the same calls give the same decisions. Engine thread.
//
// A sequence's computed tokens catch up with its known tokens: a prompt in chunks, then one token a step, and after a
// preemption prompt and output again as if they were one prompt. There is no separate prefill phase.
//
//   schedule() -> SchedulerOutput -> (a Runner executes it) -> commit() -> finish() of what ended
//
// The rules (first come first served, latest-first preemption, watermark, all or nothing): design in ARCHITECTURE.md.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/api/block_event.h"
#include "engine/api/engine_options.h"
#include "engine/api/kv_snapshot.h"
#include "engine/api/metrics.h"
#include "engine/api/sampling_params.h"
#include "engine/base/ids.h"
#include "engine/base/result.h"
#include "engine/scheduler/scheduler_output.h"

namespace octavo::scheduler {

struct SchedulerOptions {
  std::int32_t block_size = 16;
  std::int32_t num_blocks = 0;
  std::int64_t bytes_per_block = 0;  // for figures only
  std::int32_t max_num_seqs = 64;    // running sequences in a step
  std::int32_t max_num_batched_tokens = 512;
  std::int32_t max_model_len = 0;
  bool enable_prefix_caching = true;
  std::int32_t num_host_blocks = 0;  // at most num_blocks; 0: no swapping
  PreemptionPolicy preemption_mode = PreemptionPolicy::kAuto;
  AdmissionAfterPreemption admit_after_preemption = AdmissionAfterPreemption::kResumed;
  MemoryManager memory_manager = MemoryManager::kPaged;
  BatchingPolicy batching_policy = BatchingPolicy::kIteration;
  bool prefill_first = false;  // a step that computes known tokens extends no output: for measurements
};

struct NewRequest {
  RequestId request_id;
  std::vector<TokenId> prompt_token_ids;  // at least one
  SamplingParams sampling;                // n outputs
  std::uint64_t seed = 0;
  std::string cache_salt = {};
};

// A token that was drawn for a sequence in the step being committed.
struct CommittedToken {
  SequenceId sequence_id;
  TokenId token_id = -1;
};

class Scheduler {
 public:
  explicit Scheduler(const SchedulerOptions& options);
  ~Scheduler();

  // Puts a request at the end of the queue. Refuses, with the numbers, one that can never fit the model's length or the
  // pool. A prompt that leaves no room for a generated token is refused too.
  Result<void> add(NewRequest request);

  // Frees everything of a request in whatever state it is. False when it is unknown (it has ended).
  // REQUIRES: the last step was committed or discarded; so for finish().
  bool abort(RequestId request_id);

  bool has_work() const;  // anything waiting or running
  std::int32_t num_waiting() const;  // groups
  std::int32_t num_running() const;

  // REQUIRES: the previous output was committed or discarded (an empty one needs neither), each of its targets has got
  // its token or its request was ended, and sequences that reached max_model_len were ended.
  SchedulerOutput schedule();

  // The rows of `step` have KV now, and these tokens were drawn. Full blocks become findable.
  void commit(const SchedulerOutput& step, std::span<const CommittedToken> tokens);

  // The rows of `step` were not computed (the device failed): nothing of it counts, copies are undone, and the same rows
  // come again unless the caller aborts their requests.
  void discard(const SchedulerOutput& step);

  // A sequence has ended (by whatever the caller found); its blocks go back, findable by content. When it was the last
  // of its request, the request is forgotten.
  void finish(SequenceId sequence_id);

  // The output of a request by index, while it is known: to name the sequences of a request.
  struct SequenceView {
    SequenceId sequence_id;
    RequestId request_id;
    std::uint32_t output_index = 0;
    std::span<const TokenId> token_ids;  // prompt and output
    std::int32_t num_prompt_tokens = 0;
    std::int32_t num_computed_tokens = 0;
  };
  std::vector<SequenceView> sequences_of(RequestId request_id) const;

  void reset_prefix_cache();

  // What happened to blocks since the last call, in order; times are left to the caller.
  std::vector<BlockEvent> take_events();

  const KvTotals& totals() const;
  KvFigures figures() const;
  // Everything, for the Memory view. time_us is left to the caller.
  KvSnapshot snapshot() const;

  // Invariants 1 to 3 and 5 of ARCHITECTURE.md "Blocks", each recomputed from nothing; the first broken one as a
  // sentence, else nullopt. O(blocks + table entries): for tests and simulation.
  std::optional<std::string> broken_invariant() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace octavo::scheduler
