// Decides, step by step, which sequences run how many tokens in which blocks. Policy only: no clock, thread,
// tensor or random device; the same calls give the same decisions. Engine thread.
//
// A sequence's computed tokens catch up with its known tokens: a prompt in chunks, then one token a step, and
// after a preemption prompt and output again as if they were one prompt. There is no separate prefill phase.
//
//   schedule() -> SchedulerOutput -> (a Runner executes it) -> commit() -> advance_beams(), finish() of what
//   ended
//
// Where a device would else wait for the host, the next step is made while the first is computed:
//
//   schedule() -> schedule_ahead() -> commit(), finish() of the first -> take_up() of the other, and so on
//
// The rules, after Kwon et al. 2023 (arXiv:2309.06180) sections 4.3 to 4.5:
//   two lines                  an interactive group comes before background ones, which take turns of its
//   steps
//                              (background_turns.h), and give up seats and blocks for it
//   first come, first served   within a line groups start in order of arrival; the running group that arrived
//   last is
//                              preempted first; a preempted group resumes before a newer one starts
//   all or nothing             the sequences of a group are preempted, swapped and resumed together
//   nobody ends early          a group of samples that outgrows the pool alone pauses its last one, which is
//   a
//                              group of its own from then on (group_queue.h); what ends for want of memory
//                              could not run alone in the empty pool
//   preemption                 by swap to the host pool or by recompute, whichever was measured to be cheaper
//                              (preemption_choice.h); a full host pool falls back to recompute
//   admission                  the whole prompt must fit and leave what will be taken in the next steps
//                              (policy.h, block_forecast.h); nothing starts in a step that preempted
//   waits in place             who needs a block that an end in the next steps will free does not preempt
//   shared steps               beside outputs that are extended, prompts get as many rows as keep the step
//   near
//                              its target (step_budget.h); alone they get all
//   checkpoints                of models with recurrent layers: a prompt's chunk ends where its state will be
//                              wanted again, behind the system prompt and where the next turn will part; and
//                              a long text has one every kTokensBetweenCheckpoints (state_manager.h)
//   no double work             a request whose prompt continues what an older one is about to compute waits
//   speculation                a sequence that decodes may get rows for guesses of its next tokens
//                              (prompt_lookup.h, draft_gate.h), from what a step has left when everybody else
//                              was served
// How blocks are given out is not decided here: allocation_strategy.h.
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
#include "engine/api/request.h"
#include "engine/api/sampling_params.h"
#include "engine/base/ids.h"
#include "engine/base/result.h"
#include "engine/scheduler/draft_gate.h"
#include "engine/scheduler/measured_costs.h"
#include "engine/scheduler/scheduler_output.h"

namespace octavo::scheduler {

// A long text has a checkpoint of its recurrent layers at least so often, whatever it says: where a chunk or
// a row happens to end.
inline constexpr std::int32_t kTokensBetweenCheckpoints = 2048;

struct SchedulerOptions {
  std::int32_t block_size = 16;
  std::int32_t num_blocks = 0;
  std::int64_t bytes_per_block = 0;  // for figures only
  std::int32_t max_num_seqs = 64;    // running sequences in a step
  std::int32_t max_num_batched_tokens = 512;
  std::int32_t target_step_us = 0;  // of a step in which outputs are extended beside prompts; 0: any
  std::int32_t max_model_len = 0;
  bool enable_prefix_caching = true;
  std::int32_t num_host_blocks = 0;  // at most num_blocks; 0: no swapping
  // Of recurrent layers; 0: the model has none. Else no more sequences run than there are states, each of
  // which owns one; what is left is for checkpoints.
  std::int32_t num_states = 0;
  std::int32_t num_host_states = 0;
  std::int64_t bytes_per_state = 0;  // to weigh a swap, and for figures
  // Of layers with a window that keep their keys and values in a pool of their own: its tokens; 0: there are
  // none. No more sequences run than that pool has places for (block/window_manager.h). REQUIRES: no states.
  std::int32_t window = 0;
  std::int32_t num_window_blocks = 0;
  std::int32_t num_host_window_blocks = 0;
  std::int64_t bytes_per_window_block = 0;  // for figures only
  PreemptionPolicy preemption_mode = PreemptionPolicy::kAuto;
  AdmissionAfterPreemption admit_after_preemption = AdmissionAfterPreemption::kResumed;
  MemoryManager memory_manager = MemoryManager::kPaged;
  BatchingPolicy batching_policy = BatchingPolicy::kIteration;
  AdmissionReserve admission_reserve = AdmissionReserve::kLookAhead;
  bool prefill_first = false;  // a step that computes known tokens extends no output: for measurements
  Speculation speculative = Speculation::kOff;
  std::int32_t num_speculative_tokens = kMostRowsWithDrafts - 1;  // of a sequence in a step, at most
};

struct NewRequest {
  RequestId request_id;
  std::vector<TokenId> prompt_token_ids;  // at least one
  SamplingParams sampling;                // num_sequences() sequences
  std::uint64_t seed = 0;
  std::string cache_salt = {};
  RetentionClass retention = RetentionClass::kScratch;  // of what it leaves in the prefix cache
  std::int32_t num_system_tokens = 0;                   // at the prompt's start: kept as a system prompt
  std::int32_t num_beam_candidates = 0;  // continuations of each beam that the search wants to see
  // At the prompt's start: what the next turn's prompt will begin with too. Recurrent layers keep a
  // checkpoint there, and layers with a window the tokens before it.
  std::int32_t num_next_turn_tokens = 0;
  RequestPriority priority = RequestPriority::kInteractive;
  std::optional<EmbeddingParams> embedding = {};  // then nothing is drawn: who reads hidden states ends it
};

// One beam after a step: `token_id` after what `parent` carries.
struct BeamContinuation {
  SequenceId parent;
  TokenId token_id = -1;
};

class Scheduler {
 public:
  explicit Scheduler(const SchedulerOptions& options);
  ~Scheduler();

  // Puts a request at the end of the queue. Refuses, with the numbers, one that can never fit the model's
  // length or the pool. A prompt that leaves no room for a generated token is refused too.
  Result<void> add(NewRequest request);

  // Frees everything of a request in whatever state it is, findable like that of a finished one. False
  // when it is unknown (it has ended).
  // REQUIRES: the last step was committed or discarded, but for one that is ahead; so for finish().
  bool abort(RequestId request_id);

  bool has_work() const;             // anything waiting or running
  std::int32_t num_waiting() const;  // groups
  std::int32_t num_running() const;
  std::int32_t num_swapped_out() const;

  // REQUIRES: the previous output was committed or discarded (an empty one needs neither), none is ahead,
  // each of its targets has got its token (of a draft's, the first) or its request was ended, and sequences
  // that reached max_model_len were ended.
  SchedulerOutput schedule();

  // The step behind `step`, whose draws are not known: its rows begin with them (kNotDrawnYet). They extend
  // the outputs that `step` extends, but those that end there by their number of tokens. Empty, and nothing
  // happens, where anything else could be worth doing: while somebody waits, computes a prompt, guesses ahead
  // or searches by beams, or would have to give way. So no token is another one, and nobody's turn comes
  // later than by this step.
  //
  // What is freed until its commit() may have rows in it, and tables that `step` looks at may move. REQUIRES:
  // a device makes steps and moves in the order in which it gets them; `step` is in flight, the newest, and
  // begun.
  SchedulerOutput schedule_ahead(const SchedulerOutput& step);

  // Makes `step`, which is ahead, the one in flight, after the commit() of the one before it and after all
  // ends: rows of sequences that have ended are taken out. Their draws are nobody's.
  void take_up(SchedulerOutput& step);

  // The rows of `step` have KV now, and these tokens were drawn. Full blocks become findable. Of a draft,
  // what was not drawn has no KV: its slots and blocks go back. `guessable`: of which sequences the model can
  // guess the next tokens in the next step.
  void commit(const SchedulerOutput& step, std::span<const CommittedToken> tokens,
              std::span<const SequenceId> guessable = {});

  // The device failed in `step`: its results, and those of one that is ahead, are discarded. Requests that
  // had a part in it are ended, and returned in order of arrival; who was swapped out by it will recompute.
  std::vector<RequestId> discard(const SchedulerOutput& step);

  // After commit(), when every live beam of a group has been drawn continuations for since the last call: the
  // beams that continue, best first, at most as many as the group has seats. (Beams may come to their targets
  // in different steps, and after a recompute preemption a second time, with the same continuations.) A
  // parent may continue several times, which forks it, or not at all, which prunes it. Returns the sequences
  // that carry them now, in the same order. REQUIRES: every parent is live; at least one continuation.
  std::vector<SequenceId> advance_beams(RequestId request_id,
                                        std::span<const BeamContinuation> continuations);

  // A sequence has ended (by whatever the caller found, in whatever state it is); its blocks go back,
  // findable by content, its partly filled last one too. When it was the last of its request, the request is
  // forgotten. While its group computes one prompt for several outputs, it has nothing of its own: it gets no
  // token any more, and ends with the prompt. REQUIRES: no beam; while its group does so, another one goes
  // on.
  void finish(SequenceId sequence_id);

  // What became of the prompt's tokens, and why the cache did not have more of them. REQUIRES: it is known.
  PromptAccount prompt_account(RequestId request_id) const;
  PrefixMiss prefix_miss(RequestId request_id) const;

  void set_costs(const MeasuredCosts& costs);
  // What the step that was committed last took, without its swaps. `has_ended`: false where a device still
  // computes what will show in a later step's time.
  void note_step_time(std::int64_t us, bool has_ended);
  void note_swap_times(std::int64_t out_us, std::int64_t in_us);  // of a step: added to totals()

  // The outputs of a request in order, while it is known: to name its sequences. (Of a request that has
  // paused outputs, those that have ended may be missing.)
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
  void release_pins();  // contents of class kPinned are worth a system prompt from now on

  // What happened to blocks since the last call, in order; times are left to the caller.
  std::vector<BlockEvent> take_events();

  const KvTotals& totals() const;
  KvFigures figures() const;
  // For the views; time_us is left to the caller.
  KvSnapshot snapshot(SnapshotScope scope = SnapshotScope::kPool) const;
  // All that is known of one block. REQUIRES: 0 <= block < num_blocks.
  BlockDetail describe_block(BlockId block) const;

  // Invariants 1 to 3 and 5 of ARCHITECTURE.md "Blocks", each recomputed from nothing; the first broken one
  // as a sentence, else nullopt. O(blocks + table entries): for tests and simulation.
  std::optional<std::string> broken_invariant() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace octavo::scheduler
