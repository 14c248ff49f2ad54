#include "app/experiments/known_experiments.h"

#include <utility>

#include "engine/base/format.h"
#include "engine/experiments/real/real_experiment.h"

namespace octavo::app {

const std::vector<KnownExperiment>& known_experiments() {
  static const std::vector<KnownExperiment> known = [] {
    std::vector<KnownExperiment> all;
    for (const paper::ExperimentInfo& info : paper::experiments()) all.push_back({info, /*is_real=*/false});
    for (const paper::ExperimentInfo& info : paper::real_experiments())
      all.push_back({info, /*is_real=*/true});
    return all;
  }();
  return known;
}

std::vector<KnownExperiment> experiments_named(const std::string& word) {
  std::vector<KnownExperiment> named;
  for (const KnownExperiment& one : known_experiments()) {
    if (word == one.info.name || word == (one.is_real ? "real" : "all")) named.push_back(one);
  }
  return named;
}

Result<paper::ExperimentReport> run_known(const KnownExperiment& experiment, const ExperimentChoice& choice,
                                          const paper::WatchExperiment& watch) {
  if (experiment.is_real) {
    return paper::run_real_experiment(experiment.info.name,
                                      {.engine = choice.engine,
                                       .seed = choice.seed,
                                       .num_rounds = choice.num_rounds,
                                       .time_share = choice.time_share},
                                      watch);
  }
  return paper::run_experiment(
      experiment.info.name,
      {.seed = choice.seed, .num_threads = choice.num_threads, .time_share = choice.time_share}, watch);
}

paper::ExperimentReport cut_short(const KnownExperiment& experiment, paper::ExperimentReport so_far,
                                  double done) {
  so_far.name = experiment.info.name;
  so_far.notes.push_back("Cut short: " + percent_text(done) + " of it was done.");
  return so_far;
}

}  // namespace octavo::app
