// Steps and events folded into what the timeline and the log draw. The one fold of them: the panel of a chat
// and the Memory workspace show the same lines. A value type; UI thread.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "app/window/memory/memory_stories.h"
#include "engine/metrics/pool_story.h"
#include "engine/metrics/rate_meter.h"
#include "engine/metrics/step_recorder.h"
#include "ui/memory_state.h"

namespace octavo::app {

class MemoryTimeline {
 public:
  MemoryTimeline() = default;
  explicit MemoryTimeline(std::string name) { timeline_->name = std::move(name); }

  // The pools at a mark, which goes up from call to call; nullptr when it cannot be told.
  using MomentAt = std::function<const metrics::PoolMoment*(std::uint64_t mark)>;
  // Traces follow one another; marks are those of the history.
  void add(const metrics::Trace& trace, const MomentAt& moment_at);
  // The engine before this one, on the same clock.
  void follow(std::shared_ptr<const ui::TimelineState> before);
  void name(std::uint64_t sequence, ui::ShownSequence name);
  void keep_from(std::uint64_t oldest_mark) { timeline_->oldest_mark = oldest_mark; }

  const ui::TimelineState& state() const { return *timeline_; }
  // For the views, which draw between folds.
  std::shared_ptr<const ui::TimelineState> shared() const { return timeline_; }

 private:
  void add_step(const StepRecord& record, std::uint64_t mark);
  void add_levels(const metrics::Trace& trace, const MomentAt& moment_at);
  void add_event(const BlockEvent& event, std::uint64_t mark);
  void add_line(const BlockEvent& event, std::uint64_t mark);
  void follow_sequence(const BlockEvent& event);
  void open_span(std::uint64_t sequence, SequenceState state, std::int64_t time_us);
  void close_span(std::uint64_t sequence, std::int64_t time_us);

  struct Sequence {
    std::int32_t num_blocks = 0;
    bool is_preempted = false;
  };
  std::int64_t num_prefilled_ = 0;
  std::shared_ptr<ui::TimelineState> timeline_ = std::make_shared<ui::TimelineState>();
  std::map<std::uint64_t, Sequence> sequences_;
  metrics::RateMeter rates_;
  MemoryStories stories_;
};

}  // namespace octavo::app
