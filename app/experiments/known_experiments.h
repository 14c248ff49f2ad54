// Every experiment that the program has, on simulated hardware and on a real engine, behind one call: for the
// command and for the window.
//
// Any thread; run_known() works on the caller's, and on others beside it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/api/engine_options.h"
#include "engine/base/result.h"
#include "engine/experiments/experiment.h"

namespace octavo::app {

struct KnownExperiment {
  paper::ExperimentInfo info;
  bool is_real = false;  // on the whole engine with a model, in real time
};
// In the order in which they are listed: simulated ones first.
const std::vector<KnownExperiment>& known_experiments();
// Those that a word on the command line means: "all" simulated ones, all "real" ones, or the one of that
// name. Empty: there is none.
std::vector<KnownExperiment> experiments_named(const std::string& word);

struct ExperimentChoice {
  std::uint64_t seed = 1;
  double time_share = 1.0;
  std::int32_t num_threads = 1;  // simulations at a time
  // Of real ones: the model as a file here, device, CPU workers and types of numbers.
  EngineOptions engine = {};
  std::int32_t num_rounds = 3;
};
Result<paper::ExperimentReport> run_known(const KnownExperiment& experiment, const ExperimentChoice& choice,
                                          const paper::WatchExperiment& watch);

// What was found until somebody ended it, with a note that says so.
paper::ExperimentReport cut_short(const KnownExperiment& experiment, paper::ExperimentReport so_far,
                                  double done);

}  // namespace octavo::app
