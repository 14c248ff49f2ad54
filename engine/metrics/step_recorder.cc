#include "engine/metrics/step_recorder.h"

namespace octavo::metrics {

StepRecorder::StepRecorder(const KvState& start, const HistorySizes& sizes)
    : events_(start, sizes.num_events, sizes.num_segment_events), steps_(sizes.num_steps) {}

// Events first: whoever reads of a step finds the events that made it.
void StepRecorder::record(const std::optional<StepRecord>& step, std::span<const BlockEvent> events) {
  events_.append(events);
  if (!step) return;
  const std::uint64_t event_mark = events_.next_mark();
  std::lock_guard lock(mutex_);
  steps_.append({*step, event_mark});
}

Trace StepRecorder::read_since(std::uint64_t step_mark, std::uint64_t event_mark) const {
  Trace trace;
  std::vector<RecordedStep> steps;
  {
    std::lock_guard lock(mutex_);
    trace.num_lost = steps_.copy_since(step_mark, steps);
    trace.next_step_mark = steps_.next_mark();
  }
  for (const RecordedStep& step : steps) {
    trace.steps.push_back(step.record);
    trace.step_event_marks.push_back(step.event_mark);
  }
  const EventHistory::Copied copied = events_.copy_since(event_mark, trace.block_events);
  trace.num_lost += copied.num_lost;
  trace.next_event_mark = copied.next_mark;
  return trace;
}

}  // namespace octavo::metrics
