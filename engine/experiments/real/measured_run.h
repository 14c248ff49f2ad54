// Requests that arrive in real time at an engine, and what became of them. For engine/experiments/real.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "engine/api/engine_options.h"
#include "engine/api/model_description.h"
#include "engine/api/request.h"
#include "engine/base/clock.h"
#include "engine/base/result.h"

namespace octavo::paper {

struct TimedRequest {
  GenerationRequest request;  // of tokens that end by their number alone
  double arrival_s = 0.0;     // since the run's start; ascending
};

struct RunFigures {
  double rate = 0.0;                // asked for, requests/s; 0: all were there at once
  double normalised_latency = 0.0;  // s/token: mean over requests of (end - arrival) / tokens of an output
  double requests_per_s = 0.0;      // that ended, of the time until the last one did
  double tokens_per_s = 0.0;        // of their outputs
  // Over the steps in which somebody waited, or all where nobody ever did.
  double batched_requests = 0.0;
  double tokens_held = 0.0;     // percent of all slots
  double saved_blocks = 0.0;    // percent of the blocks that tables name, as SteadyState; of all steps
  double decode_step_ms = 0.0;  // median of the steps that only extend outputs
  double preemptions_per_request = 0.0;
  double swap_out_us_per_token = 0.0, swap_in_us_per_token = 0.0;  // 0: nothing was swapped
  std::int64_t num_requests = 0;
};

// Asked some thirty times a second; false ends the run.
using StaysInterested = std::function<bool()>;

// The engine that answers, and on what machine: "AMD EPYC 7B13, avx2, 2 threads; SmolLM2 135M Instruct,
// Q4_1".
std::string machine_text(const EngineDescription& description);

// Opens an engine, submits each request at its time, and ends at the latest a quarter after the last arrival
// where `is_cut`: what has not ended by then counts as if it ended now, which is less than the truth. A
// request that fails is an error. kCancelled.
struct MeasuredRun {
  EngineOptions engine;
  std::vector<TimedRequest> requests = {};
  double rate = 0.0;
  bool is_cut = false;
};
Result<RunFigures> measure(MeasuredRun run, const Clock& clock, const StaysInterested& stays_interested);

// The engine's answer to what it is, without a run.
Result<EngineDescription> describe(const EngineOptions& engine, const StaysInterested& stays_interested);

}  // namespace octavo::paper
