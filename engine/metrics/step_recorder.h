// Keeps what happened: one StepRecord for each step and the BlockEvents between them, the newest of each, and
// gives the state of the pools at any event that is kept. Window, command line, recording and benchmark read
// from here, so that no two of them disagree.
//
// Thread: record() from the engine thread, everything else from any. Readers never make the engine wait for a
// copy of many events.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "engine/api/block_event.h"
#include "engine/api/metrics.h"
#include "engine/base/result.h"
#include "engine/metrics/event_history.h"
#include "engine/metrics/kv_state.h"
#include "engine/metrics/ring.h"

namespace octavo::metrics {

// What was recorded between two marks. A reader starts with marks of 0 and continues with the marks it was
// given.
struct Trace {
  std::vector<StepRecord> steps;
  std::vector<std::uint64_t> step_event_marks;  // of each step: RecordedStep::event_mark
  std::vector<BlockEvent> block_events;
  std::uint64_t next_step_mark = 0;
  std::uint64_t next_event_mark = 0;
  std::uint64_t num_lost = 0;  // records of both kinds that were overwritten before they were read
};

// How much is kept. The defaults hold some minutes of steps and the events of at least the last thousand, in
// 10 MiB.
struct HistorySizes {
  std::size_t num_steps = std::size_t{1} << 14;
  std::size_t num_events = std::size_t{1} << 17;
  std::size_t num_segment_events = 0;  // from keyframe to keyframe; 0: chosen from the pool
};

// A step, and how many events had happened when its levels were taken: state_at() of this mark is what they
// describe.
struct RecordedStep {
  StepRecord record;
  std::uint64_t event_mark = 0;
};

class StepRecorder {
 public:
  explicit StepRecorder(const PoolShape& shape, const HistorySizes& sizes = {})
      : StepRecorder(KvState(shape), sizes) {}
  // Event 0 happens to `start`.
  explicit StepRecorder(const KvState& start, const HistorySizes& sizes = {});

  // The events of a step and, unless nothing ran, its record.
  void record(const std::optional<StepRecord>& step, std::span<const BlockEvent> events);

  Trace read_since(std::uint64_t step_mark, std::uint64_t event_mark) const;

  // The pools before the event of this mark, 0 <= mark <= next_event_mark. Marks that are too old are
  // refused.
  Result<KvState> state_at(std::uint64_t event_mark) const { return events_.state_at(event_mark); }
  // The same with the story of the pools, from where the reader is or from a keyframe
  // (EventHistory::move_to).
  Result<void> move_to(std::optional<PoolMoment>& moment, std::uint64_t event_mark) const {
    return events_.move_to(moment, event_mark);
  }
  // Events that are kept of first_mark <= mark < end_mark, without a copy.
  std::vector<EventHistory::Stretch> events_between(std::uint64_t first_mark, std::uint64_t end_mark) const {
    return events_.stretches(first_mark, end_mark);
  }
  const PoolShape& shape() const { return events_.shape(); }
  std::uint64_t oldest_event_mark() const { return events_.oldest_mark(); }
  // The number of events until now.
  std::uint64_t next_event_mark() const { return events_.next_mark(); }

 private:
  EventHistory events_;
  mutable std::mutex mutex_;
  Ring<RecordedStep> steps_;  // guarded by mutex_
};

}  // namespace octavo::metrics
