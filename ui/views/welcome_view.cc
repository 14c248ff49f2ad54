#include "ui/views/welcome_view.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "engine/base/format.h"
#include "ui/model_actions.h"
#include "ui/state.h"
#include "ui/views/download_view.h"
#include "ui/widgets/controls.h"

namespace octavo::ui {
namespace {

constexpr float kWidth = 640;
constexpr float kOfferHeight = 158, kNarrowestTwoOffers = 480;
constexpr float kLowWindow = 620;

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

// One of the models that a first start offers: what it is, and a button that fetches and opens it.
void draw_offer(const Frame& frame, const CatalogueState& catalogue, const CatalogueRow& row, const char* id,
                const char* heading, const char* why, ButtonKind kind, float width) {
  const bool is_busy = is_running(catalogue.download.phase);
  begin_card(frame, id, {width, frame.px(kOfferHeight)}, 16);
  const float inner = ImGui::GetContentRegionAvail().x;
  line(frame, tiny_text(frame), heading, inner);
  gap(frame, 2);
  line(frame, {.face = FontFace::kSemiBold, .em = 15, .colour = frame.theme.text}, row.name, inner);
  line(frame, small_text(frame), bytes_text(row.bytes) + " · " + row.note, inner);
  gap(frame, 2);
  line(frame, tiny_text(frame), why, inner);
  gap(frame, 10);
  const bool is_here = !row.here.empty();
  if (button(frame, (std::string("get_") + id).c_str(), is_here ? "Open" : "Download and open",
             {.kind = kind, .enabled = is_here || (!is_busy && !catalogue.is_offline)}))
    frame.actions.push(actions::GetModel{row.repository, row.file, row.name});
  end_card();
}

void draw_no_model(const Frame& frame, const UiState& state, float width) {
  const ModelState& model = state.model;
  const CatalogueState& catalogue = state.catalogue;
  line(frame, {.face = FontFace::kSemiBold, .em = 22, .colour = frame.theme.text}, "No model yet");
  gap(frame, 8);
  if (!model.problem.empty()) {
    paragraph(frame, {.em = size::kSmall, .colour = frame.theme.error}, model.problem, width);
    gap(frame, 12);
  }
  paragraph(frame, small_text(frame),
            catalogue.is_offline
                ? "Octavo needs a language model in a GGUF file. HF_HUB_OFFLINE is set, so none can be "
                  "downloaded; choose one "
                  "that you have."
                : "Octavo needs a language model. Choose one that you have, or download one from " +
                      catalogue.host + ":",
            width);
  gap(frame, 14);
  if (catalogue.download.phase != DownloadPhase::kNone) {
    draw_download(frame, catalogue.download, width);
    gap(frame, 14);
  }
  const bool two = catalogue.better.has_value() && width >= frame.px(kNarrowestTwoOffers);
  const float offer_width = two ? std::floor((width - frame.px(12)) * 0.5f) : width;
  const ImVec2 low = ImGui::GetCursorScreenPos();
  draw_offer(frame, catalogue, catalogue.first, "first", "Answers at once", "Small: quick, and often wrong",
             catalogue.better ? ButtonKind::kOutline : ButtonKind::kPrimary, offer_width);
  if (catalogue.better) {
    if (two) {
      ImGui::SetCursorScreenPos({low.x + offer_width + frame.px(12), low.y});
    } else {
      gap(frame, 12);
    }
    draw_offer(frame, catalogue, *catalogue.better, "better", "A better model for this computer",
               "Fits, and writes as fast as you read", ButtonKind::kPrimary, offer_width);
  }
  gap(frame, 16);
  const ButtonOptions choose{.icon = Icon::kFolder}, more{.icon = Icon::kSearch};
  const float all_buttons = button_width(frame, "Choose a model file…", choose) +
                            button_width(frame, "More models…", more) + button_width(frame, "Try again", {}) +
                            frame.px(20);
  const auto next = [&] { all_buttons > width ? gap(frame, 8) : beside(frame, 10); };
  if (button(frame, "choose_model", "Choose a model file…", choose))
    frame.actions.push(actions::OpenModelPicker{});
  next();
  if (button(frame, "open_catalogue", "More models…", more)) frame.actions.push(actions::OpenCatalogue{});
  if (model.path.empty()) return;
  next();
  if (button(frame, "load_again", "Try again")) frame.actions.push(actions::LoadModel{});
}

}  // namespace

void draw_welcome_view(const Frame& frame, const UiState& state) {
  const ImVec2 low = ImGui::GetCursorScreenPos();
  const ImVec2 extent = ImGui::GetContentRegionAvail();
  const float width = std::min(frame.px(kWidth), extent.x - frame.px(32));
  // Where the window is too low for all of it, it scrolls.
  ImGui::BeginChild("welcome_space", extent, ImGuiChildFlags_NavFlattened);
  const float above = extent.y < frame.px(kLowWindow) ? frame.px(16) : extent.y * 0.20f;
  ImGui::SetCursorScreenPos(
      {std::floor(low.x + (extent.x - width) * 0.5f), std::floor(ImGui::GetCursorScreenPos().y + above)});
  begin_card(frame, "welcome", {width, 0}, 28);
  const float inner = ImGui::GetContentRegionAvail().x;
  if (state.model.phase == ModelPhase::kLoading) {
    draw_loading(frame, state.model, inner);
  } else {
    draw_no_model(frame, state, inner);
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
