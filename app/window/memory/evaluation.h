// The experiments of app/experiments for the page "Paper": one runs at a time, what each has found stays
// until the window closes, and files of it.
//
// UI thread. An experiment runs on a thread of its own, which starts further ones and leaves a core to the
// window; files are written on another. The end of this object ends what runs.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "app/experiments/known_experiments.h"
#include "app/window/job_thread.h"
#include "app/window/memory/memory_export.h"
#include "engine/api/engine_options.h"
#include "engine/base/result.h"
#include "ui/evaluation_state.h"
#include "ui/memory_actions.h"

namespace octavo::app {

class Evaluation {
 public:
  Evaluation();

  // The engine that answers, made from a model file here: real experiments make theirs the same way.
  void set_engine(EngineOptions options) { engine_ = std::move(options); }
  // There is none, or one that runs elsewhere: no real experiment starts.
  void forget_engine() { engine_.reset(); }

  // Every experiment, once.
  void show_list(ui::EvaluationState& state);

  // None: all simulated ones, one after the other. Nothing while any runs.
  void run(std::optional<std::size_t> index, ui::EvaluationState& state);
  // What was found until then is kept, and says so.
  void cancel(ui::EvaluationState& state);
  bool is_running() const { return running_.has_value(); }

  // Of an experiment that has found something.
  void save(const ui::actions::SavePlots& a);
  void save(const ui::actions::SaveFigures& a);
  std::vector<WrittenFile> take_written() { return std::exchange(written_, {}); }

  // Takes in what was found. True when something that is drawn changed.
  bool tick(std::int64_t now_us, ui::EvaluationState& state);
  // Whether tick() has something to do without an event.
  bool is_busy() const { return is_running() || num_saving_ > 0; }

 private:
  struct Run {
    std::size_t index = 0;
    ExperimentChoice choice = {};
  };
  struct Ended {
    std::size_t index = 0;
    Result<paper::ExperimentReport> report;
  };
  struct Progress {
    double done = 0;
    paper::ExperimentReport so_far = {};
  };
  // What an experiment found last.
  struct Kept {
    paper::ExperimentReport report;
    ui::ExperimentSettings settings = {};
    double done = 1;
  };
  struct Save {
    KnownExperiment experiment;
    paper::ExperimentReport report;
    std::variant<ui::actions::SavePlots, ui::actions::SaveFigures> wanted;
  };

  static WrittenFile perform(const Save& save);
  Ended perform(const Run& run);
  void start_next(ui::EvaluationState& state);
  void take(Ended ended, ui::EvaluationState& state);
  bool take_progress(std::int64_t now_us, ui::EvaluationState& state);
  void show_kept(std::size_t index, ui::EvaluationState& state) const;
  const paper::ExperimentReport* report_of(std::size_t index) const;
  void give(std::size_t index, std::variant<ui::actions::SavePlots, ui::actions::SaveFigures> wanted);

  std::optional<EngineOptions> engine_;
  std::vector<std::optional<Kept>> kept_;  // of each known experiment
  std::optional<std::size_t> running_;
  std::deque<std::size_t> waiting_;
  Progress shown_;              // of the one that runs
  std::int64_t began_us_ = -1;  // below 0: no tick has seen it yet
  double whole_us_ = 0;         // that it takes, about; 0: not known
  int num_saving_ = 0;
  std::vector<WrittenFile> written_;
  std::atomic<bool> is_cancelled_ = false;
  std::mutex mutex_;
  std::optional<Progress> progress_;  // guarded by mutex_; none: shown_ is the newest
  JobThread<Run, Ended> runs_;        // uses all of the above, as does saves_
  JobThread<Save, WrittenFile> saves_;
};

}  // namespace octavo::app
