#include "ui/shortcuts.h"

#include <algorithm>
#include <array>

namespace octavo::ui {
namespace {

// These count while text is edited, too.
bool pressed(ImGuiKeyChord chord, bool repeat = false) {
  ImGuiInputFlags flags =
      ImGuiInputFlags_RouteGlobal | ImGuiInputFlags_RouteOverFocused | ImGuiInputFlags_RouteOverActive;
  if (repeat) flags |= ImGuiInputFlags_Repeat;
  return ImGui::Shortcut(chord, flags);
}

// A text field keeps these keys for its caret, which needs them less than the window does.
bool pressed_anyhow(ImGuiKeyChord chord) { return ImGui::IsKeyChordPressed(chord); }

bool is_busy(const SessionState* session) {
  return session != nullptr &&
         (session->activity == Activity::kWaiting || session->activity == Activity::kGenerating);
}

void change_scale(const Frame& frame, SettingsState settings, double factor) {
  const double scale = factor == 0 ? 1.0 : settings.ui_scale * factor;
  settings.ui_scale = std::clamp(scale, 0.75, 3.0);
  frame.actions.push(actions::ChangeSettings{settings});
}

}  // namespace

void apply_shortcuts(const Frame& frame, const UiState& state) {
  ActionSink& sink = frame.actions;
  constexpr double kStep = 1.1;
  if (pressed(ImGuiMod_Ctrl | ImGuiKey_Equal, true)) change_scale(frame, state.settings, kStep);
  if (pressed(ImGuiMod_Ctrl | ImGuiKey_KeypadAdd, true)) change_scale(frame, state.settings, kStep);
  if (pressed(ImGuiMod_Ctrl | ImGuiKey_Minus, true)) change_scale(frame, state.settings, 1 / kStep);
  if (pressed(ImGuiMod_Ctrl | ImGuiKey_0)) change_scale(frame, state.settings, 0);
  if (pressed(ImGuiMod_Ctrl | ImGuiKey_Comma)) sink.push(actions::ShowSettings{!state.settings_open});
  if (state.model.phase != ModelPhase::kReady || state.settings_open) return;
  if (pressed(ImGuiMod_Ctrl | ImGuiKey_N)) sink.push(actions::NewSession{});
  if (pressed(ImGuiMod_Ctrl | ImGuiKey_1)) sink.push(actions::ShowWorkspace{Workspace::kChat});
  if (pressed(ImGuiMod_Ctrl | ImGuiKey_2)) sink.push(actions::ShowWorkspace{Workspace::kMemory});
  if (pressed(ImGuiMod_Ctrl | ImGuiKey_Tab, true)) sink.push(actions::SelectNeighbour{+1});
  if (pressed(ImGuiMod_Ctrl | ImGuiMod_Shift | ImGuiKey_Tab, true)) sink.push(actions::SelectNeighbour{-1});
  if (pressed_anyhow(ImGuiMod_Ctrl | ImGuiKey_PageDown)) sink.push(actions::SelectNeighbour{+1});
  if (pressed_anyhow(ImGuiMod_Ctrl | ImGuiKey_PageUp)) sink.push(actions::SelectNeighbour{-1});
  if (pressed(ImGuiMod_Ctrl | ImGuiKey_B)) {
    SettingsState settings = state.settings;
    settings.sidebar_shown = !settings.sidebar_shown;
    sink.push(actions::ChangeSettings{settings});
  }
  // Escape is taken only while there is an answer to stop: elsewhere it leaves a field or a popup.
  const SessionState* session = active_session(state);
  if (is_busy(session) && state.workspace == Workspace::kChat && pressed(ImGuiKey_Escape)) {
    sink.push(actions::StopAnswer{session->id});
  }
}

}  // namespace octavo::ui
