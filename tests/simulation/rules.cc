#include "tests/simulation/rules.h"

#include <set>

#include <algorithm>
#include <set>
#include <string>
#include <tuple>
#include <variant>

#include "engine/scheduler/block_forecast.h"
#include "engine/scheduler/step_budget.h"

namespace octavo::simulation {

namespace {

bool is_known(const KvSnapshot& snapshot, RequestId request_id, std::int32_t first_output = 0) {
  return std::ranges::any_of(snapshot.sequences, [&](const SequenceSnapshot& one) {
    return one.request_id == request_id && one.output_index >= first_output;
  });
}

std::int32_t num_running(const KvSnapshot& snapshot, RequestId request_id, std::int32_t first_output = 0) {
  return static_cast<std::int32_t>(
      std::ranges::count_if(snapshot.sequences, [&](const SequenceSnapshot& one) {
        return one.request_id == request_id && one.output_index >= first_output &&
               one.state == SequenceState::kRunning;
      }));
}

}  // namespace

bool ScheduledStep::had_rows(RequestId request_id) const {
  return std::ranges::find(scheduled, request_id, &SimulatedRunner::Scheduled::request_id) != scheduled.end();
}

bool Rules::has_both_lines(const ScheduledStep& step) const {
  bool has_interactive = false, has_background = false;
  const auto note = [&](RequestId id) { (is_background(id) ? has_background : has_interactive) = true; };
  for (const SequenceSnapshot& sequence : step.before.sequences) note(sequence.request_id);
  for (const SequenceSnapshot& sequence : step.after.sequences) note(sequence.request_id);
  for (const EngineEvent& event : step.events) {
    if (std::holds_alternative<RequestAccepted>(event)) note(request_id_of(event));
  }
  return has_interactive && has_background;
}

// Of one line, so that it may have to wait for a turn.
bool Rules::takes_turns(const ScheduledStep& step, RequestId request_id) const {
  return is_background(request_id) && has_both_lines(step);
}

void Rules::check(const ScheduledStep& step) {
  check_order(step.after);
  check_pauses(step);
  check_groups(step);
  check_passed_over(step);
  check_prompts_go_on(step);
  check_out_of_memory(step);
  check_runs(step.after);
  check_preemptions(step);
  check_admissions(step);
  check_progress(step);
  forget_ended(step.after);
}

void Rules::forget_ended(const KvSnapshot& snapshot) {
  const auto has_ended = [&](RequestId id) { return !is_known(snapshot, id); };
  std::erase_if(ever_preempted_, [&](const auto& entry) { return has_ended(entry.first); });
  std::erase_if(ever_paused_, has_ended);
}

// The sequences of a group are extended together. Only where one group alone is larger than the step's budget
// do they take turns. (Without sharing each computes the prompt for itself, and they begin one after
// another; and what was paused goes on by itself.)
void Rules::check_groups(const ScheduledStep& step) {
  if (script_.options.memory_manager != MemoryManager::kPaged) return;
  for (const SimulatedRunner::Scheduled& scheduled : step.scheduled) {
    if (ever_paused_.contains(scheduled.request_id)) continue;
    if (with_cancelled_outputs_.contains(scheduled.request_id)) continue;
    const std::int32_t num_live = num_running(step.before, scheduled.request_id);
    const bool take_turns = step.scheduled.size() == 1 && num_live > script_.options.max_num_batched_tokens;
    if (scheduled.num_targets > 0 && scheduled.num_targets < num_live && !take_turns)
      problem_.note(scheduled.request_id, "some of its sequences were extended without the others");
  }
}

// First come, first served; latest preempted first; resumed before newer: what runs has arrived before all
// that waits or is swapped out of its line. Sequences have their ids by arrival, so this holds for the
// outputs of one request, too.
void Rules::check_order(const KvSnapshot& snapshot) {
  RequestId first_running{}, last_running{};
  std::int32_t num_running = 0;
  const SequenceSnapshot* waiting_in[2] = {};
  const SequenceSnapshot* previous = nullptr;
  for (const SequenceSnapshot& sequence : snapshot.sequences) {
    if (previous && previous->sequence_id >= sequence.sequence_id)
      problem_.note(sequence.request_id, "stands behind newer sequences");
    previous = &sequence;
    const SequenceSnapshot*& waiting = waiting_in[is_background(sequence.request_id) ? 1 : 0];
    if (sequence.state != SequenceState::kRunning) {
      if (!waiting) waiting = &sequence;
      continue;
    }
    if (waiting)
      problem_.note(sequence.request_id, "runs before request " + std::to_string(waiting->request_id.value));
    if (num_running++ == 0) first_running = sequence.request_id;
    last_running = sequence.request_id;
  }
  if (num_running > most_running_sequences(script_.options)) problem_.note("more sequences run than may");
  if (first_running != last_running && num_running > script_.options.max_num_batched_tokens)
    problem_.note("more sequences run than a step has rows: some could starve");
}

// The sequences of a request are in one state, until an output of a group is paused.
void Rules::check_pauses(const ScheduledStep& step) {
  const auto& sequences = step.after.sequences;
  for (std::size_t i = 1; i < sequences.size(); ++i) {
    const bool have_parted = sequences[i - 1].request_id == sequences[i].request_id &&
                             sequences[i - 1].state != sequences[i].state;
    if (have_parted) check_pause(step, sequences[i].request_id);
  }
  for (const EngineEvent& event : step.events) {  // the others may have ended in the same step
    const auto* preemption = std::get_if<RequestPreempted>(&event);
    if (!preemption) continue;
    const RequestId id = preemption->request_id;
    if (num_running(step.before, id) > num_running(step.before, id, preemption->first_output_index))
      check_pause(step, id);
  }
}

// For the first time: the request has the pool for itself, and its prompt is computed. Beams never part.
void Rules::check_pause(const ScheduledStep& step, RequestId id) {
  // (What remains when the first output was cancelled looks like a part of the request.)
  if (!ever_paused_.insert(id).second || with_cancelled_outputs_.contains(id)) return;
  const bool others_run = std::ranges::any_of(step.after.sequences, [&](const SequenceSnapshot& other) {
    return other.state == SequenceState::kRunning && other.request_id != id;
  });
  const auto first = std::ranges::find(step.before.sequences, id, &SequenceSnapshot::request_id);
  const bool may_pause = script_.options.memory_manager == MemoryManager::kPaged &&
                         !runner_.asked(id).is_beam_search() && first != step.before.sequences.end() &&
                         first->num_tokens > first->num_prompt_tokens;
  if (others_run || !may_pause) problem_.note(id, "its sequences are not in one state");
}

// Whoever decodes extends itself in every step, unless prompts come first, or it waits for an end.
void Rules::check_passed_over(const ScheduledStep& step) {
  if (script_.options.prefill_first || step.device_failed) return;
  std::map<RequestId, bool> decodes;  // of those who ran: all its sequences do, and one is to be extended
  std::set<RequestId> is_due;
  for (const SequenceSnapshot& sequence : step.before.sequences) {
    if (sequence.state != SequenceState::kRunning) continue;
    const std::int32_t num_uncomputed = sequence.num_tokens - sequence.num_computed_tokens;
    bool& all_decode = decodes.try_emplace(sequence.request_id, true).first->second;
    all_decode &= sequence.num_tokens > sequence.num_prompt_tokens && num_uncomputed <= 1;
    if (num_uncomputed == 1) is_due.insert(sequence.request_id);
  }
  for (const auto& [request_id, all_decode] : decodes) {
    if (all_decode && is_due.contains(request_id) && !step.had_rows(request_id) &&
        !takes_turns(step, request_id) && num_running(step.after, request_id) > 0 &&
        !may_wait_for_an_end(step, request_id))
      problem_.note(request_id, "decodes, and was passed over");
  }
}

// It is not the oldest, it lacks a block, and somebody goes on who ends soon and gives blocks back.
bool Rules::may_wait_for_an_end(const ScheduledStep& step, RequestId request_id) const {
  const scheduler::SchedulerOptions& options = script_.options;
  if (options.admission_reserve != AdmissionReserve::kLookAhead) return false;
  bool is_oldest = true, lacks_block = runner_.asked(request_id).num_outputs() > 1, ends_soon = false;
  for (const SequenceSnapshot& sequence : step.before.sequences) {
    if (sequence.state != SequenceState::kRunning) continue;
    if (sequence.request_id == request_id) {
      lacks_block |= std::ssize(sequence.block_table) * options.block_size < sequence.num_tokens;
      continue;
    }
    is_oldest &= std::pair(is_background(sequence.request_id), sequence.request_id) >
                 std::pair(is_background(request_id), request_id);
    const std::int32_t num_output = sequence.num_tokens - sequence.num_prompt_tokens;
    const std::int32_t num_left = std::min(runner_.asked(sequence.request_id).max_tokens - num_output,
                                           options.max_model_len - sequence.num_tokens);
    ends_soon |= num_output > 0 && num_left <= scheduler::kStepsAhead && step.had_rows(sequence.request_id);
  }
  return !is_oldest && lacks_block && ends_soon;
}

// The first that computes its prompt, or computes again what it lost, goes on in every step, however many
// decode.
void Rules::check_prompts_go_on(const ScheduledStep& step) {
  if (script_.options.prefill_first || step.device_failed) return;
  const bool is_shared = has_both_lines(step);
  const bool is_turn = std::ranges::any_of(
      step.scheduled, [&](const SimulatedRunner::Scheduled& one) { return is_background(one.request_id); });
  if (is_shared && is_turn) return;  // of the background line
  const auto first = std::ranges::find_if(step.before.sequences, [&](const SequenceSnapshot& sequence) {
    if (is_shared && is_background(sequence.request_id)) return false;
    const std::int32_t num_uncomputed = sequence.num_tokens - sequence.num_computed_tokens;
    const bool decodes = sequence.num_tokens > sequence.num_prompt_tokens && num_uncomputed <= 1;
    return sequence.state == SequenceState::kRunning && !decodes;
  });
  if (first == step.before.sequences.end() || num_running(step.after, first->request_id) == 0) return;
  if (!step.had_rows(first->request_id)) problem_.note(first->request_id, "runs, and was passed over");
}

// Who is ended for want of memory had the pool for itself: one output, or the beams of one search.
void Rules::check_out_of_memory(const ScheduledStep& step) {
  std::int32_t num_ended = 0;
  for (const EngineEvent& event : step.events) {
    const auto* finished = std::get_if<OutputFinished>(&event);
    if (!finished || finished->detail.empty()) continue;
    if (++num_ended > 1 && !runner_.asked(finished->request_id).is_beam_search())
      problem_.note(finished->request_id, "ended for want of memory together with another output");
  }
  const bool others_run = std::ranges::find(step.after.sequences, SequenceState::kRunning,
                                            &SequenceSnapshot::state) != step.after.sequences.end();
  if (num_ended > 0 && others_run) problem_.note("a request was ended for want of memory while another runs");
}

// A reservation is one run of blocks.
void Rules::check_runs(const KvSnapshot& snapshot) {
  if (script_.options.memory_manager == MemoryManager::kPaged) return;
  for (const SequenceSnapshot& sequence : snapshot.sequences) {
    const auto is_gap = [](BlockId a, BlockId b) { return b.value != a.value + 1; };
    if (std::ranges::adjacent_find(sequence.block_table, is_gap) != sequence.block_table.end())
      problem_.note(sequence.request_id, "its reservation is not contiguous");
  }
}

// Latest first; nobody is admitted in such a step.
void Rules::check_preemptions(const ScheduledStep& step) {
  for (const EngineEvent& event : step.events) {
    const auto* preemption = std::get_if<RequestPreempted>(&event);
    if (!preemption) continue;
    const RequestId id = preemption->request_id;
    const auto is_later = [&](const SimulatedRunner::Scheduled& one) {
      return std::pair(is_background(one.request_id), one.request_id) > std::pair(is_background(id), id);
    };
    if (std::ranges::any_of(step.scheduled, is_later)) problem_.note(id, "preempted though a later one runs");
    const bool was_admitted = std::ranges::any_of(
        step.events, [](const EngineEvent& other) { return std::holds_alternative<RequestAdmitted>(other); });
    if (was_admitted) problem_.note(id, "preempted in a step that admitted another");
    const bool starts_another =
        std::ranges::any_of(step.after.sequences, [&](const SequenceSnapshot& sequence) {
          const auto before =
              std::ranges::find(step.before.sequences, sequence.sequence_id, &SequenceSnapshot::sequence_id);
          return sequence.state == SequenceState::kRunning && before != step.before.sequences.end() &&
                 before->state != SequenceState::kRunning;
        });
    if (starts_another) problem_.note(id, "preempted in a step that resumed another");
    const std::int32_t first = preemption->first_output_index;
    if (num_running(step.before, id, first) == 0) problem_.note(id, "preempted though it did not run");
    if (num_running(step.after, id, first) > 0) problem_.note(id, "preempted, and runs");
    if (script_.options.memory_manager != MemoryManager::kPaged)
      problem_.note(id, "preempted though its memory was reserved");
    std::int32_t& lowest = ever_preempted_.try_emplace(id, first).first->second;
    lowest = std::min(lowest, first);
  }
}

// Before a newer request starts, whoever of its line, or of one before it, was preempted has its blocks
// again, or has even ended.
void Rules::check_admissions(const ScheduledStep& step) {
  std::int32_t num_admitted = 0;
  RequestId newest{};
  for (const EngineEvent& event : step.events) {
    const auto* admission = std::get_if<RequestAdmitted>(&event);
    if (!admission) continue;
    ++num_admitted;
    newest = admission->request_id;
    check_admission(step, newest);
  }
  if (num_admitted == 0) return;
  const BatchingPolicy batching = script_.options.batching_policy;
  const bool joins_others = std::ranges::any_of(step.scheduled, [&](const SimulatedRunner::Scheduled& other) {
    return num_running(step.before, other.request_id) > 0;
  });
  if (batching != BatchingPolicy::kIteration && joins_others)
    problem_.note(newest, "joined a batch that is under way");
  if (batching == BatchingPolicy::kOneAtATime && num_admitted > 1)
    problem_.note(newest, "started together with another");
}

void Rules::check_admission(const ScheduledStep& step, RequestId admitted) {
  const auto comes_first = [&](RequestId other) { return !is_background(other) || is_background(admitted); };
  const auto waits = [&](const SequenceSnapshot& sequence) {
    return sequence.state != SequenceState::kRunning && ever_preempted_.contains(sequence.request_id) &&
           comes_first(sequence.request_id);
  };
  if (std::ranges::any_of(step.after.sequences, waits))
    problem_.note(admitted, "admitted while a preempted one waits");
  // At that time: a cancel comes before the plan.
  const auto was_there = [&](const auto& preempted) {
    const auto [id, first_output] = preempted;
    return comes_first(id) && ((step.had_rows(id) && is_known(step.before, id, first_output)) ||
                               is_known(step.after, id, first_output));
  };
  if (script_.options.admit_after_preemption == AdmissionAfterPreemption::kCompleted &&
      std::ranges::any_of(ever_preempted_, was_there))
    problem_.note(admitted, "admitted before a preempted one was completed");
}

void Rules::note_ends(std::span<const EngineEvent> events) {
  const bool has_ended = std::ranges::any_of(events, [](const EngineEvent& event) {
    return std::holds_alternative<OutputFinished>(event) || std::holds_alternative<RequestFinished>(event) ||
           std::holds_alternative<RequestFailed>(event);  // an embedding has no outputs that finish
  });
  if (has_ended) num_steps_without_progress_ = 0;  // others begin where it was about to draw
}

// If anything can run, some token is drawn within ceil(longest request / chunk) + 2 steps, and one more for
// each sibling of a group.
void Rules::check_progress(const ScheduledStep& step) {
  const bool has_drawn = std::ranges::any_of(
      step.scheduled, [](const SimulatedRunner::Scheduled& one) { return one.num_targets > 0; });
  if (has_drawn || step.device_failed) {
    num_steps_without_progress_ = 0;
    return;
  }
  // Where both lines are there, a turn of the one delays the prompts of the other, and the step before it in
  // which blocks change hands draws nothing.
  const std::int32_t bound = most_steps_without_progress(step.after) * (has_both_lines(step) ? 2 : 1) +
                             (has_both_lines(step) ? 4 : 0);
  if (++num_steps_without_progress_ > bound) problem_.note("no token in " + std::to_string(bound) + " steps");
}

// The tokens of a group count together: after a preemption each output's own ones are computed again, from
// the start of the block on in which it parts from the others, and each may wait for the one before it.
// (Without sharing, the prompt counts for each; and for whoever was paused.)
std::int32_t Rules::most_steps_without_progress(const KvSnapshot& snapshot) const {
  const bool shares = script_.options.memory_manager == MemoryManager::kPaged;
  struct Work {
    std::int32_t num_tokens = 0, num_sequences = 0;
  };
  std::map<RequestId, Work> works;
  for (const SequenceSnapshot& sequence : snapshot.sequences) {
    Work& work = works[sequence.request_id];
    const std::int32_t num_own = sequence.num_tokens - sequence.num_prompt_tokens;
    if (work.num_sequences++ == 0 || !shares || ever_paused_.contains(sequence.request_id))
      work.num_tokens += sequence.num_prompt_tokens;
    work.num_tokens += num_own + (num_own > 0 ? script_.options.block_size - 1 : 0);
  }
  // Prompts beside outputs, and those of background requests, keep to the target: as few rows as there must
  // be.
  const bool has_background =
      std::ranges::any_of(works, [&](const auto& work) { return is_background(work.first); });
  const std::int32_t most_rows = script_.options.max_num_batched_tokens;
  const std::int32_t chunk = has_background && script_.options.target_step_us > 0
                                 ? std::min(most_rows, scheduler::kFewestPromptRows)
                                 : most_rows;
  std::int32_t most = 0;  // where prompts come first, all of them do
  for (const auto& [request_id, work] : works) {
    // Behind a system prompt, where the next turn will part, and where a sibling takes over, chunks end.
    const std::int32_t num_stops = memory_ends_exactly(script_.options) ? 1 + work.num_sequences : 0;
    const std::int32_t num_steps = (work.num_tokens + chunk - 1) / chunk + work.num_sequences - 1 + num_stops;
    most = script_.options.prefill_first ? most + num_steps : std::max(most, num_steps);
  }
  return most + 2;
}

void Rules::check(const StepRecord& record, const KvSnapshot& snapshot) {
  const KvFigures& figures = snapshot.figures;
  const bool equal =
      record.used_blocks == figures.used_blocks && record.cached_blocks == figures.cached_blocks &&
      record.free_blocks == figures.free_blocks && record.logical_blocks == figures.logical_blocks &&
      record.unfilled_slots == figures.unfilled_slots &&
      record.reserved_ahead_slots == figures.reserved_ahead_slots &&
      record.filled_slots == figures.filled_slots && record.host_used_blocks == figures.host_used_blocks;
  if (!equal) problem_.note("the step's record says other levels than the state");
}

void Rules::check_figures(const KvSnapshot& snapshot) {
  KvFigures recount;
  for (const BlockSnapshot& block : snapshot.blocks) {
    if (block.state == BlockState::kCached) ++recount.cached_blocks;
    if (block.state == BlockState::kFree) ++recount.free_blocks;
    if (block.state != BlockState::kUsed) continue;
    ++recount.used_blocks;
    recount.filled_slots += block.filled;
    recount.reserved_ahead_slots += block.reserved;
    recount.unfilled_slots += script_.options.block_size - block.filled - block.reserved;
  }
  host_named_.assign(static_cast<std::size_t>(script_.options.num_host_blocks), false);
  for (const SequenceSnapshot& sequence : snapshot.sequences) {
    if (sequence.state == SequenceState::kRunning)
      recount.logical_blocks += static_cast<std::int32_t>(sequence.block_table.size());
    if (sequence.state != SequenceState::kSwapped) continue;
    for (const BlockId block : sequence.block_table) {
      const auto index = index_of(block);
      if (!host_named_.at(index)) ++recount.host_used_blocks;
      host_named_[index] = true;
    }
  }
  const KvFigures& figures = snapshot.figures;
  const auto numbers = [](const KvFigures& of) {
    return std::tuple(of.used_blocks, of.cached_blocks, of.free_blocks, of.logical_blocks, of.unfilled_slots,
                      of.reserved_ahead_slots, of.filled_slots, of.host_used_blocks, of.used_states,
                      of.cached_states, of.free_states, of.checkpoints, of.host_used_states);
  };
  recount_states(snapshot, recount);
  if (numbers(figures) != numbers(recount)) problem_.note("figures differ from a recount of the state");
  if (recount.used_blocks + recount.cached_blocks + recount.free_blocks != script_.options.num_blocks)
    problem_.note("used, cached and free blocks are not the pool");
  check_named(snapshot);
  check_ratios(figures);
}

void Rules::recount_states(const KvSnapshot& snapshot, KvFigures& recount) {
  std::set<BlockId> owned, on_host;
  for (const SequenceSnapshot& sequence : snapshot.sequences) {
    if (sequence.state_slot.value < 0) continue;
    (sequence.state == SequenceState::kSwapped ? on_host : owned).insert(sequence.state_slot);
  }
  recount.used_states = static_cast<std::int32_t>(owned.size());
  recount.host_used_states = static_cast<std::int32_t>(on_host.size());
  for (std::size_t index = 0; index < snapshot.states.size(); ++index) {
    const StateSnapshot& state = snapshot.states[index];
    recount.checkpoints += state.is_checkpoint ? 1 : 0;
    if (owned.contains(BlockId{static_cast<std::int32_t>(index)})) continue;
    ++(state.is_checkpoint ? recount.cached_states : recount.free_states);
  }
}

// In use is what a table names, or what a copy reads.
void Rules::check_named(const KvSnapshot& snapshot) {
  named_.assign(snapshot.blocks.size(), false);
  for (const SequenceSnapshot& sequence : snapshot.sequences) {
    if (sequence.state != SequenceState::kRunning) continue;
    for (const BlockId block : sequence.block_table) named_.at(index_of(block)) = true;
  }
  for (std::size_t index = 0; index < named_.size(); ++index) {
    const BlockSnapshot& block = snapshot.blocks[index];
    if ((named_[index] || block.num_pins > 0) != (block.state == BlockState::kUsed))
      return problem_.note("block " + std::to_string(index) +
                           " is in use and nobody names it, or not and named");
  }
}

void Rules::check_ratios(const KvFigures& figures) {
  const double used = figures.used_blocks;
  const double sharing = used == 0 ? 1.0 : figures.logical_blocks / used;
  const double fragmentation = used == 0 ? 0.0 : figures.unfilled_slots / (used * script_.options.block_size);
  if (figures.sharing_ratio != sharing) problem_.note("a wrong sharing ratio");
  if (figures.internal_fragmentation != fragmentation) problem_.note("a wrong internal fragmentation");
  if (figures.saved_bytes !=
      (std::int64_t{figures.logical_blocks} - figures.used_blocks) * script_.options.bytes_per_block)
    problem_.note("a wrong number of saved bytes");
}

}  // namespace octavo::simulation
