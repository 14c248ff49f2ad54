#include "ui/views/memory/paper_view.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>

#include "engine/base/format.h"
#include "ui/memory_actions.h"
#include "ui/state.h"
#include "ui/views/memory/saturated_queue_view.h"
#include "ui/widgets/controls.h"

namespace octavo::ui {
namespace {

constexpr float kList = 316, kLeastDetail = 520, kGap = 12, kRow = 48, kMenuHeight = 36, kMenuRows = 7;
constexpr const char* kQueueTitle = "Four memory managers, slot by slot";
constexpr const char* kQueueSource = "Figures 2 and 13, a queue without end";

std::string queue_text(const EvaluationState& evaluation) {
  if (evaluation.is_queue_running) return "running";
  return evaluation.is_queue_done ? "done" : "";
}

// Title above; where it comes from and how far it is below.
bool draw_row(const Frame& frame, const char* id, const std::string& title, const std::string& source,
              const std::string& outcome, bool is_chosen) {
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float width = ImGui::GetContentRegionAvail().x, height = frame.px(kRow), inset = frame.px(8);
  const bool was_pressed = ImGui::InvisibleButton(id, {width, height}, ImGuiButtonFlags_EnableNav);
  ImDrawList* const list = ImGui::GetWindowDrawList();
  const bool is_lit = is_chosen || ImGui::IsItemHovered() || ImGui::IsItemFocused();
  const ImU32 ground = is_lit ? frame.theme.raised : frame.theme.panel;
  if (is_lit) list->AddRectFilled(at, {at.x + width, at.y + height - 2}, ground, frame.px(6));
  if (is_chosen)
    list->AddRectFilled({at.x, at.y + frame.px(6)}, {at.x + frame.px(3), at.y + height - frame.px(8)},
                        frame.theme.accent, frame.px(2));
  TextStyle name = small_text(frame), note = tiny_text(frame);
  name.colour = frame.theme.text;
  if (is_chosen) name.face = FontFace::kSemiBold;
  note.colour = readable(note.colour, ground);
  const float room = width - 2 * inset;
  draw_text(frame, list, {at.x + inset, at.y + frame.px(4)}, name, title, room);
  const float y = at.y + frame.px(24);
  const float said = outcome.empty() ? 0 : std::min(text_width(frame, note, outcome), room * 0.6f);
  draw_text(frame, list, {at.x + inset, y}, note, source, room - (said > 0 ? said + inset : 0));
  if (said <= 0) return was_pressed;
  TextStyle result = note;
  result.colour = readable(frame.theme.accent, ground);
  draw_text(frame, list, {at.x + width - inset - said, y}, result, outcome, said + 1);
  return was_pressed;
}

void draw_group(const Frame& frame, const char* name) {
  gap(frame, 6);
  line(frame, tiny_text(frame), name, ImGui::GetContentRegionAvail().x);
}

void draw_run_all(const Frame& frame, const EvaluationState& evaluation) {
  const float width = ImGui::GetContentRegionAvail().x / frame.theme.scale;
  if (evaluation.is_running) {
    if (button(frame, "cancel_all", "Cancel", {.width = width}))
      frame.actions.push(actions::CancelExperiments{});
    return;
  }
  const ButtonOptions run{.width = width,
                          .enabled = !evaluation.is_queue_running,
                          .help =
                              "One after the other, without those on this computer. All of them take some "
                              "minutes"};
  if (button(frame, "run_all", "Run all simulated", run)) frame.actions.push(actions::RunExperiments{});
}

// True when one was chosen.
bool draw_list(const Frame& frame, const EvaluationState& evaluation) {
  bool was_chosen = false;
  const auto choose = [&](std::optional<std::size_t> index) {
    frame.actions.push(actions::ChooseExperiment{index});
    was_chosen = true;
  };
  if (draw_row(frame, "queue", kQueueTitle, kQueueSource, queue_text(evaluation), !evaluation.chosen))
    choose(std::nullopt);
  for (std::size_t i = 0; i < evaluation.experiments.size(); ++i) {
    const ShownExperiment& experiment = evaluation.experiments[i];
    if (i == 0) draw_group(frame, "Simulated hardware");
    if (experiment.is_real && (i == 0 || !evaluation.experiments[i - 1].is_real))
      draw_group(frame, "On this computer");
    if (draw_row(frame, experiment.name.c_str(), experiment.title, experiment.source,
                 outcome_text(experiment), evaluation.chosen == i))
      choose(i);
  }
  return was_chosen;
}

// In place of the list, where there is little room.
void draw_menu(const Frame& frame, const EvaluationState& evaluation, float width) {
  const std::string title =
      evaluation.chosen ? evaluation.experiments[*evaluation.chosen].title : kQueueTitle;
  const ButtonOptions look{.icon = Icon::kChevronDown,
                           .width = width / frame.theme.scale,
                           .height = kMenuHeight,
                           .align_left = true};
  if (button(frame, "choose_experiment", title, look)) ImGui::OpenPopup("experiments_menu");
  const ImVec2 below{ImGui::GetItemRectMin().x, ImGui::GetItemRectMax().y + frame.px(4)};
  ImGui::SetNextWindowPos(below, ImGuiCond_Appearing);
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, {frame.px(8), frame.px(8)});
  if (ImGui::BeginPopup("experiments_menu", ImGuiWindowFlags_NoMove)) {
    const ImGuiViewport* const view = ImGui::GetMainViewport();
    const float height = std::min(frame.px(kRow * kMenuRows), view->WorkSize.y * 0.6f);
    ImGui::BeginChild("experiments", {width - frame.px(16), height}, ImGuiChildFlags_NavFlattened);
    draw_run_all(frame, evaluation);
    gap(frame, 6);
    const bool was_chosen = draw_list(frame, evaluation);
    ImGui::EndChild();
    if (was_chosen) ImGui::CloseCurrentPopup();
    ImGui::EndPopup();
  }
  ImGui::PopStyleVar();
}

}  // namespace

void PaperView::draw(const Frame& frame, const UiState& state, ImVec2 extent) {
  const EvaluationState& evaluation = state.memory_workspace.evaluation;
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float space = frame.px(kGap);
  ImVec2 low = at, room = extent;
  if (extent.x >= frame.px(kList + kGap + kLeastDetail)) {
    const float list = frame.px(kList);
    begin_card(frame, "experiments", {list, extent.y}, 12);
    draw_run_all(frame, evaluation);
    gap(frame, 8);
    ImGui::BeginChild("experiment_rows", {0, 0}, ImGuiChildFlags_NavFlattened);
    draw_list(frame, evaluation);
    ImGui::EndChild();
    end_card();
    low.x += list + space;
    room.x -= list + space;
  } else {
    draw_menu(frame, evaluation, extent.x);
    low.y += frame.px(kMenuHeight) + space;
    room.y = std::max(frame.px(300), room.y - frame.px(kMenuHeight) - space);
  }
  ImGui::SetCursorScreenPos(low);
  // Each has a place of its own to which it was scrolled.
  const std::string id = "experiment_" + std::to_string(evaluation.chosen ? *evaluation.chosen + 1 : 0);
  begin_card(frame, id.c_str(), room, 24);
  const float width = ImGui::GetContentRegionAvail().x;
  if (evaluation.chosen) {
    experiment_.draw(frame, state, *evaluation.chosen, width);
  } else {
    draw_saturated_queue(frame, state.memory_workspace, width);
  }
  end_card();
}

}  // namespace octavo::ui
