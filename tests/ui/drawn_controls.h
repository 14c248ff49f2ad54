// The controls of the last frame as Dear ImGui laid them out, and what is wrong with where they stand.
//
// Called from a script of the Test Engine, which lists them.
#pragma once

#include <imgui_te_context.h>

#include <string>
#include <vector>

namespace octavo::testing {

// All that can be seen; while a dialog or a menu is open, of that only.
std::vector<ImGuiTestItemInfo> drawn_controls(ImGuiTestContext* context);
// As sentences about it begin.
std::string control_name(const ImGuiTestItemInfo& item);

// A line for each control that
//   - lies partly or wholly outside of what it may be drawn to, unless that scrolls there;
//   - lies over another one, neither being inside the other;
//   - cannot be pressed, because another window lies over its middle.
// While a dialog or a menu is open, of that only.
std::vector<std::string> misplaced_controls(ImGuiTestContext* context);

}  // namespace octavo::testing
