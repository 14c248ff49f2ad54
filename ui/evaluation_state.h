// The evaluation of the PagedAttention paper as the page "Paper" shows it: the saturated queue with what its
// slots hold, and every known experiment with what it found. Plain values, written by
// app/window/memory/evaluation and paper_comparison between frames.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace octavo::ui {

// One memory manager on the same stream of requests.
struct PaperRow {
  std::string name = {};
  double input = 0, output = 0, reserved = 0, internal = 0, unreserved = 0;  // percent of all slots
  double batched_requests = 0;
  double paper_tokens_held = 0, paper_batched_requests = 0;  // as the paper states them
  double progress = 0;                                       // 0..1
};

// ---- experiments

struct ShownCurve {
  std::string name;
  std::vector<double> xs = {}, ys = {};  // as many of both
  bool is_papers = false;                // points that the paper states, not a curve of ours
};
struct ShownPlot {
  std::string title, x_label, y_label;
  std::vector<ShownCurve> curves = {};
  std::optional<double> most_y = {};      // above, curves leave the picture
  std::vector<std::string> x_names = {};  // of x = 0, 1, …, where it is no number; else empty
};

enum class FigureVerdict { kInRange, kNear, kOutside, kUncompared };
struct ShownFigure {
  std::string name, unit;
  std::string ours, paper;  // `paper` is empty where it says nothing
  std::string source = {};  // of the paper's
  FigureVerdict verdict = FigureVerdict::kUncompared;
  std::string verdict_word = {};
};

// What an experiment found, all of it or so far.
struct ExperimentFindings {
  std::vector<ShownPlot> plots = {};
  std::vector<ShownFigure> figures = {};
  std::vector<std::string> notes = {};
  std::string machine = {};                     // that measured; empty: it is simulated
  std::string source = {};                      // a line below the plots
  std::int32_t num_compared = 0, num_good = 0;  // figures that the paper gives; of them in range or near
};

enum class ExperimentPhase { kNotRun, kWaiting, kRunning, kDone, kCutShort, kFailed };

struct ExperimentSettings {
  std::uint64_t seed = 1;
  bool is_quick = false;  // a fifth of the time: sooner done, and less exact
  friend bool operator==(const ExperimentSettings&, const ExperimentSettings&) = default;
};

struct ShownExperiment {
  std::string name, title, source;  // `name` is the command line's: "figure-12"
  std::string hardware, workload, systems, metric;
  bool is_real = false;  // on this computer, with the model that answers
  ExperimentPhase phase = ExperimentPhase::kNotRun;
  double done = 0;                                          // 0..1, of the run that `findings` are of
  double seconds_left = -1;                                 // about; below 0: not known
  std::string problem = {};                                 // why it failed, one sentence
  ExperimentSettings settings = {};                         // that it ran with
  std::shared_ptr<const ExperimentFindings> findings = {};  // null: there are none
};

struct EvaluationState {
  // The saturated queue; its rows are empty until the page was opened.
  bool is_queue_running = false, is_queue_done = false;
  std::vector<PaperRow> rows = {};

  std::vector<ShownExperiment> experiments = {};  // simulated ones first
  std::optional<std::size_t> chosen = {};         // none: the saturated queue
  ExperimentSettings settings = {};               // for the next run
  bool is_running = false;                        // any of the experiments
};

}  // namespace octavo::ui
