#include "tests/simulation/priority_rules.h"

#include <algorithm>
#include <string>
#include <variant>

#include "engine/scheduler/background_turns.h"

namespace octavo::simulation {
namespace {

// The step in which background groups give way, perhaps a turn of theirs before it, and the start.
constexpr std::int32_t kMostStepsToStart = 3;

}  // namespace

// The baselines know an order only, and where prompts come first outputs of both lines wait for them.
PriorityRules::PriorityRules(const Script& script, const SimulatedRunner& runner, Problem& problem)
    : script_(script),
      runner_(runner),
      problem_(problem),
      lines_count_(script.options.memory_manager == MemoryManager::kPaged &&
                   script.options.batching_policy == BatchingPolicy::kIteration &&
                   !script.options.prefill_first) {}

PriorityRules::Lines PriorityRules::lines_of(const KvSnapshot& snapshot) const {
  Lines lines;
  for (const SequenceSnapshot& sequence : snapshot.sequences) {
    const bool runs = sequence.state == SequenceState::kRunning;
    const bool is_background = this->is_background(sequence.request_id);
    if (runs) (is_background ? lines.background_runs : lines.interactive_runs) = true;
    if (!runs && !is_background && lines.first_waiting == RequestId{})
      lines.first_waiting = sequence.request_id;
  }
  return lines;
}

void PriorityRules::check(const StepView& step, std::span<const SimulatedRunner::Scheduled> scheduled) {
  if (!lines_count_) return;
  const Lines before = lines_of(step.before), after = lines_of(step.after);
  const bool had_turn = std::ranges::any_of(
      scheduled, [&](const SimulatedRunner::Scheduled& one) { return is_background(one.request_id); });
  check_turns(step, before, after, had_turn);
  check_start(step, before, after);
  count_who_gave_way(step, after);
}

// Whether a background sequence ran before the step and runs after it. (Who starts with cached blocks may
// have rows in the next step only, when its siblings have attached to them.)
bool PriorityRules::goes_on_in_background(const StepView& step) const {
  return std::ranges::any_of(step.after.sequences, [&](const SequenceSnapshot& after) {
    const auto before =
        std::ranges::find(step.before.sequences, after.sequence_id, &SequenceSnapshot::sequence_id);
    return is_background(after.request_id) && after.state == SequenceState::kRunning &&
           before != step.before.sequences.end() && before->state == SequenceState::kRunning;
  });
}

// Whoever runs has a part in at least one of so many steps.
void PriorityRules::check_turns(const StepView& step, const Lines& before, const Lines& after,
                                bool had_turn) {
  if (had_turn || step.device_failed || !goes_on_in_background(step)) {
    num_steps_since_turn_ = 0;
    return;
  }
  ++num_passed_over_;
  const bool is_alone = !before.interactive_runs && !after.interactive_runs &&
                        before.first_waiting == RequestId{} && after.first_waiting == RequestId{};
  const bool has_come = std::ranges::any_of(step.events, [&](const EngineEvent& event) {
    return std::holds_alternative<RequestAccepted>(event) && !is_background(request_id_of(event));
  });
  const bool gave_way = std::ranges::any_of(
      step.events, [](const EngineEvent& event) { return std::holds_alternative<RequestPreempted>(event); });
  if (is_alone && !has_come && !gave_way)
    problem_.note("background requests run alone, and were passed over");
  if (++num_steps_since_turn_ > scheduler::kMostStepsBetweenTurns)
    problem_.note("background requests had no part in " + std::to_string(num_steps_since_turn_) + " steps");
}

// Where no interactive request has the pool, the first that waits has it soon.
void PriorityRules::check_start(const StepView& step, const Lines& before, const Lines& after) {
  const bool waits_for_background = after.first_waiting != RequestId{} &&
                                    before.first_waiting == after.first_waiting && after.background_runs &&
                                    !before.interactive_runs && !after.interactive_runs;
  num_steps_waited_ = waits_for_background && !step.device_failed ? num_steps_waited_ + 1 : 0;
  if (num_steps_waited_ > kMostStepsToStart)
    problem_.note(after.first_waiting, "waits for background requests");
}

void PriorityRules::count_who_gave_way(const StepView& step, const Lines& after) {
  for (const EngineEvent& event : step.events) {
    const auto* preempted = std::get_if<RequestPreempted>(&event);
    if (preempted && is_background(preempted->request_id) && after.first_waiting != RequestId{})
      ++num_gave_way_;
  }
}

}  // namespace octavo::simulation
