#include "app/window/platform/keyboard_focus.h"

#include <imgui.h>
#include <imgui_internal.h>

namespace octavo::app {
namespace {

// What opens or closes takes a few frames to have the focus.
constexpr int kFramesToFindIt = 4;

}  // namespace

void KeyboardFocus::after_new_frame() { ImGui::GetCurrentContext()->NavWindowingToggleLayer = false; }

// Tab begins at the field that takes the keys; without one, and without a visible cursor, at the first
// control.
void KeyboardFocus::end_frame() {
  ImGuiContext& imgui = *ImGui::GetCurrentContext();
  const bool is_lost = imgui.NavId != 0 && !imgui.NavIdIsAlive;
  frames_lost_ = is_lost ? frames_lost_ + 1 : 0;
  if (frames_lost_ < kFramesToFindIt) return;
  if (imgui.ActiveId != 0) {
    imgui.NavId = imgui.ActiveId;
  } else {
    imgui.NavCursorVisible = false;
  }
}

}  // namespace octavo::app
