#include "ui/views/memory/experiment_view.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>
#include <vector>

#include "engine/base/format.h"
#include "ui/memory_actions.h"
#include "ui/state.h"
#include "ui/views/memory/experiment_plot.h"
#include "ui/views/memory/experiment_table.h"
#include "ui/views/memory/memory_parts.h"
#include "ui/widgets/controls.h"
#include "ui/widgets/menu.h"

namespace octavo::ui {
namespace {

constexpr float kFactLabel = 84, kNarrowFacts = 460, kMostText = 820;
constexpr float kRun = 108, kSeedLabel = 42, kSeedField = 84, kButton = 118, kQuickWidth = 176, kHeight = 32;
constexpr float kLeastPlot = 380, kPlotGap = 28;
constexpr std::size_t kMostBeside = 3;
constexpr int kMostSeedDigits = 19;

std::string minutes_text(double seconds) {
  if (seconds < 90) return count_text(static_cast<std::int64_t>(seconds), "second");
  return count_text(static_cast<std::int64_t>(std::round(seconds / 60)), "minute");
}

bool has_local_model(const UiState& state) {
  return state.model.phase == ModelPhase::kReady && !state.model.is_remote;
}

// What a real one lacks; empty: nothing.
std::string missing_model(const UiState& state) {
  if (has_local_model(state)) return {};
  return state.model.is_remote ? "The model that answers runs elsewhere; load one on this computer first"
                               : "This needs a model on this computer; load one first";
}

// Why it cannot start now; empty: it can.
std::string obstacle(const UiState& state, const ShownExperiment& experiment) {
  const EvaluationState& evaluation = state.memory_workspace.evaluation;
  if (evaluation.is_queue_running) return "The saturated queue is running; cancel it first, or wait";
  if (evaluation.is_running) return "Another experiment is running; cancel it first, or wait";
  return experiment.is_real ? missing_model(state) : std::string();
}

std::string cost_text(const UiState& state) {
  if (!has_local_model(state)) return missing_model(state) + ".";
  const MemoryBar& bar = state.memory_workspace.bar;
  return "Before you run it: this loads " + state.model.name + " once more (" +
         bytes_text(bar.weight_bytes + bar.working_bytes) +
         ", and a small pool) and keeps the machine busy for several minutes. Answers of chats come more "
         "slowly meanwhile, and chats make its figures worse.";
}

void draw_facts(const Frame& frame, const ShownExperiment& experiment, const ExperimentFindings* findings,
                float width) {
  std::vector<std::pair<const char*, const std::string*>> facts = {{"Hardware", &experiment.hardware},
                                                                   {"Workload", &experiment.workload},
                                                                   {"Systems", &experiment.systems},
                                                                   {"Metric", &experiment.metric}};
  if (findings != nullptr && !findings->machine.empty()) facts.push_back({"Machine", &findings->machine});
  const bool is_narrow = width < frame.px(kNarrowFacts);
  const float label = is_narrow ? 0 : frame.px(kFactLabel);
  TextStyle value = small_text(frame);
  value.colour = frame.theme.text;
  for (const auto& [name, fact] : facts) {
    const ImVec2 at = ImGui::GetCursorScreenPos();
    line(frame, small_text(frame), name, width);
    if (!is_narrow) ImGui::SetCursorScreenPos({at.x + label, at.y});
    ImGui::BeginGroup();
    paragraph(frame, value, *fact, std::min(width - label, frame.px(kMostText)));
    ImGui::EndGroup();
    ImGui::SetCursorScreenPos({at.x, ImGui::GetItemRectMax().y + frame.px(2)});
  }
}

// Goes on beside the last item where `width` pixels fit before `right`, else in the next line.
void flow(const Frame& frame, float width, float right) {
  const float x = ImGui::GetItemRectMax().x + frame.px(10);
  if (x + width <= right) {
    beside(frame, 10);
  } else {
    gap(frame, 6);
  }
}

void draw_save_menus(const Frame& frame, std::size_t index) {
  if (begin_menu(frame, "save_plots_menu")) {
    if (menu_item(frame, "save_png", "Picture as PNG…"))
      frame.actions.push(actions::SavePlots{index, actions::PictureKind::kPng});
    if (menu_item(frame, "save_svg", "Picture as SVG…"))
      frame.actions.push(actions::SavePlots{index, actions::PictureKind::kSvg});
    end_menu();
  }
  if (begin_menu(frame, "save_figures_menu")) {
    if (menu_item(frame, "save_markdown", "Table as Markdown…"))
      frame.actions.push(actions::SaveFigures{index, actions::TableKind::kMarkdown});
    if (menu_item(frame, "save_json", "Plots and table as JSON…"))
      frame.actions.push(actions::SaveFigures{index, actions::TableKind::kJson});
    end_menu();
  }
}

// As many beside each other as there is room for, those of a row equally high.
void draw_plots(const Frame& frame, const ExperimentFindings& findings, float width) {
  const std::vector<ShownPlot>& plots = findings.plots;
  if (plots.empty()) return;
  const float space = frame.px(kPlotGap);
  const auto fit = static_cast<std::size_t>(std::max(1.0f, (width + space) / (frame.px(kLeastPlot) + space)));
  const std::size_t beside_each = std::min({fit, kMostBeside, std::max<std::size_t>(2, plots.size())});
  const auto columns = static_cast<float>(beside_each);
  const float each = std::floor((width - space * (columns - 1)) / columns);
  const ImVec2 at = ImGui::GetCursorScreenPos();
  float y = at.y;
  for (std::size_t first = 0; first < plots.size(); first += beside_each) {
    const std::size_t end = std::min(plots.size(), first + beside_each);
    float height = 0;
    for (std::size_t i = first; i < end; ++i)
      height = std::max(height, experiment_plot_height(frame, plots[i], each));
    for (std::size_t i = first; i < end; ++i) {
      ImGui::SetCursorScreenPos({at.x + static_cast<float>(i - first) * (each + space), y});
      draw_experiment_plot(frame, plots[i], static_cast<int>(i), {each, height});
    }
    y += height + frame.px(20);
  }
  ImGui::SetCursorScreenPos({at.x, y});
}

// Takes the keyboard, so that keys scroll to it.
void draw_note(const Frame& frame, const std::string& note, int number, float width) {
  const ImVec2 at = ImGui::GetCursorScreenPos();
  ImGui::PushID(number);
  ImGui::InvisibleButton("note", {width, paragraph_height(frame, small_text(frame), note, width)},
                         ImGuiButtonFlags_EnableNav);
  ImGui::PopID();
  ImGui::SetCursorScreenPos(at);
  paragraph(frame, small_text(frame), note, width);
}

// What gives the same figures again on simulated hardware.
std::string settings_text(const ShownExperiment& experiment) {
  return "seed " + std::to_string(experiment.settings.seed) +
         (experiment.settings.is_quick ? ", a fifth of the time" : "");
}

void draw_findings(const Frame& frame, const ShownExperiment& experiment, float width) {
  const ExperimentFindings& findings = *experiment.findings;
  draw_plots(frame, findings, width);
  TextStyle quiet = tiny_text(frame);
  quiet.colour = frame.theme.faint;
  paragraph(frame, quiet, "Source: " + findings.source + " · " + settings_text(experiment), width);
  gap(frame, 16);
  if (!findings.figures.empty()) {
    std::string note;
    if (findings.num_compared > 0)
      note = with_thousands(findings.num_good) + " of " + with_thousands(findings.num_compared) +
             " that the paper gives are in its range or within 15 %";
    heading_line(frame, "Ours beside the paper’s", note);
    gap(frame, 4);
    draw_experiment_table(frame, findings, width);
  }
  for (std::size_t i = 0; i < findings.notes.size(); ++i) {
    gap(frame, 10);
    draw_note(frame, findings.notes[i], static_cast<int>(i), std::min(width, frame.px(kMostText)));
  }
}

}  // namespace

std::string progress_text(const ShownExperiment& experiment) {
  std::string text = percent_text(experiment.done);
  if (experiment.seconds_left >= 0) text += ", about " + minutes_text(experiment.seconds_left) + " left";
  return text;
}

std::string outcome_text(const ShownExperiment& experiment) {
  switch (experiment.phase) {
    case ExperimentPhase::kNotRun: return {};
    case ExperimentPhase::kWaiting: return "waits";
    case ExperimentPhase::kRunning: return "running, " + percent_text(experiment.done);
    case ExperimentPhase::kFailed: return "failed";
    case ExperimentPhase::kCutShort: return "cut short";
    case ExperimentPhase::kDone: break;
  }
  const ExperimentFindings& findings = *experiment.findings;
  if (findings.num_compared == 0) return "done";
  return with_thousands(findings.num_good) + " of " + with_thousands(findings.num_compared) + " within 15 %";
}

void ExperimentView::draw_seed(const Frame& frame, const EvaluationState& evaluation) {
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const TextStyle style = small_text(frame);
  draw_text(frame, ImGui::GetWindowDrawList(),
            {at.x, at.y + std::floor((frame.px(kHeight) - line_pixels(frame, style)) * 0.5f)}, style, "Seed");
  ImGui::SetCursorScreenPos({at.x + frame.px(kSeedLabel), at.y});
  const std::string shown = std::to_string(evaluation.settings.seed);
  if (seed_text_.empty() && !ImGui::IsAnyItemActive()) seed_text_ = shown;
  if (!text_field(frame, "##experiment_seed", seed_text_, "1", frame.px(kSeedField),
                  ImGuiInputTextFlags_CharsDecimal)) {
    return tooltip(frame, "Of lengths and arrivals: the same seed gives the same figures");
  }
  ExperimentSettings settings = evaluation.settings;
  const char* const end = seed_text_.data() + seed_text_.size();
  const bool is_number = seed_text_.size() <= kMostSeedDigits &&
                         std::from_chars(seed_text_.data(), end, settings.seed).ec == std::errc();
  if (!is_number) settings.seed = 1;
  frame.actions.push(actions::ChangeExperiments{settings});
}

void ExperimentView::draw_controls(const Frame& frame, const UiState& state, std::size_t index, float width) {
  const EvaluationState& evaluation = state.memory_workspace.evaluation;
  const ShownExperiment& experiment = evaluation.experiments[index];
  const float right = ImGui::GetCursorScreenPos().x + width;
  const bool is_mine =
      experiment.phase == ExperimentPhase::kRunning || experiment.phase == ExperimentPhase::kWaiting;
  const std::string why_not = obstacle(state, experiment);
  if (is_mine) {
    if (button(frame, "cancel_experiment", "Cancel", {.width = kRun, .height = kHeight}))
      frame.actions.push(actions::CancelExperiments{});
  } else {
    const char* const word = experiment.findings != nullptr ? "Run again" : "Run";
    const ButtonOptions run{.kind = ButtonKind::kPrimary,
                            .width = kRun,
                            .height = kHeight,
                            .enabled = why_not.empty(),
                            .help = why_not};
    if (button(frame, "run_experiment", word, run)) frame.actions.push(actions::RunExperiments{index});
  }
  if (!evaluation.is_running) {
    flow(frame, frame.px(kSeedLabel + kSeedField), right);
    draw_seed(frame, evaluation);
    ButtonOptions quick{.width = kQuickWidth,
                        .height = kHeight,
                        .help = "Each run covers a fifth of its time: sooner done, and less exact"};
    if (evaluation.settings.is_quick) quick.icon = Icon::kCheck;
    flow(frame, frame.px(kQuickWidth), right);
    if (button(frame, "quick_experiment", "A fifth of the time", quick)) {
      ExperimentSettings settings = evaluation.settings;
      settings.is_quick = !settings.is_quick;
      frame.actions.push(actions::ChangeExperiments{settings});
    }
  }
  const bool has_findings = experiment.findings != nullptr;
  const ButtonOptions save{.width = kButton, .height = kHeight, .enabled = has_findings};
  flow(frame, frame.px(kButton), right);
  if (button(frame, "save_plots", "Save picture", save)) ImGui::OpenPopup("save_plots_menu");
  flow(frame, frame.px(kButton), right);
  if (button(frame, "save_figures", "Save table", save)) ImGui::OpenPopup("save_figures_menu");
  draw_save_menus(frame, index);
  gap(frame, 6);
}

void ExperimentView::draw(const Frame& frame, const UiState& state, std::size_t index, float width) {
  const EvaluationState& evaluation = state.memory_workspace.evaluation;
  const ShownExperiment& experiment = evaluation.experiments[index];
  const ExperimentFindings* const findings = experiment.findings.get();
  TextStyle heading = heading_text(frame);
  paragraph(frame, heading, experiment.title, width);
  paragraph(frame, small_text(frame), experiment.source, width);
  gap(frame, 8);
  draw_facts(frame, experiment, findings, width);
  gap(frame, 10);
  draw_controls(frame, state, index, width);
  if (experiment.phase == ExperimentPhase::kRunning) {
    gap(frame, 6);
    two_part_bar(frame, static_cast<float>(experiment.done), 0, std::min(width, frame.px(kMostText)),
                 frame.px(6));
    line(frame, small_text(frame), progress_text(experiment), width);
  } else if (experiment.phase == ExperimentPhase::kWaiting) {
    line(frame, small_text(frame), "Waits for the experiments before it", width);
  } else if (experiment.is_real) {
    paragraph(frame, small_text(frame), cost_text(state), std::min(width, frame.px(kMostText)));
  }
  if (experiment.phase == ExperimentPhase::kFailed) {
    TextStyle problem = small_text(frame);
    problem.colour = frame.theme.error;
    paragraph(frame, problem, experiment.problem, std::min(width, frame.px(kMostText)));
  }
  gap(frame, 14);
  if (findings != nullptr) {
    draw_findings(frame, experiment, width);
  } else if (experiment.phase == ExperimentPhase::kNotRun && obstacle(state, experiment).empty()) {
    draw_hint(frame, "No results yet. Press Run to measure; plots and figures appear as parts are done.");
  }
}

}  // namespace octavo::ui
