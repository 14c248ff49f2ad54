#include "ui/widgets/slim_slider.h"

#include <algorithm>
#include <cmath>

namespace octavo::ui {

bool slim_slider(const Frame& frame, const char* id, float& value, SliderRange range, float width) {
  const ImVec2 bar = ImGui::GetCursorScreenPos();
  const float middle = bar.y + frame.px(9);
  ImDrawList* list = ImGui::GetWindowDrawList();
  const float fraction = std::clamp((value - range.low) / (range.high - range.low), 0.0f, 1.0f);
  const float knob = bar.x + frame.px(7) + (width - frame.px(14)) * fraction;
  list->AddRectFilled({bar.x, middle - frame.px(2)}, {bar.x + width, middle + frame.px(2)}, frame.theme.free,
                      frame.px(2));
  list->AddRectFilled({bar.x, middle - frame.px(2)}, {knob, middle + frame.px(2)}, frame.theme.accent,
                      frame.px(2));
  const Face face = frame.face(FontFace::kRegular, 8);
  ImGui::PushFont(face.font, face.size);
  ImGui::PushStyleVar(ImGuiStyleVar_FramePadding,
                      {0, std::floor((frame.px(kSlimSliderHeight) - face.size) * 0.5f)});
  for (const ImGuiCol colour : {ImGuiCol_FrameBg, ImGuiCol_FrameBgHovered, ImGuiCol_FrameBgActive,
                                ImGuiCol_SliderGrab, ImGuiCol_SliderGrabActive}) {
    ImGui::PushStyleColor(colour, IM_COL32_BLACK_TRANS);
  }
  ImGui::SetNextItemWidth(width);
  float moved = value;
  const bool changed =
      ImGui::SliderFloat(id, &moved, range.low, range.high, "", ImGuiSliderFlags_NoRoundToFormat);
  const bool active = ImGui::IsItemActive() || ImGui::IsItemHovered();
  ImGui::PopStyleColor(5);
  ImGui::PopStyleVar();
  ImGui::PopFont();
  list->AddCircleFilled({knob, middle}, frame.px(active ? 8 : 7), frame.theme.panel);
  list->AddCircleFilled({knob, middle}, frame.px(active ? 7 : 6), frame.theme.accent);
  if (changed) value = std::round(moved / range.step) * range.step;
  return changed;
}

}  // namespace octavo::ui
