#include "ui/views/banner_view.h"

#include <algorithm>
#include <cmath>

#include "ui/desktop_actions.h"
#include "ui/model_actions.h"
#include "ui/state.h"
#include "ui/widgets/controls.h"

namespace octavo::ui {

void draw_banner_view(const Frame& frame, const UiState& state) {
  if (!state.banner) return;
  const ImGuiViewport* viewport = ImGui::GetMainViewport();
  const float width = std::min(frame.px(720), viewport->Size.x - frame.px(48));
  ImGui::SetNextWindowPos(
      {viewport->Pos.x + std::floor((viewport->Size.x - width) * 0.5f), viewport->Pos.y + frame.px(68)});
  ImGui::SetNextWindowSize({width, 0});
  const bool error = state.banner->kind == BannerKind::kError;
  const ImU32 colour = error ? frame.theme.error : frame.theme.accent;
  ImGui::PushStyleColor(ImGuiCol_WindowBg, frame.theme.panel);
  ImGui::PushStyleColor(ImGuiCol_Border, mix(frame.theme.line, colour, 0.6f));
  ImGui::PushStyleVar(ImGuiStyleVar_WindowBorderSize, 1.0f);
  ImGui::PushStyleVar(ImGuiStyleVar_WindowRounding, frame.px(size::kRadiusCard));
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, {frame.px(16), frame.px(12)});
  constexpr ImGuiWindowFlags kFlags = ImGuiWindowFlags_NoDecoration | ImGuiWindowFlags_NoMove |
                                      ImGuiWindowFlags_NoSavedSettings | ImGuiWindowFlags_NoFocusOnAppearing;
  ImGui::Begin("banner", nullptr, kFlags);
  ImGui::PopStyleVar(3);
  ImGui::PopStyleColor(2);
  const ImVec2 at = ImGui::GetCursorScreenPos();
  ImGui::GetWindowDrawList()->AddCircleFilled({at.x + frame.px(5), at.y + frame.px(14)}, frame.px(5), colour);
  ImGui::SetCursorScreenPos({at.x + frame.px(20), at.y + frame.px(4)});
  TextStyle style = small_text(frame);
  style.colour = frame.theme.text;
  paragraph(frame, style, state.banner->text, width - frame.px(100));
  const ImVec2 end = ImGui::GetCursorScreenPos();
  ImGui::SetCursorScreenPos({at.x + width - frame.px(62), at.y});
  const ButtonOptions close{
      .kind = ButtonKind::kPlain, .icon = Icon::kClose, .height = 28, .help = "Dismiss"};
  if (button(frame, "dismiss_banner", "", close)) frame.actions.push(actions::DismissBanner{});
  ImGui::SetCursorScreenPos(end);
  if (state.banner->offer == BannerOffer::kContinueOnCpu) {
    ImGui::SetCursorScreenPos({at.x + frame.px(20), end.y + frame.px(6)});
    if (button(frame, "continue_on_cpu", "Continue on the CPU", {.kind = ButtonKind::kPrimary}))
      frame.actions.push(actions::ContinueOnCpu{});
  }
  ImGui::Dummy({0, frame.px(4)});
  ImGui::End();
}

}  // namespace octavo::ui
