// The paper's experiments once more at a desk's scale: the whole engine with a real model on this machine,
// and a clock on the wall. What differs from experiment.h: lengths are an eighth of ShareGPT's, so that a run
// takes seconds; requests arrive in real time; and figures are medians of rounds in which the systems take
// turns, so they repeat as well as the machine does. Requests, arrivals and their order are functions of the
// seed.
//
// Each run has an engine of its own, which ends with it. One thread beside the engines'; any thread may call.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "engine/api/engine_options.h"
#include "engine/base/clock.h"
#include "engine/base/result.h"
#include "engine/experiments/experiment.h"

namespace octavo::paper {

std::span<const ExperimentInfo> real_experiments();

struct RealExperimentOptions {
  // Model, device, threads and types of numbers. Sizes of pools, memory managers and policies are the
  // experiments' own, and what stands here of them is passed over.
  EngineOptions engine;
  std::uint64_t seed = 1;
  std::int32_t num_rounds = 3;   // whose medians are told; at least 1
  double time_share = 1.0;       // of the requests and seconds of each run: below 1 for a first look
  const Clock* clock = nullptr;  // none: the machine's
};

// kNotFound with the list of names; kCancelled when `watch` says so, which is asked some thirty times a
// second; what an engine refuses, such as a model that does not load. Of the report that `watch` sees,
// figures are medians over the rounds that are done.
Result<ExperimentReport> run_real_experiment(const std::string& name, const RealExperimentOptions& options,
                                             const WatchExperiment& watch = {});

}  // namespace octavo::paper
