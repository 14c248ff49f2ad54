#include "tests/simulation/rules.h"

#include <algorithm>
#include <limits>
#include <string>
#include <variant>

namespace octavo::simulation {

void Rules::check(std::span<const EngineEvent> events, const KvSnapshot& snapshot,
                  std::span<const RequestId> scheduled) {
  check_order(snapshot);
  check_preemptions(events, scheduled);
  check_progress(events);
}

// First come, first served; latest preempted first; resumed before newer: what runs has arrived before all that
// waits or is swapped out. And all sequences of a request are in one state.
void Rules::check_order(const KvSnapshot& snapshot) {
  std::uint64_t last_running = 0, first_other = std::numeric_limits<std::uint64_t>::max();
  std::int32_t num_running = 0;
  const SequenceSnapshot* previous = nullptr;
  for (const SequenceSnapshot& sequence : snapshot.sequences) {
    const std::uint64_t id = sequence.request_id.value;
    const bool is_running = sequence.state == SequenceState::kRunning;
    if (is_running) last_running = std::max(last_running, id);
    if (!is_running) first_other = std::min(first_other, id);
    num_running += is_running ? 1 : 0;
    if (previous && previous->request_id == sequence.request_id && previous->state != sequence.state)
      problem_.note(sequence.request_id, "its sequences are not in one state");
    previous = &sequence;
  }
  if (last_running > first_other)
    problem_.note(RequestId{last_running}, "runs before request " + std::to_string(first_other));
  if (num_running > script_.options.max_num_seqs) problem_.note("more than max_num_seqs sequences run");
}

void Rules::check_preemptions(std::span<const EngineEvent> events, std::span<const RequestId> scheduled) {
  RequestId admitted{}, preempted{};
  for (const EngineEvent& event : events) {
    if (const auto* admission = std::get_if<RequestAdmitted>(&event)) admitted = admission->request_id;
    if (const auto* preemption = std::get_if<RequestPreempted>(&event)) {
      preempted = preemption->request_id;
      if (!scheduled.empty() && scheduled.back() > preempted)
        problem_.note(preempted, "preempted though a later one runs");
    }
  }
  if (admitted.value != 0 && preempted.value != 0)
    problem_.note(admitted, "admitted in a step that preempted");
}

// If anything can run, some token is drawn within ceil(tokens of a request / chunk) + 2 steps: after a
// preemption a request computes the tokens of all its outputs again.
void Rules::check_progress(std::span<const EngineEvent> events) {
  const bool progressed = std::ranges::any_of(events, [](const EngineEvent& event) {
    return !std::holds_alternative<RequestAccepted>(event) &&
           !std::holds_alternative<RequestAdmitted>(event) && !std::holds_alternative<RequestPreempted>(event);
  });
  num_steps_without_progress_ = progressed ? 0 : num_steps_without_progress_ + 1;
  const std::int32_t chunk = script_.options.max_num_batched_tokens;
  constexpr std::int32_t kMostOutputs = 6;
  const std::int32_t bound = (kMostOutputs * script_.options.max_model_len + chunk - 1) / chunk + 2;
  if (num_steps_without_progress_ > bound) problem_.note("no token in " + std::to_string(bound) + " steps");
}

void Rules::check(const StepRecord& record, const KvSnapshot& snapshot) {
  const KvFigures& figures = snapshot.figures;
  const bool equal = record.used_blocks == figures.used_blocks && record.cached_blocks == figures.cached_blocks &&
                     record.free_blocks == figures.free_blocks && record.logical_blocks == figures.logical_blocks &&
                     record.unfilled_slots == figures.unfilled_slots;
  if (!equal) problem_.note("the step's record says other levels than the state");
}

void Rules::check_figures(const KvSnapshot& snapshot) {
  const KvFigures& figures = snapshot.figures;
  std::int32_t num_used = 0, num_cached = 0, num_free = 0, num_logical = 0;
  for (const BlockSnapshot& block : snapshot.blocks) {
    if (block.state == BlockState::kUsed) ++num_used;
    if (block.state == BlockState::kCached) ++num_cached;
    if (block.state == BlockState::kFree) ++num_free;
  }
  for (const SequenceSnapshot& sequence : snapshot.sequences) {
    if (sequence.state == SequenceState::kRunning) num_logical += static_cast<std::int32_t>(sequence.block_table.size());
  }
  if (num_used != figures.used_blocks || num_cached != figures.cached_blocks || num_free != figures.free_blocks)
    problem_.note("used, cached and free blocks are miscounted");
  if (num_used + num_cached + num_free != script_.options.num_blocks)
    problem_.note("used, cached and free blocks are not the pool");
  if (num_logical != figures.logical_blocks) problem_.note("logical blocks are miscounted");
}

}  // namespace octavo::simulation
