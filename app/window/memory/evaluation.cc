#include "app/window/memory/evaluation.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <thread>

#include "app/experiments/experiment_report.h"
#include "app/json/json_text.h"

namespace octavo::app {
namespace {

namespace act = ui::actions;

constexpr double kQuickShare = 0.2;
constexpr double kFirstEstimate = 0.1;  // of all parts; before, what is left is a guess

std::int32_t threads_beside_window() {
  return std::max(1, static_cast<std::int32_t>(std::thread::hardware_concurrency()) - 1);
}

ui::FigureVerdict shown_verdict(paper::Verdict verdict) {
  switch (verdict) {
    case paper::Verdict::kInRange: return ui::FigureVerdict::kInRange;
    case paper::Verdict::kNear: return ui::FigureVerdict::kNear;
    case paper::Verdict::kOutside: return ui::FigureVerdict::kOutside;
    case paper::Verdict::kUncompared: break;
  }
  return ui::FigureVerdict::kUncompared;
}

ui::ShownPlot shown_plot(const paper::ExperimentPlot& plot) {
  ui::ShownPlot shown{.title = plot.title,
                      .x_label = plot.x_label,
                      .y_label = plot.y_label,
                      .most_y = plot.most_y,
                      .x_names = plot.x_names};
  for (const paper::PlotLine& line : plot.lines) {
    ui::ShownCurve& curve = shown.curves.emplace_back(ui::ShownCurve{line.name});
    curve.is_papers = line.is_papers;
    for (const paper::PlotPoint& point : line.points) {
      if (!std::isfinite(point.x) || !std::isfinite(point.y)) continue;
      curve.xs.push_back(point.x);
      curve.ys.push_back(point.y);
    }
  }
  return shown;
}

std::shared_ptr<const ui::ExperimentFindings> findings_of(const paper::ExperimentInfo& info,
                                                          const paper::ExperimentReport& report) {
  auto findings = std::make_shared<ui::ExperimentFindings>();
  for (const paper::ExperimentPlot& plot : report.plots) findings->plots.push_back(shown_plot(plot));
  for (const paper::ComparedFigure& figure : report.figures) {
    const ui::FigureVerdict verdict = shown_verdict(figure.verdict());
    const bool is_good = verdict == ui::FigureVerdict::kInRange || verdict == ui::FigureVerdict::kNear;
    findings->num_compared += verdict != ui::FigureVerdict::kUncompared;
    findings->num_good += is_good;
    findings->figures.push_back({.name = figure.name,
                                 .unit = figure.unit,
                                 .ours = figure_text(figure.ours),
                                 .paper = paper_text(figure),
                                 .source = figure.paper_source,
                                 .verdict = verdict,
                                 .verdict_word = std::string(paper::verdict_text(figure.verdict()))});
  }
  findings->notes = report.notes;
  findings->machine = report.machine;
  findings->source = source_text(info, report);
  return findings;
}

ui::ShownExperiment shown_experiment(const KnownExperiment& known) {
  const paper::ExperimentInfo& info = known.info;
  return {.name = info.name,
          .title = info.title,
          .source = info.source,
          .hardware = info.hardware,
          .workload = info.workload,
          .systems = info.systems,
          .metric = info.metric,
          .is_real = known.is_real};
}

}  // namespace

// ---- on threads of their own

Evaluation::Ended Evaluation::perform(const Run& run) {
  double last_done = 0.0;
  return {run.index, run_known(known_experiments()[run.index], run.choice,
                               [&](double done, const paper::ExperimentReport& so_far) {
                                 if (done != last_done) {
                                   const std::lock_guard lock(mutex_);
                                   progress_ = Progress{done, so_far};
                                 }
                                 last_done = done;
                                 return !is_cancelled_ && !runs_.stopping();
                               })};
}

WrittenFile Evaluation::perform(const Save& save) {
  const paper::ExperimentInfo& info = save.experiment.info;
  std::string path;
  Result<std::string> bytes = std::string();
  if (const auto* plots = std::get_if<act::SavePlots>(&save.wanted)) {
    path = plots->path;
    bytes = report_picture(info, save.report,
                           plots->kind == act::PictureKind::kPng ? PictureFormat::kPng : PictureFormat::kSvg);
  } else {
    const auto& figures = std::get<act::SaveFigures>(save.wanted);
    path = figures.path;
    bytes = figures.kind == act::TableKind::kJson ? dump(report_json(info, save.report), /*indent=*/2) + "\n"
                                                  : report_markdown(info, save.report);
  }
  const Result<void> written = bytes ? write_export(path, *bytes) : Result<void>(bytes.error());
  WrittenFile file{.path = std::move(path)};
  if (!written) file.problem = written.error();
  return file;
}

// ---- on the window's

Evaluation::Evaluation()
    : kept_(known_experiments().size()),
      runs_([this](const Run& run) { return std::optional(perform(run)); }, [] {}, JobsLeft::kDropped),
      saves_([](const Save& save) { return std::optional(perform(save)); }, [] {}, JobsLeft::kDone) {}

void Evaluation::show_list(ui::EvaluationState& state) {
  if (!state.experiments.empty()) return;
  for (const KnownExperiment& known : known_experiments())
    state.experiments.push_back(shown_experiment(known));
}

void Evaluation::run(std::optional<std::size_t> index, ui::EvaluationState& state) {
  show_list(state);
  if (is_running() || index.value_or(0) >= state.experiments.size()) return;
  if (index && state.experiments[*index].is_real && !engine_) return;
  for (std::size_t i = 0; i < state.experiments.size(); ++i) {
    if (index ? i != *index : state.experiments[i].is_real) continue;
    state.experiments[i].phase = ui::ExperimentPhase::kWaiting;
    waiting_.push_back(i);
  }
  is_cancelled_ = false;
  start_next(state);
}

void Evaluation::start_next(ui::EvaluationState& state) {
  running_.reset();
  if (!waiting_.empty()) {
    running_ = waiting_.front();
    waiting_.pop_front();
    ui::ShownExperiment& shown = state.experiments[*running_];
    shown.phase = ui::ExperimentPhase::kRunning;
    shown.settings = state.settings;
    shown.done = 0;
    shown.seconds_left = -1;
    shown.problem.clear();
    shown.findings.reset();
    shown_ = {};
    began_us_ = -1;
    whole_us_ = 0;
    ExperimentChoice choice{.seed = state.settings.seed,
                            .time_share = state.settings.is_quick ? kQuickShare : 1.0,
                            .num_threads = threads_beside_window()};
    if (shown.is_real) choice.engine = *engine_;
    runs_.give({*running_, std::move(choice)});
  }
  state.is_running = is_running();
}

void Evaluation::cancel(ui::EvaluationState& state) {
  for (const std::size_t index : std::exchange(waiting_, {})) show_kept(index, state);
  if (is_running()) is_cancelled_ = true;
}

void Evaluation::show_kept(std::size_t index, ui::EvaluationState& state) const {
  ui::ShownExperiment& shown = state.experiments[index];
  const std::optional<Kept>& kept = kept_[index];
  shown.phase = !kept            ? ui::ExperimentPhase::kNotRun
                : kept->done < 1 ? ui::ExperimentPhase::kCutShort
                                 : ui::ExperimentPhase::kDone;
  shown.done = kept ? kept->done : 0.0;
  shown.seconds_left = -1;
  shown.findings.reset();
  if (!kept) return;
  shown.settings = kept->settings;
  shown.findings = findings_of(known_experiments()[index].info, kept->report);
}

void Evaluation::take(Ended ended, ui::EvaluationState& state) {
  ui::ShownExperiment& shown = state.experiments[ended.index];
  const bool is_cancelled = !ended.report && ended.report.error().code == ErrorCode::kCancelled;
  if (ended.report) {
    kept_[ended.index] = Kept{*std::move(ended.report), shown.settings};
  } else if (shown_.done > 0) {
    kept_[ended.index] =
        Kept{cut_short(known_experiments()[ended.index], std::move(shown_.so_far), shown_.done),
             shown.settings, shown_.done};
  }
  show_kept(ended.index, state);
  if (!ended.report && !is_cancelled) {
    shown.phase = ui::ExperimentPhase::kFailed;
    shown.problem = ended.report.error().message;
  }
  start_next(state);
}

bool Evaluation::take_progress(std::int64_t now_us, ui::EvaluationState& state) {
  ui::ShownExperiment& shown = state.experiments[*running_];
  if (began_us_ < 0) began_us_ = now_us;
  std::optional<Progress> progress;
  {
    const std::lock_guard lock(mutex_);
    progress.swap(progress_);
  }
  const bool has_news = progress.has_value();
  if (progress) {
    shown_ = *std::move(progress);
    shown.done = shown_.done;
    shown.findings = findings_of(known_experiments()[*running_].info, shown_.so_far);
  }
  const double before = shown.seconds_left;
  const auto elapsed_us = static_cast<double>(now_us - began_us_);
  if (has_news && shown_.done >= kFirstEstimate) whole_us_ = elapsed_us / shown_.done;
  if (whole_us_ > 0) shown.seconds_left = std::max(1.0, std::ceil((whole_us_ - elapsed_us) * 1e-6));
  return has_news || shown.seconds_left != before;
}

bool Evaluation::tick(std::int64_t now_us, ui::EvaluationState& state) {
  bool changed = is_running() && take_progress(now_us, state);
  for (Ended& ended : runs_.take_outcomes()) {
    take_progress(now_us, state);  // what it said after the line above, before its end
    take(std::move(ended), state);
    changed = true;
  }
  for (WrittenFile& file : saves_.take_outcomes()) {
    --num_saving_;
    written_.push_back(std::move(file));
    changed = true;
  }
  return changed;
}

const paper::ExperimentReport* Evaluation::report_of(std::size_t index) const {
  if (running_ == index) return shown_.done > 0 ? &shown_.so_far : nullptr;
  return index < kept_.size() && kept_[index] ? &kept_[index]->report : nullptr;
}

void Evaluation::give(std::size_t index, std::variant<act::SavePlots, act::SaveFigures> wanted) {
  const paper::ExperimentReport* const report = report_of(index);
  if (report == nullptr) return;
  ++num_saving_;
  saves_.give({known_experiments()[index], *report, std::move(wanted)});
}

void Evaluation::save(const act::SavePlots& a) {
  if (!a.path.empty()) give(a.index, a);
}

void Evaluation::save(const act::SaveFigures& a) {
  if (!a.path.empty()) give(a.index, a);
}

}  // namespace octavo::app
