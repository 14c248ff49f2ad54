// Dear ImGui plays the input of one frame as if all of it were held together: a key may not change twice in a
// frame, but keys of their own may change in any order. So Ctrl that is let go right behind a key would be
// missing from their chord, and Ctrl that is pressed right behind a key would make a chord of them; with the
// wheel likewise. A fast hand, a slow frame or a program that sends keys gives both within one poll of the
// display.
//
// UI thread.
#pragma once

#include <imgui.h>
#include <imgui_internal.h>

namespace octavo::app {

// Takes out of the queue what has to wait for the next frame: from the first change of a modifier behind a
// key or the wheel on. The caller puts it back behind NewFrame().
ImVector<ImGuiInputEvent> take_later_input(ImVector<ImGuiInputEvent>& queue);

}  // namespace octavo::app
