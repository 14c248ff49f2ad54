#include "engine/metrics/step_recorder.h"

namespace octavo::metrics {

StepRecorder::StepRecorder(std::size_t step_capacity, std::size_t event_capacity)
    : steps_(step_capacity), events_(event_capacity) {}

void StepRecorder::record(const std::optional<StepRecord>& step, std::span<const BlockEvent> events) {
  std::lock_guard lock(mutex_);
  if (step) steps_.append(*step);
  for (const BlockEvent& event : events) events_.append(event);
}

Trace StepRecorder::read_since(std::uint64_t step_mark, std::uint64_t event_mark) const {
  Trace trace;
  std::lock_guard lock(mutex_);
  trace.num_lost =
      steps_.copy_since(step_mark, trace.steps) + events_.copy_since(event_mark, trace.block_events);
  trace.next_step_mark = steps_.next_mark();
  trace.next_event_mark = events_.next_mark();
  return trace;
}

}  // namespace octavo::metrics
