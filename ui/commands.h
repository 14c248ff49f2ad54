// Everything that can be asked for without pointing at something. One table for the keyboard (shortcuts.h),
// the command palette and the list of keys in the settings, so that these cannot disagree.
#pragma once

#include <imgui.h>

#include <span>

#include "ui/action_sink.h"

namespace octavo::ui {

struct UiState;  // state.h

struct Command {
  const char* name;             // "New chat"
  const char* keys;             // as shown, "Ctrl+N"; empty: no shortcut
  ImGuiKeyChord chord;          // 0: no shortcut
  ImGuiKeyChord another_chord;  // does the same; 0: none
  bool (*available)(const UiState& state);
  void (*run)(const UiState& state, ActionSink& actions);
};

// In the order in which people should read them.
std::span<const Command> commands();

}  // namespace octavo::ui
