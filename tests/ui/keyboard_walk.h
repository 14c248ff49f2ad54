// Goes through the window by Tab, as a person without a mouse does.
//
// Called from a script of the Test Engine.
#pragma once

#include <imgui_te_context.h>

#include <string>
#include <vector>

namespace octavo::testing {

// Tab until it comes back to where it began. A line for each control that it passes by, and one if it stays
// where it is. While a dialog or a menu is open, of that only. Controls that are switched off, and those that
// say that the keyboard has another way to what they do (ImGuiItemFlags_NoNav), are left out.
std::vector<std::string> unreached_controls(ImGuiTestContext* context);

}  // namespace octavo::testing
