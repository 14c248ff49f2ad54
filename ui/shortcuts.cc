#include "ui/shortcuts.h"

#include <algorithm>
#include <array>

namespace octavo::ui {
namespace {

// These count while text is edited, too. Asked directly: a routed shortcut is granted one frame late, and misses a key
// that is pressed and released between two frames.
bool pressed(ImGuiKeyChord chord) { return ImGui::IsKeyChordPressed(chord); }

// Routed, so that the field that is being edited does not take the key as well.
bool taken(ImGuiKeyChord chord) {
  return ImGui::Shortcut(chord, ImGuiInputFlags_RouteGlobal | ImGuiInputFlags_RouteOverFocused |
                                    ImGuiInputFlags_RouteOverActive);
}

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
  if (pressed(ImGuiMod_Ctrl | ImGuiKey_Equal)) change_scale(frame, state.settings, kStep);
  if (pressed(ImGuiMod_Ctrl | ImGuiKey_KeypadAdd)) change_scale(frame, state.settings, kStep);
  if (pressed(ImGuiMod_Ctrl | ImGuiKey_Minus)) change_scale(frame, state.settings, 1 / kStep);
  if (pressed(ImGuiMod_Ctrl | ImGuiKey_0)) change_scale(frame, state.settings, 0);
  if (pressed(ImGuiMod_Ctrl | ImGuiKey_Comma)) sink.push(actions::ShowSettings{!state.settings_open});
  if (state.model.phase != ModelPhase::kReady || state.settings_open) return;
  if (pressed(ImGuiMod_Ctrl | ImGuiKey_N)) sink.push(actions::NewSession{});
  if (pressed(ImGuiMod_Ctrl | ImGuiKey_1)) sink.push(actions::ShowWorkspace{Workspace::kChat});
  if (pressed(ImGuiMod_Ctrl | ImGuiKey_2)) sink.push(actions::ShowWorkspace{Workspace::kMemory});
  if (pressed(ImGuiMod_Ctrl | ImGuiKey_Tab)) sink.push(actions::SelectNeighbour{+1});
  if (pressed(ImGuiMod_Ctrl | ImGuiMod_Shift | ImGuiKey_Tab)) sink.push(actions::SelectNeighbour{-1});
  if (pressed(ImGuiMod_Ctrl | ImGuiKey_PageDown)) sink.push(actions::SelectNeighbour{+1});
  if (pressed(ImGuiMod_Ctrl | ImGuiKey_PageUp)) sink.push(actions::SelectNeighbour{-1});
  if (pressed(ImGuiMod_Ctrl | ImGuiKey_B)) {
    SettingsState settings = state.settings;
    settings.sidebar_shown = !settings.sidebar_shown;
    sink.push(actions::ChangeSettings{settings});
  }
  // Escape is taken only while there is an answer to stop: elsewhere it leaves a field or a popup.
  const SessionState* session = active_session(state);
  if (is_busy(session) && state.workspace == Workspace::kChat && taken(ImGuiKey_Escape)) {
    sink.push(actions::StopAnswer{session->id});
  }
}

}  // namespace octavo::ui
