// The insides of Scheduler, for its own files: scheduler.cc (requests come and go, steps end),
// scheduler_step.cc (a step is made), scheduler_ahead.cc (one before its time), scheduler_view.cc (being
// looked at). Engine thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/block/block_manager.h"
#include "engine/scheduler/allocation_strategy.h"
#include "engine/scheduler/background_turns.h"
#include "engine/scheduler/block_forecast.h"
#include "engine/scheduler/group_queue.h"
#include "engine/scheduler/policy.h"
#include "engine/scheduler/scheduler.h"
#include "engine/scheduler/step_budget.h"

namespace octavo::scheduler {

// Who may have a row, and whose it is.
struct GroupedSequence {
  const SequenceGroup* group = nullptr;
  Sequence* sequence = nullptr;
};

struct Scheduler::State {
  explicit State(const SchedulerOptions& scheduler_options);

  const SchedulerOptions options;
  block::BlockManager blocks;
  const std::unique_ptr<AllocationStrategy> allocation;
  GroupQueue queue;
  MeasuredCosts costs;
  BackgroundTurns turns;
  std::uint64_t next_sequence_id = 1;
  // Of the step that is being made or executed.
  std::int64_t step = 0;
  bool step_in_flight = false;
  bool has_step_ahead = false;      // the newest, behind the one in flight or behind its commit
  bool is_mixed = false;            // both lines have somebody, and the one comes before the other
  bool background_has_turn = true;  // so background groups have a part in it
  StepParts parts, parts_ahead;
  StepParts untimed;  // of steps before it, whose time is not all told: untimed_us of it is
  std::int64_t untimed_us = 0;
  std::vector<RequestId> touched;       // its failure would leave their memory unknown; ascending, may repeat
  std::vector<SequenceId> swapped_out;  // groups, by their first sequence, in this step
  std::vector<SequenceId> restored;     // swapped in, in this step
  std::vector<SequenceId> guessable;    // of the step before: see commit()
  std::vector<SequenceId> ended_at_fork;
  // Scratch, kept between steps for their memory.
  std::vector<Sequence*> decoding;
  std::vector<GroupedSequence> drafting;  // who may guess ahead in the step that is being made

  // ---- scheduler.cc
  Result<void> check_fits(const NewRequest& request) const;
  std::int32_t most_sequences_of_request() const;
  Result<void> check_fits_pool(const SequenceGroup& group) const;
  void release_findable(SequenceGroup& group);
  void release(SequenceGroup& group);
  void fork_from_lead(SequenceGroup& group);
  void end(SequenceGroup& group, Sequence& sequence);
  bool is_in_flight(const SchedulerOutput& one) const;
  void commit_rows(const SchedulerOutput& step);
  void keep_checkpoint(const SequenceGroup& group, Sequence& sequence);
  void drop_drafts(const SchedulerOutput& step, std::span<const CommittedToken> tokens);
  void commit_drafts(const SchedulerOutput& step);
  void trim_drafts(const SchedulerOutput& step);
  void end_step();
  SequenceGroup& first_group_of(RequestId request_id) const;
  Sequence& sequence_of(SequenceId sequence_id) const;

  // ---- scheduler_step.cc: the passes of schedule(), in this order
  bool lines_count() const;
  void make_way(SchedulerOutput& output);
  void grow_running(SchedulerOutput& output);
  void give_rows_to_decodes(StepBudget& budget);
  void give_rows_to_chunks(StepBudget& budget);
  void admit_waiting(StepBudget& budget, SchedulerOutput& output);
  void draft_ahead(StepBudget& budget, SchedulerOutput& output);
  void list_rows(SchedulerOutput& output);

  void attach_ready(SequenceGroup& group, SchedulerOutput& output);
  bool waits_for_an_end(const SequenceGroup& group, const SequenceGroup* first_to_end) const;
  const SequenceGroup* first_to_end() const;
  bool ends_as_told(const SequenceGroup& group) const;
  bool make_room(SequenceGroup& group, SchedulerOutput& output);
  bool release_pins_for_progress();
  void grow_group(SequenceGroup& group, SchedulerOutput& output);
  void take_blocks_from(SequenceGroup& group, SchedulerOutput& output);
  bool may_swap(SequenceGroup& group, std::int32_t num_tokens);
  std::int32_t num_blocks_as_large_as_states(std::int32_t num_states) const;
  bool has_part(const SequenceGroup& group) const;
  void give_rows_to_chunks_of(RequestPriority line, StepBudget& budget);
  void give_rows_to_group(SequenceGroup& group, StepBudget& budget);
  bool rules_allow(const SequenceGroup& group, bool nothing_ran) const;
  AllocStatus may_start(SequenceGroup& group);
  bool waits_for_same_prefix(SequenceGroup& group) const;
  bool is_about_to_keep(const SequenceGroup& group, const Sequence& peer, std::span<const TokenId> token_ids,
                        std::int32_t num_found) const;
  void start(SequenceGroup& group, SchedulerOutput& output);
  void start_first(SequenceGroup& group, SchedulerOutput& output);
  void swap_in(SequenceGroup& group, SchedulerOutput& output);
  void end_out_of_memory(const SequenceGroup& group, SchedulerOutput& output) const;
  void collect_drafting();
  bool can_guess(const Sequence& sequence) const;
  std::vector<TokenId> guesses_of(const Sequence& sequence, std::int32_t most) const;
  std::int32_t most_drafts(const GroupedSequence& drafting, std::int32_t num_rows) const;
  std::int32_t num_slots_to_draft_in(const Sequence& sequence) const;
  static ScheduledSequence row_of(const SequenceGroup& group, const Sequence& sequence);
  void list_row(SequenceGroup& group, Sequence& sequence, SchedulerOutput& output);
  void list_samples(SequenceGroup& group, Sequence& sequence, ScheduledSequence& row) const;
  PoolLevel level(const SequenceGroup* starting = nullptr) const;
  std::int32_t num_taken_ahead(const SequenceGroup* starting) const;
  void look_ahead(const SequenceGroup& group, BlockForecast& forecast) const;
  std::int32_t most_running_sequences() const;

  // ---- scheduler_ahead.cc
  bool all_go_on_alike(const SchedulerOutput& step) const;
  std::vector<GroupedSequence> rows_ahead();
  bool grow_ahead(std::span<const GroupedSequence> rows);
  void list_row_ahead(const SequenceGroup& group, const Sequence& sequence, SchedulerOutput& output);

  // ---- scheduler_view.cc
  std::optional<std::string> broken_group(const SequenceGroup& group, bool is_running) const;
  std::vector<block::OwnedTable> owned_tables() const;
};

}  // namespace octavo::scheduler
