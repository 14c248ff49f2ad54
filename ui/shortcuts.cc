#include "ui/shortcuts.h"

#include <imgui_internal.h>

#include "ui/chat_actions.h"
#include "ui/commands.h"
#include "ui/state.h"

namespace octavo::ui {
namespace {

// These count while text is edited, too. Asked directly: a routed shortcut is granted one frame late, and
// misses a key that is pressed and released between two frames.
bool pressed(ImGuiKeyChord chord) {
  if (chord == 0) return false;
  // "+" is Shift and "=" on many keyboards.
  const bool is_plus = chord == (ImGuiMod_Ctrl | ImGuiKey_Equal);
  return ImGui::IsKeyChordPressed(chord) || (is_plus && ImGui::IsKeyChordPressed(chord | ImGuiMod_Shift));
}

// Routed, so that the field that is being edited does not take the key as well.
bool taken(ImGuiKeyChord chord) {
  return ImGui::Shortcut(chord, ImGuiInputFlags_RouteGlobal | ImGuiInputFlags_RouteOverFocused |
                                    ImGuiInputFlags_RouteOverActive);
}

// A field that is being edited and holds text undoes that first.
bool field_undoes() {
  const ImGuiContext& context = *ImGui::GetCurrentContext();
  return context.ActiveId != 0 && context.InputTextState.ID == context.ActiveId &&
         context.InputTextState.TextLen > 0;
}

bool is_covered(const UiState& state) { return has_dialog(state) || state.palette_open; }

}  // namespace

void apply_shortcuts(const Frame& frame, const UiState& state, bool escape_is_taken) {
  for (const Command& command : commands()) {
    if ((pressed(command.chord) || pressed(command.another_chord)) && command.available(state)) {
      command.run(state, frame.actions);
    }
  }
  // Escape is taken only while there is an answer to stop: elsewhere it leaves a field or a popup.
  if (is_covered(state)) return;
  if (state.deleted && !field_undoes() && pressed(ImGuiMod_Ctrl | ImGuiKey_Z))
    frame.actions.push(actions::UndoDelete{});
  if (escape_is_taken) return;
  const ChatState* chat = active_chat(state);
  if (chat != nullptr && is_busy(*chat) && state.workspace == Workspace::kChat && taken(ImGuiKey_Escape)) {
    frame.actions.push(actions::StopAnswer{chat->id});
  }
}

}  // namespace octavo::ui
