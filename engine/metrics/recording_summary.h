// A recording summed up in figures, by replaying all of it: every event must be possible after those before
// it, and every step's levels must be those of the state that its events made.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "engine/api/block_event.h"
#include "engine/base/result.h"
#include "engine/metrics/kv_state.h"
#include "engine/metrics/recording_format.h"

namespace octavo::metrics {

// Used and cached blocks in equal stretches of time: the highest level in each, by the steps that ended in
// it. A stretch without a step keeps the level before it.
class PoolTimeline {
 public:
  struct Level {
    std::int32_t used = 0, cached = 0;
  };

  void add(std::int64_t time_us, Level level);

  std::int64_t begin_us() const { return begin_us_; }
  std::int64_t stretch_us() const { return stretch_us_; }
  std::vector<Level> levels() const;

 private:
  static constexpr std::size_t kMostStretches = 64;
  struct Stretch {
    bool has_step = false;
    Level highest, last;
  };
  void halve();

  std::int64_t begin_us_ = -1;
  std::int64_t stretch_us_ = 1;
  std::vector<Stretch> stretches_;
};

struct RecordingSummary {
  RecordingHeader header;
  bool is_complete = false;  // else it was cut short
  // The first event or step that cannot be. What comes after it is still counted, but no state follows from
  // it.
  std::optional<std::string> inconsistency;

  std::int64_t duration_us = 0;  // from the first step to the last event
  std::int64_t num_steps = 0, first_step = 0, last_step = 0;
  std::int64_t num_prefill_tokens = 0, num_decode_tokens = 0;
  std::int64_t num_draft_tokens = 0, num_accepted_tokens = 0;
  std::int64_t num_events = 0;
  std::array<std::int64_t, 256> num_events_of = {};  // index = BlockEventKind
  std::int64_t num_sequences = 0;                    // that ever had a block
  std::int64_t num_forked_sequences = 0;             // of these, begun by a fork
  std::int32_t peak_running = 0, peak_waiting = 0;   // requests
  std::int32_t peak_used_blocks = 0, peak_logical_blocks = 0, peak_host_used_blocks = 0;
  double peak_sharing_ratio = 1.0;
  std::int32_t peak_saved_blocks = 0;
  std::int64_t num_preempted_groups = 0;
  std::int64_t num_preempted_recompute = 0, num_preempted_swap = 0;                              // sequences
  std::int64_t num_swapped_out = 0, num_swapped_in = 0, num_swap_dropped = 0, num_thrashed = 0;  // blocks
  std::int64_t num_hit_tokens = 0;  // in blocks that were found
  PoolTimeline timeline;

  std::int64_t count(BlockEventKind kind) const { return num_events_of[static_cast<std::size_t>(kind)]; }
};

// An error when the file is no recording or is damaged.
Result<RecordingSummary> summarise_recording(const std::filesystem::path& path);

// The state whose levels the record of `step` holds, and the record.
struct StateAtStep {
  StepRecord step;
  KvState state;
};
Result<StateAtStep> replay_to_step(const std::filesystem::path& path, std::int64_t step);

}  // namespace octavo::metrics
