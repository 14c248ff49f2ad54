// The step after the one that is being computed, made before it is known what that one draws: only where
// nothing but the drawn tokens could change it, so that the device finds it waiting.
#include <utility>
#include <vector>

#include "engine/base/check.h"
#include "engine/scheduler/scheduler_state.h"

namespace octavo::scheduler {

SchedulerOutput Scheduler::schedule_ahead(const SchedulerOutput& step) {
  State& state = *state_;
  OCTAVO_CHECK(state.step_in_flight && !state.has_step_ahead && step.step == state.step,
               "step %lld is not the one in flight", static_cast<long long>(step.step));
  SchedulerOutput output;
  if (!state.all_go_on_alike(step)) return output;
  const std::vector<GroupedSequence> rows = state.rows_ahead();
  if (rows.empty() || !state.grow_ahead(rows)) return output;
  output.step = ++state.step;
  state.has_step_ahead = true;
  for (const GroupedSequence& row : rows) state.list_row_ahead(*row.group, *row.sequence, output);
  return output;
}

void Scheduler::take_up(SchedulerOutput& step) {
  State& state = *state_;
  OCTAVO_CHECK(!state.step_in_flight && state.has_step_ahead && step.step == state.step,
               "step %lld is not ahead", static_cast<long long>(step.step));
  state.has_step_ahead = false;
  state.step_in_flight = true;
  state.blocks.begin_step(state.step);
  state.blocks.events().note_scheduled_tokens(step.num_decode_tokens);
  state.parts = std::exchange(state.parts_ahead, {});
  std::erase_if(step.sequences, [&](const ScheduledSequence& row) {
    const auto found = state.queue.find(row.sequence_id);
    return !found || !found->sequence.is_live();
  });
  step.num_decode_tokens = static_cast<std::int32_t>(step.sequences.size());
}

// Whether the next step has a row for each output that this one extends, whatever it draws, and for nobody
// else: what ends in it may leave a place, but nobody waits for one. (Who computes known tokens does not
// decode.)
bool Scheduler::State::all_go_on_alike(const SchedulerOutput& step) const {
  const bool is_usual = lines_count() && !is_mixed && options.speculative == Speculation::kOff &&
                        options.num_states == 0 && options.window == 0;
  if (!is_usual || !queue.waiting().empty()) return false;
  std::size_t num_sequences = 0;
  for (const auto& group : queue.running()) {
    if (group->is_beam_search() || !group->is_decoding()) return false;
    num_sequences += static_cast<std::size_t>(group->num_live());
  }
  return num_sequences == step.sequences.size();
}

// Of those that the token which is being drawn does not end by its number.
std::vector<GroupedSequence> Scheduler::State::rows_ahead() {
  std::vector<GroupedSequence> rows;
  for (const auto& group : queue.running()) {
    for (Sequence& sequence : group->live()) {
      if (group->num_tokens_left(sequence, options.max_model_len) > 1)
        rows.push_back({group.get(), &sequence});
    }
  }
  return rows;
}

// False: somebody would have to give way. (What is written is each table's own since the step in flight:
// nothing is copied.)
bool Scheduler::State::grow_ahead(std::span<const GroupedSequence> rows) {
  std::vector<block::Growth> growths;
  for (const GroupedSequence& row : rows)
    growths.push_back({&row.sequence->table, row.sequence->num_tokens() + 1});
  if (blocks.num_blocks_to_grow(growths) > blocks.num_available()) return false;
  std::vector<block::BlockCopy> copies;
  for (const GroupedSequence& row : rows)
    blocks.grow(row.sequence->table, row.sequence->num_tokens() + 1, copies);
  OCTAVO_CHECK(copies.empty(), "%zu blocks are shared that are being written", copies.size());
  return true;
}

void Scheduler::State::list_row_ahead(const SequenceGroup& group, const Sequence& sequence,
                                      SchedulerOutput& output) {
  ScheduledSequence& row = output.sequences.emplace_back(row_of(group, sequence));
  row.start_position = sequence.num_tokens();
  row.token_ids = std::span(&kNotDrawnYet, 1);
  row.samples.push_back({.sequence_id = sequence.sequence_id,
                         .output_index = sequence.output_index,
                         .seed = group.seed,
                         .output_token_ids = sequence.output_token_ids(),
                         .follows_unknown = true});
  ++output.num_decode_tokens;
  const bool is_interactive = group.priority == RequestPriority::kInteractive;
  (is_interactive ? parts_ahead.interactive : parts_ahead.background) +=
      StepWork::of_rows(row.start_position, 1);
}

}  // namespace octavo::scheduler
