#include "tests/ui/drawn_controls.h"

#include <imgui_internal.h>

#include <algorithm>
#include <cstdio>
#include <string_view>

namespace octavo::testing {
namespace {

constexpr float kTolerance = 1.5f;  // pixels that rounding may take

std::string place_of(const ImGuiTestItemInfo& item) {
  char text[96];
  const ImRect& at = item.RectFull;
  std::snprintf(text, sizeof text, " [%.0f,%.0f %.0fx%.0f]", static_cast<double>(at.Min.x),
                static_cast<double>(at.Min.y), static_cast<double>(at.GetWidth()),
                static_cast<double>(at.GetHeight()));
  return text;
}

// With a bar that says so: a window can be too small for what is in it, and not be scrolled.
bool scrolls(const ImGuiWindow* window, ImGuiAxis axis) {
  for (; window != nullptr; window = window->ParentWindow) {
    if (axis == ImGuiAxis_X ? window->ScrollbarX : window->ScrollbarY) return true;
    if ((window->Flags & ImGuiWindowFlags_ChildWindow) == 0) break;
  }
  return false;
}

// Whether some of it is never drawn.
bool is_outside(const ImGuiTestItemInfo& item) {
  for (const ImGuiAxis axis : {ImGuiAxis_X, ImGuiAxis_Y}) {
    const float low = item.RectClipped.Min[axis] - item.RectFull.Min[axis];
    const float high = item.RectFull.Max[axis] - item.RectClipped.Max[axis];
    if (std::max(low, high) > kTolerance && !scrolls(item.Window, axis)) return true;
  }
  return false;
}

bool contains(const ImRect& outer, const ImRect& inner) {
  ImRect grown = outer;
  grown.Expand(kTolerance);
  return grown.Contains(inner);
}

// Over what scrolls, and on purpose: what it hides comes out from under it.
bool floats(const ImGuiTestItemInfo& item) { return std::string_view(item.DebugLabel) == "jump_to_end"; }

bool lie_over_each_other(const ImGuiTestItemInfo& a, const ImGuiTestItemInfo& b) {
  if (floats(a) || floats(b)) return false;
  const float width =
      std::min(a.RectClipped.Max.x, b.RectClipped.Max.x) - std::max(a.RectClipped.Min.x, b.RectClipped.Min.x);
  const float height =
      std::min(a.RectClipped.Max.y, b.RectClipped.Max.y) - std::max(a.RectClipped.Min.y, b.RectClipped.Min.y);
  return width > kTolerance && height > kTolerance && !contains(a.RectClipped, b.RectClipped) &&
         !contains(b.RectClipped, a.RectClipped);
}

bool is_visible(const ImGuiTestItemInfo& item) {
  return item.RectClipped.GetWidth() > kTolerance && item.RectClipped.GetHeight() > kTolerance;
}

const ImGuiWindow* window_over(const ImGuiTestItemInfo& item) {
  ImGuiWindow* hovered = nullptr;
  ImGuiWindow* ignored = nullptr;
  ImGui::FindHoveredWindowEx(item.RectClipped.GetCenter(), false, &hovered, &ignored);
  if (hovered == nullptr || (hovered->Flags & ImGuiWindowFlags_Tooltip) != 0) return nullptr;
  for (const ImGuiWindow* of = item.Window; of != nullptr; of = of->ParentWindow) {
    if (of == hovered) return nullptr;
  }
  // A child window is itself an item of its parent's.
  for (const ImGuiWindow* of = hovered; of != nullptr; of = of->ParentWindow) {
    if (of == item.Window) return nullptr;
  }
  return hovered;
}

// Of the dialog or menu that is open, else of the window.
std::vector<ImGuiTestItemInfo> laid_out_controls(ImGuiTestContext* context) {
  const auto& open = ImGui::GetCurrentContext()->OpenPopupStack;
  ImGuiWindow* const topmost = open.empty() ? nullptr : open.back().Window;
  ImGuiWindow* const root = topmost != nullptr ? topmost : ImGui::FindWindowByName("octavo");
  ImGuiTestItemList items;
  context->GatherItems(&items, ImGuiTestRef(root->ID), 99);
  std::vector<ImGuiTestItemInfo> controls;
  for (int i = 0; i < items.GetSize(); ++i) {
    const ImGuiTestItemInfo& item = *items.GetByIndex(i);
    if (item.ID != 0 && item.RectFull.GetWidth() > 0 && item.RectFull.GetHeight() > 0)
      controls.push_back(item);
  }
  return controls;
}

}  // namespace

std::string control_name(const ImGuiTestItemInfo& item) {
  const std::string label = item.DebugLabel;
  char id[32];
  std::snprintf(id, sizeof id, "0x%08x", item.ID);
  return (label.empty() ? id : "'" + label + "'") + " of " + item.Window->Name;
}

std::vector<ImGuiTestItemInfo> drawn_controls(ImGuiTestContext* context) {
  std::vector<ImGuiTestItemInfo> seen;
  for (const ImGuiTestItemInfo& item : laid_out_controls(context)) {
    if (is_visible(item)) seen.push_back(item);
  }
  return seen;
}

std::vector<std::string> misplaced_controls(ImGuiTestContext* context) {
  const std::vector<ImGuiTestItemInfo> items = laid_out_controls(context);
  std::vector<std::string> lines;
  std::vector<const ImGuiTestItemInfo*> visible;
  for (const ImGuiTestItemInfo& item : items) {
    if (is_outside(item)) lines.push_back(control_name(item) + " lies outside" + place_of(item));
    if (!is_visible(item)) continue;
    if (const ImGuiWindow* over = window_over(item); over != nullptr)
      lines.push_back(control_name(item) + " lies below " + over->Name + place_of(item));
    visible.push_back(&item);
  }
  for (std::size_t i = 0; i < visible.size(); ++i) {
    for (std::size_t k = i + 1; k < visible.size(); ++k) {
      if (!lie_over_each_other(*visible[i], *visible[k])) continue;
      lines.push_back(control_name(*visible[i]) + " and " + control_name(*visible[k]) +
                      " lie over each other" + place_of(*visible[i]) + place_of(*visible[k]));
    }
  }
  return lines;
}

}  // namespace octavo::testing
