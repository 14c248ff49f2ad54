// Keeps what happened: one StepRecord for each step and the BlockEvents between them, the newest of each in a
// ring of fixed size. Window, command line, trace and benchmark read from here, so that no two of them
// disagree.
//
// Thread: record() from the engine thread, read_since() from any. The lock is held for the copying only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "engine/api/block_event.h"
#include "engine/api/metrics.h"
#include "engine/metrics/ring.h"

namespace octavo::metrics {

// What was recorded between two marks. A reader starts with marks of 0 and goes on with the marks it was
// given.
struct Trace {
  std::vector<StepRecord> steps;
  std::vector<BlockEvent> block_events;
  std::uint64_t next_step_mark = 0;
  std::uint64_t next_event_mark = 0;
  std::uint64_t num_lost = 0;  // records of both kinds that were overwritten before they were read
};

class StepRecorder {
 public:
  // The defaults hold some minutes of steps and the events of at least the last thousand, in 7 MiB.
  explicit StepRecorder(std::size_t step_capacity = std::size_t{1} << 14,
                        std::size_t event_capacity = std::size_t{1} << 17);

  // The events of a step and, unless nothing ran, its record.
  void record(const std::optional<StepRecord>& step, std::span<const BlockEvent> events);

  Trace read_since(std::uint64_t step_mark, std::uint64_t event_mark) const;

 private:
  mutable std::mutex mutex_;
  Ring<StepRecord> steps_;   // guarded by mutex_
  Ring<BlockEvent> events_;  // guarded by mutex_
};

}  // namespace octavo::metrics
