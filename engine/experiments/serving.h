// Requests that arrive by a Poisson process at the real scheduler, on simulated hardware: figures 12 to 19 of
// the paper but for those about memory alone (saturated_queue.h). A step takes what simulated_hardware.h
// says; no time passes otherwise. The same setup gives the same figures to the digit, and request i of a seed
// is the same at every rate. One thread.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "engine/experiments/scripted_engine.h"
#include "engine/experiments/simulated_hardware.h"

namespace octavo::paper {

struct ServingSetup {
  ScriptedEngine::Setup engine;
  Platform platform;
  const RequestSource* requests = nullptr;  // outlives the run
  double rate = 1.0;                        // requests/s; 0: all are there at once
  double seconds = 1'200.0;                 // while requests arrive; with rate 0: see num_requests
  std::int32_t num_requests = 0;            // with rate 0
  std::uint64_t seed = 1;
  // A batch is a rectangle: every row is computed until the longest output has ended, over as many tokens as
  // the longest prompt has, and all answers come at its end. What static systems do.
  bool pads_batches = false;
};

struct ServingFigures {
  double rate = 0.0;
  double normalised_latency = 0.0;  // s/token: mean over requests of (end - arrival) / output tokens
  double requests_per_s = 0.0;      // that ended, of the time until the last one did
  double tokens_per_s = 0.0;        // of their outputs
  double batched_requests = 0.0;    // mean over the steps of the second half of the arrivals
  double saved_blocks = 0.0;        // percent, as SteadyState
  double tokens_held = 0.0;         // percent of all slots
  double used_blocks = 0.0;         // percent of the pool: taken, whatever is in it
  double preemptions_per_request = 0.0;
  double longest_gap_s = 0.0;  // 99th percentile over steps that extend outputs: what somebody waits
  std::int64_t num_requests = 0;
};

// True: go on. Asked every few hundred steps.
using KeepGoing = std::function<bool()>;

// Ends at the latest a quarter after the last arrival: what has not ended by then counts as if it ended now,
// which is less than the truth; beyond the knee all that matters is that it is much. A run that is told to
// stop gives what it has.
ServingFigures run_serving(const ServingSetup& setup, const KeepGoing& keep_going = {});

// The paper's figures end at about one second per token; at half of it every curve of theirs is steep.
inline constexpr double kKneeLatency = 0.5;

struct RateSearch {
  double sustained = 0.0;              // requests/s at which normalised latency is what was asked for
  std::vector<ServingFigures> points;  // ascending by rate
};
// Runs `setup` at several rates: from `guess` until the knee lies between two, then half-way between these,
// and linear interpolation of the last two; and at shares of it, for the curve. REQUIRES: guess > 0
RateSearch find_sustained_rate(ServingSetup setup, double guess, const KeepGoing& keep_going = {},
                               double latency = kKneeLatency);

}  // namespace octavo::paper
