// The evaluation of the PagedAttention paper (Kwon et al. 2023, arXiv:2309.06180) as named experiments: what
// each looks at, the paper's points as data, our curves, and one table, ours beside the paper's. Scheduler,
// block manager and baselines are the product's; hardware is simulated (simulated_hardware.h).
//
// An experiment is a list of parts that do not depend on each other: they run on several threads, and the
// report is a function of seed and parts alone. Any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/base/result.h"

namespace octavo::paper {

// All of it as plain sentences.
struct ExperimentInfo {
  std::string name;  // on the command line: "figure-12"
  std::string title;
  std::string source;  // where in the paper, or whose claim
  std::string hardware, workload, systems, metric;
};
std::span<const ExperimentInfo> experiments();

struct PlotPoint {
  double x = 0.0, y = 0.0;
};
struct PlotLine {
  std::string name;
  std::vector<PlotPoint> points;
  bool is_papers = false;  // points that the paper states, about the line of ours before them
};
struct ExperimentPlot {
  std::string title, x_label, y_label;
  std::vector<PlotLine> lines = {};
  std::optional<double> most_y = {};      // above, lines leave the picture
  std::vector<std::string> x_names = {};  // of x = 0, 1, …, where x is no number; else empty
};

enum class Verdict {
  kInRange,    // of what the paper states
  kNear,       // within 15 % of it
  kOutside,    // neither: the experiment's notes name the one that explains it
  kUncompared  // the paper gives no such figure
};
std::string_view verdict_text(Verdict verdict);

struct ComparedFigure {
  std::string name;
  std::string unit;
  double ours = 0.0;
  // As the paper states it: one value, or a range; where it comes from, and how sure that is.
  std::optional<double> paper_least = {}, paper_most = {};
  std::string paper_source = {};

  Verdict verdict() const;
};

struct ExperimentReport {
  std::string name;
  std::vector<ExperimentPlot> plots = {};
  std::vector<ComparedFigure> figures = {};
  std::vector<std::string> notes = {};  // what a reader has to know about these figures
  std::string machine = {};  // that measured, with its threads and the model; empty: it is simulated
};

struct ExperimentOptions {
  std::uint64_t seed = 1;
  std::int32_t num_threads = 1;
  double time_share = 1.0;  // of the simulated time of each run: below 1 for tests
};
// Asked often, from one thread at a time, with the share of parts that is done and what they say so far;
// false ends the experiment.
using WatchExperiment = std::function<bool(double done, const ExperimentReport& so_far)>;

// kNotFound with the list of names; kCancelled when it was told to end.
Result<ExperimentReport> run_experiment(const std::string& name, const ExperimentOptions& options,
                                        const WatchExperiment& watch = {});

}  // namespace octavo::paper
