// Steps and events folded into what the timeline and the log draw. A value type; UI thread.
#pragma once

#include <cstdint>
#include <map>
#include <set>

#include "engine/metrics/rate_meter.h"
#include "engine/metrics/step_recorder.h"
#include "ui/memory_state.h"

namespace octavo::app {

class MemoryTimeline {
 public:
  // `first_mark` is that of the trace's first event, in the history's marks.
  void add(const metrics::Trace& trace, std::uint64_t first_mark, ui::TimelineState& timeline);

 private:
  void add_step(const ui::TimelineStep& step, ui::TimelineState& timeline);
  void add_event(const BlockEvent& event, std::uint64_t mark, ui::TimelineState& timeline);
  void follow_sequence(const BlockEvent& event, ui::TimelineState& timeline);
  void open_span(std::uint64_t sequence, SequenceState state, std::int64_t time_us,
                 ui::TimelineState& timeline);
  void close_span(std::uint64_t sequence, std::int64_t time_us, ui::TimelineState& timeline);

  struct Sequence {
    std::int32_t num_blocks = 0;
    bool is_preempted = false;
  };
  std::map<std::uint64_t, Sequence> sequences_;
  metrics::RateMeter rates_;
};

}  // namespace octavo::app
