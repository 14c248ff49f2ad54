#include "ui/widgets/menu.h"

#include "ui/widgets/controls.h"

namespace octavo::ui {
namespace {

constexpr float kWidth = 228, kItemHeight = 34, kPadding = 12, kIconRoom = 26;

}  // namespace

bool begin_menu(const Frame& frame, const char* id) {
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, {frame.px(6), frame.px(6)});
  ImGui::PushStyleVar(ImGuiStyleVar_PopupRounding, frame.px(size::kRadiusCard));
  ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, {0, 0});
  const bool shown = ImGui::BeginPopup(id, ImGuiWindowFlags_NoMove | ImGuiWindowFlags_NoSavedSettings);
  ImGui::PopStyleVar(2);
  if (!shown) ImGui::PopStyleVar();
  return shown;
}

void end_menu() {
  ImGui::EndPopup();
  ImGui::PopStyleVar();
}

bool menu_item(const Frame& frame, const char* id, std::string_view text, const MenuItemOptions& options) {
  const ImVec2 low = ImGui::GetCursorScreenPos();
  const ImVec2 extent{frame.px(kWidth), frame.px(kItemHeight)};
  ImGui::BeginDisabled(!options.enabled);
  const bool chosen = ImGui::InvisibleButton(id, extent, ImGuiButtonFlags_EnableNav);
  ImGui::EndDisabled();
  ImDrawList* list = ImGui::GetWindowDrawList();
  if (options.enabled && (ImGui::IsItemHovered() || ImGui::IsItemFocused())) {
    list->AddRectFilled(low, {low.x + extent.x, low.y + extent.y}, frame.theme.raised,
                        frame.px(size::kRadiusControl));
  }
  TextStyle style = small_text(frame);
  style.em = 14;
  style.colour = !options.enabled ? frame.theme.faint : options.danger ? frame.theme.error : frame.theme.text;
  const float middle = low.y + extent.y * 0.5f;
  const float left = frame.px(kPadding) + (options.icon ? frame.px(kIconRoom) : 0);
  if (options.icon) {
    draw_icon(list, *options.icon, {low.x + frame.px(kPadding + 8), middle}, frame.px(15), style.colour);
  }
  const float note_width =
      options.note.empty() ? 0 : text_width(frame, tiny_text(frame), options.note) + frame.px(8);
  draw_text(frame, list, {low.x + left, middle - line_pixels(frame, style) * 0.5f}, style, text,
            extent.x - left - frame.px(kPadding) - note_width);
  if (!options.note.empty()) {
    const TextStyle note = tiny_text(frame);
    draw_text(frame, list,
              {low.x + extent.x - frame.px(kPadding) - note_width + frame.px(8),
               middle - line_pixels(frame, note) * 0.5f},
              note, options.note);
  }
  if (chosen) ImGui::CloseCurrentPopup();
  return chosen;
}

void menu_heading(const Frame& frame, std::string_view text) {
  const ImVec2 low = ImGui::GetCursorScreenPos();
  const bool first = low.y - ImGui::GetWindowPos().y < frame.px(10);
  if (!first) {
    ImGui::GetWindowDrawList()->AddLineH(low.x, low.x + frame.px(kWidth), low.y + frame.px(4),
                                         frame.theme.line);
    gap(frame, 9);
  }
  ImGui::Dummy({frame.px(kPadding), 1});
  ImGui::SameLine();
  TextStyle style = tiny_text(frame);
  style.colour = frame.theme.faint;
  line(frame, style, text, frame.px(kWidth - 2 * kPadding));
}

}  // namespace octavo::ui
