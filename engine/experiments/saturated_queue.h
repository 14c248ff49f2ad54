// The experiment of the paper's figures 2, 13 and 15 without a model: an endless queue, first come first
// served, keeps the pool of a scheduler saturated, and we look at what its slots hold in steady state.
// Scheduler and block manager are the real ones (scripted_engine.h).
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "engine/experiments/beam_search.h"
#include "engine/experiments/workload.h"
#include "engine/scheduler/scheduler.h"

namespace octavo::paper {

struct Experiment {
  scheduler::SchedulerOptions options;
  std::int32_t num_outputs = 1;            // of every request
  const BeamSearches* beams = nullptr;     // then the outputs are beams
  bool tells_lengths = true;               // ScriptedEngine::Setup
  std::int32_t num_warm_up_steps = 4'000;  // two of the longest outputs: the empty start is forgotten
  std::int32_t num_measured_steps = 200'000;
  std::uint64_t seed = 1;
};

// What the slots of the pool are for, in percent of all slots: the four classes of a contiguous map, one of
// them split as the paper splits it. They sum to 100.
struct MemoryMap {
  double input = 0.0;       // KV of prompt tokens
  double output = 0.0;      // KV of generated tokens
  double reserved = 0.0;    // set aside, not used yet, but will be
  double internal = 0.0;    // set aside, or the end of a block, and never used
  double unreserved = 0.0;  // free, or lost to rounding a chunk up to a power of two: external fragmentation

  double tokens_held() const { return input + output; }
};

// Means over the measured steps.
struct SteadyState {
  MemoryMap memory;  // when a step's rows have been computed and nothing has ended
  double batched_requests = 0.0;
  // Percent of the blocks with which a step is computed, as the authors work it out: 1 - 1 / mean(logical /
  // physical).
  double saved_blocks = 0.0;
  double preemptions_per_request = 0.0;
};

// The pool of the paper: OPT-13B on one A100 of 40 GB has room for 15.7 K tokens (table 1), of up to 2,048
// each.
inline constexpr std::int32_t kPaperSlots = 983 * 16;
scheduler::SchedulerOptions paper_pool(MemoryManager manager, std::int32_t block_size = 16);

// Asked now and then with the share that is done and the means so far; false ends the experiment.
using GoOn = std::function<bool(double done, const SteadyState& so_far)>;

// REQUIRES: every request fits the pool
SteadyState run_saturated(const Experiment& experiment, const LengthSource& lengths, const GoOn& go_on = {});

}  // namespace octavo::paper
