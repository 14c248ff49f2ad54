// A runner without a model, which finds out whether the paging is right. Each slot of its "KV cache" holds
// the hash of the token prefix that the slot stands for. It moves blocks, writes rows and reads slots through
// the block tables as the real one does, and then compares every slot that attention would read with what it
// must hold, known from the tokens that it drew itself. The next token is a hash of all slots read, so that
// any paging error changes tokens.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "engine/api/kv_snapshot.h"
#include "engine/base/clock.h"
#include "engine/base/ids.h"
#include "engine/runner/grammar_masks.h"
#include "engine/runner/runner.h"
#include "tests/simulation/random.h"
#include "tests/simulation/script.h"

namespace octavo::simulation {

// Where a failing step stops. What it was to write holds rubbish from there on.
enum class FailurePoint : std::uint8_t { kAtOnce, kAmongMoves, kAmongRows };

// What the simulated device takes: memory is moved a hundred times as slowly as a token is computed, the
// other way round, or so that it is nearly the same, which is for the engine to find out.
struct Pace {
  std::int64_t us_per_block = 0;  // one way
  std::int64_t us_per_row = 0;
  // Where steps have a target, it is as hard to keep as on a real device: a row takes longer for each token
  // that it attends to, and a step takes longer or shorter by chance.
  std::int64_t ns_per_context_token = 0;
  std::int32_t noise_percent = 0;  // at most, either way

  // Without chance.
  double us_of_row(std::int32_t position) const {
    return static_cast<double>(us_per_row) +
           1e-3 * static_cast<double>(ns_per_context_token * (position + 1));
  }
};
Pace pace_of(const scheduler::SchedulerOptions& options);

class SimulatedRunner final : public runner::Runner {
 public:
  // Both outlive the runner; of the script's operations nothing is read. A step takes time: the clock moves.
  SimulatedRunner(const Script& script, ManualClock& clock);

  Result<void> execute(const scheduler::SchedulerOutput& step, runner::RunnerOutput& output) override;

  // A step that was begun is computed when its end is awaited: with what memory holds then, as if the device
  // had been that late.
  bool begin(const scheduler::SchedulerOutput& step) override;
  Result<void> finish(const scheduler::SchedulerOutput& step, runner::RunnerOutput& output) override;
  bool has_begun() const { return !begun_.empty(); }

  std::vector<SequenceId> settle(const scheduler::SchedulerOutput& step,
                                 std::span<const scheduler::CommittedToken> tokens) override;

  // The next step fails.
  void fail_next(FailurePoint point) { next_failure_ = point; }
  // The next step that swaps fails.
  void fail_next_swap(FailurePoint point) { next_swap_failure_ = point; }
  // All steps fail from now on.
  void lose_device() { is_lost_ = true; }
  bool is_lost() const { return is_lost_; }

  // What a request is, from its submission on.
  void expect(RequestId request_id, const ScriptedRequest& asked) { requests_[request_id].asked = &asked; }

  const ScriptedRequest& asked(RequestId request_id) const { return *requests_.at(request_id).asked; }

  // What a block holds: the hashes of the prefixes that end with its slots.
  std::span<const std::uint64_t> contents(BlockId block) const {
    return std::span(slots_).subspan(index_of(block) * block_size_, block_size_);
  }

  // What a state knows: the hash of the prefix that it stands behind.
  std::uint64_t contents_of_state(BlockId state) const { return states_[index_of(state)]; }

  // Overwrites every slot and state that holds nothing any more by the engine's own account.
  void poison_unfilled(const KvSnapshot& snapshot);

  // The first thing that was wrong since the start.
  const std::optional<std::string>& problem() const { return problem_; }

  std::int64_t num_failed_steps() const { return num_failed_steps_; }
  std::int64_t num_failed_swaps() const { return num_failed_swaps_; }
  std::int64_t num_rows_ahead() const { return num_rows_ahead_; }
  std::int64_t num_rows_in_vain() const { return num_rows_in_vain_; }
  bool last_step_moved_memory() const { return last_step_moved_memory_; }

  // What the last step that ran took, without its swaps; none since the last call: nothing ran.
  struct Timing {
    double us = 0.0;
    std::int32_t num_rows = 0;
    // Of these, without chance: rows that extend an output, those of their drafts, and the costliest row of a
    // prompt (0: none).
    double us_of_decodes = 0.0, us_of_drafts = 0.0, us_of_costliest_row = 0.0;
  };
  std::optional<Timing> take_timing() { return std::exchange(timing_, std::nullopt); }

  // Requests that had rows in steps since the last call, by arrival, and how many of their sequences were
  // extended.
  struct Scheduled {
    RequestId request_id;
    std::int32_t num_targets = 0;
  };
  std::vector<Scheduled> take_scheduled() { return std::exchange(scheduled_, {}); }

  // The same of sequences with a draft, as the plan had them.
  struct Drafted {
    SequenceId sequence_id;
    std::int32_t num_known = 0;   // tokens
    std::int32_t num_blocks = 0;  // of its table
  };
  std::vector<Drafted> take_drafted() { return std::exchange(drafted_, {}); }

 private:
  // What a sequence is, by the tokens that were drawn for it here. A seat of a beam search is what the plan
  // says, which must be something that was offered.
  struct Truth {
    std::vector<TokenId> token_ids;
    std::vector<std::uint64_t> slots;  // of each token; shorter than token_ids until needed
  };
  struct Request {
    const ScriptedRequest* asked = nullptr;
    std::unordered_set<std::uint64_t> offered;  // of a beam search: hashes of prefixes that go on
  };

  // A row of a step that was begun, with copies of what the plan looks at.
  struct BegunRow {
    scheduler::ScheduledSequence plan;
    std::vector<TokenId> known;
    std::vector<BlockId> table;
    bool is_ahead = false;  // its token is not among the known ones
  };
  struct BegunStep {
    scheduler::SchedulerOutput plan;  // without rows
    std::vector<BegunRow> rows;
  };

  bool may_begin(const scheduler::SchedulerOutput& step) const;
  void check_begun(const scheduler::SchedulerOutput& step);
  scheduler::ScheduledSequence completed(BegunRow& row);
  Truth& truth_of(SequenceId sequence_id, const scheduler::ScheduledSequence& scheduled);
  void check_budgets(const scheduler::SchedulerOutput& step);
  void check_moves(const scheduler::SchedulerOutput& step);
  void check_states(const scheduler::SchedulerOutput& step);
  void check_state(const scheduler::ScheduledSequence& scheduled);
  void move_states(const scheduler::SchedulerOutput& step);
  void check_windows(const scheduler::SchedulerOutput& step);
  void move_windows(const scheduler::SchedulerOutput& step);
  void write_window(const scheduler::ScheduledSequence& scheduled);
  bool read_window(const scheduler::ScheduledSequence& scheduled, std::span<const std::uint64_t> expected);
  void poison_unused_windows(const KvSnapshot& snapshot);
  std::span<std::uint64_t> window_block(BlockId place);
  void poison_unused_states(const KvSnapshot& snapshot);
  void check_rows(const scheduler::ScheduledSequence& scheduled);
  void check_targets(const scheduler::ScheduledSequence& scheduled);
  void check_draft(const scheduler::ScheduledSequence& scheduled);
  void guess(const scheduler::ScheduledSequence& scheduled);
  void follow_seat(Truth& truth, const scheduler::ScheduledSequence& scheduled);
  std::span<const std::uint64_t> slots_of(Truth& truth, const scheduler::ScheduledSequence& scheduled,
                                          std::size_t num_tokens);
  std::optional<FailurePoint> failure_of(const scheduler::SchedulerOutput& step);
  void take_time(const scheduler::SchedulerOutput& step, runner::RunnerOutput& output);
  Error fail(FailurePoint point, const scheduler::SchedulerOutput& step);
  void move_blocks(const scheduler::SchedulerOutput& step);
  void spoil_moves(const scheduler::SchedulerOutput& step);
  void write_rows(const scheduler::ScheduledSequence& scheduled);
  void spoil_rows(const scheduler::ScheduledSequence& scheduled);
  std::uint64_t read_slots(const scheduler::ScheduledSequence& scheduled, std::int32_t num_tokens);
  void draw(std::size_t index, const scheduler::ScheduledSequence& scheduled, runner::RunnerOutput& output);
  runner::SampledToken draw_token(const scheduler::ScheduledSequence& scheduled,
                                  const scheduler::SampleTarget& target, std::uint64_t folded,
                                  runner::TokenMask mask);
  runner::SampledToken rank_candidates(const scheduler::ScheduledSequence& scheduled,
                                       const scheduler::SampleTarget& target, std::uint64_t folded,
                                       runner::TokenMask mask);
  void report_prompt_logprobs(const scheduler::ScheduledSequence& scheduled, runner::RunnerOutput& output);
  void report_hidden_states(const scheduler::ScheduledSequence& scheduled, runner::RunnerOutput& output);
  std::span<std::uint64_t> device_block(BlockId block);
  std::span<std::uint64_t> host_block(BlockId block);
  void spoil(std::span<std::uint64_t> slots);
  std::uint64_t* slot(const scheduler::ScheduledSequence& scheduled, std::int32_t position);
  std::uint64_t root_of(RequestId request_id) const;
  std::uint64_t rubbish() { return random_.next(); }
  void note(std::string problem);

  const scheduler::SchedulerOptions& options_;
  const ToyModel& model_;
  const std::size_t block_size_;
  ManualClock& clock_;
  Random random_;  // what rubbish looks like
  Random noise_;   // of the time that steps take
  std::optional<FailurePoint> next_failure_, next_swap_failure_;
  std::unordered_map<RequestId, Request> requests_;
  std::unordered_map<SequenceId, Truth> truths_;
  std::vector<std::uint64_t> slots_;                 // [num_blocks][block_size]
  std::vector<std::uint64_t> host_slots_;            // [num_host_blocks][block_size]
  std::vector<std::uint64_t> states_, host_states_;  // [num_states], [num_host_states]
  std::vector<std::uint64_t> windows_;       // [num_window_blocks][block_size]; of layers with a window
  std::vector<std::uint64_t> host_windows_;  // [num_host_window_blocks][block_size]
  std::vector<std::int32_t> num_filled_;     // of each device block, at the last poisoning
  std::vector<bool> has_draft_;              // of each device block: written by a draft since then
  std::vector<bool> host_in_use_, host_named_;
  std::unordered_set<const std::uint64_t*> written_;  // slots, in this step
  runner::GrammarMasks masks_;                        // as the real runner has them
  std::vector<Scheduled> scheduled_;
  std::vector<Drafted> drafted_;
  std::optional<Timing> timing_;
  const bool runs_ahead_;
  std::deque<BegunStep> begun_;  // the oldest first
  std::int64_t num_rows_ahead_ = 0, num_rows_in_vain_ = 0;
  std::int64_t num_failed_steps_ = 0, num_failed_swaps_ = 0;
  bool last_step_moved_memory_ = false;
  bool awaits_settling_ = false;       // the step that ran
  std::vector<SequenceId> guessable_;  // of that step
  bool is_lost_ = false;
  std::optional<std::string> problem_;
};

}  // namespace octavo::simulation
