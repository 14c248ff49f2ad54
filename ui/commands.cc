#include "ui/commands.h"

#include <algorithm>

#include "ui/chat_actions.h"
#include "ui/compare_actions.h"
#include "ui/desktop_actions.h"
#include "ui/model_actions.h"
#include "ui/state.h"

namespace octavo::ui {
namespace {

constexpr ImGuiKeyChord kControl = ImGuiMod_Ctrl, kControlShift = ImGuiMod_Ctrl | ImGuiMod_Shift;

bool always(const UiState&) { return true; }
bool with_model(const UiState& state) {
  return state.model.phase == ModelPhase::kReady && !state.settings_open && !state.desktop.attach_open &&
         !state.desktop.presets_open && !state.picker.open;
}
bool without_settings(const UiState& state) { return !state.settings_open; }
bool with_chat(const UiState& state) { return with_model(state) && active_chat(state) != nullptr; }
bool with_answer(const UiState& state) {
  const ChatState* chat = active_chat(state);
  return with_model(state) && chat != nullptr && is_busy(*chat);
}
bool with_deleted(const UiState& state) { return with_model(state) && state.deleted_title.has_value(); }

template <class Change>
void change_settings(const UiState& state, ActionSink& actions, const Change& change) {
  SettingsState settings = state.settings;
  change(settings);
  actions.push(actions::ChangeSettings{settings});
}

template <int kPercent>  // 0: back to 100 %
void change_scale(const UiState& state, ActionSink& actions) {
  change_settings(state, actions, [](SettingsState& settings) {
    const double scale = kPercent == 0 ? 1.0 : settings.ui_scale * kPercent / 100.0;
    settings.ui_scale = std::clamp(scale, 0.75, 3.0);
  });
}

template <Workspace kWorkspace>
void show_workspace(const UiState&, ActionSink& actions) {
  actions.push(actions::ShowWorkspace{kWorkspace});
}

template <int kOffset>
void select_neighbour(const UiState&, ActionSink& actions) {
  actions.push(actions::SelectNeighbour{kOffset});
}

void compare_last_question(const UiState& state, ActionSink& actions) {
  const auto& messages = active_chat(state)->messages;
  for (auto message = messages.rbegin(); message != messages.rend(); ++message) {
    if (message->role != Role::kUser) continue;
    return actions.push(actions::OpenComparison{state.active_chat, message->id});
  }
}

template <ThemeName kTheme>
void use_theme(const UiState& state, ActionSink& actions) {
  change_settings(state, actions, [](SettingsState& settings) { settings.theme = kTheme; });
}

template <actions::ChatFormat kFormat>
void export_chat(const UiState& state, ActionSink& actions) {
  actions.push(actions::ExportChat{state.active_chat, kFormat, {}});
}

constexpr Command kCommands[] = {
    {"New chat", "Ctrl+N", kControl | ImGuiKey_N, 0, with_model,
     [](const UiState&, ActionSink& actions) { actions.push(actions::NewChat{}); }},
    {"Find a command or chat", "Ctrl+K, Ctrl+Shift+P", kControl | ImGuiKey_K, kControlShift | ImGuiKey_P,
     always,
     [](const UiState& state, ActionSink& actions) {
       actions.push(actions::ShowPalette{!state.palette_open});
     }},
    {"Search all chats", "Ctrl+Shift+F", kControlShift | ImGuiKey_F, 0, with_model,
     [](const UiState& state, ActionSink& actions) {
       if (!state.settings.sidebar_shown) {
         change_settings(state, actions, [](SettingsState& settings) { settings.sidebar_shown = true; });
       }
       actions.push(actions::ShowSearch{true});
     }},
    {"Next chat", "Ctrl+Tab, Ctrl+PageDown", kControl | ImGuiKey_Tab, kControl | ImGuiKey_PageDown,
     with_model, select_neighbour<+1>},
    {"Previous chat", "Ctrl+Shift+Tab, Ctrl+PageUp", kControlShift | ImGuiKey_Tab, kControl | ImGuiKey_PageUp,
     with_model, select_neighbour<-1>},
    {"Chat", "Ctrl+1", kControl | ImGuiKey_1, 0, with_model, show_workspace<Workspace::kChat>},
    {"Compare", "Ctrl+2", kControl | ImGuiKey_2, 0, with_model, show_workspace<Workspace::kCompare>},
    {"Compare answers to the last question", "Ctrl+Shift+D", kControlShift | ImGuiKey_D, 0, with_chat,
     compare_last_question},
    {"Memory", "Ctrl+3", kControl | ImGuiKey_3, 0, with_model, show_workspace<Workspace::kMemory>},
    {"Stop the answer", "Esc", 0, 0, with_answer,
     [](const UiState& state, ActionSink& actions) { actions.push(actions::StopAnswer{state.active_chat}); }},
    {"Sampling and system prompt", "", 0, 0, with_chat,
     [](const UiState& state, ActionSink& actions) {
       actions.push(actions::ShowWorkspace{Workspace::kChat});
       actions.push(actions::ShowSampling{!state.sampling_open});
     }},
    {"All branches of this chat", "Ctrl+Shift+B", kControlShift | ImGuiKey_B, 0, with_chat,
     [](const UiState& state, ActionSink& actions) {
       if (!state.desktop.tree_open) actions.push(actions::ShowWorkspace{Workspace::kChat});
       actions.push(actions::ShowTree{!state.desktop.tree_open});
     }},
    {"Attach a text file", "Ctrl+Shift+A", kControlShift | ImGuiKey_A, 0, with_chat,
     [](const UiState&, ActionSink& actions) {
       actions.push(actions::ShowWorkspace{Workspace::kChat});
       actions.push(actions::ShowAttach{true});
     }},
    {"Presets", "", 0, 0, with_chat,
     [](const UiState&, ActionSink& actions) { actions.push(actions::ShowPresets{true}); }},
    {"Pin or unpin this chat", "", 0, 0, with_chat,
     [](const UiState& state, ActionSink& actions) {
       actions.push(actions::PinChat{state.active_chat, !active_chat(state)->pinned});
     }},
    {"Delete this chat", "", 0, 0, with_chat,
     [](const UiState& state, ActionSink& actions) { actions.push(actions::DeleteChat{state.active_chat}); }},
    // The chord is in shortcuts.cc: a text that is being edited undoes its own changes first.
    {"Restore the deleted chat", "Ctrl+Z", 0, 0, with_deleted,
     [](const UiState&, ActionSink& actions) { actions.push(actions::UndoDelete{}); }},
    {"Export this chat as Markdown", "", 0, 0, with_chat, export_chat<actions::ChatFormat::kMarkdown>},
    {"Export this chat as JSON", "", 0, 0, with_chat, export_chat<actions::ChatFormat::kJson>},
    {"Export all chats", "", 0, 0, with_model,
     [](const UiState&, ActionSink& actions) { actions.push(actions::ExportAllChats{}); }},
    {"Models", "Ctrl+M, Ctrl+L", kControl | ImGuiKey_M, kControl | ImGuiKey_L, without_settings,
     [](const UiState& state, ActionSink& actions) {
       if (state.picker.open) {
         actions.push(actions::CloseModelPicker{});
       } else {
         actions.push(actions::OpenModelPicker{});
       }
     }},
    {"Settings", "Ctrl+,", kControl | ImGuiKey_Comma, 0, always,
     [](const UiState& state, ActionSink& actions) {
       actions.push(actions::ShowSettings{!state.settings_open});
     }},
    {"Show or hide the sidebar", "Ctrl+B", kControl | ImGuiKey_B, 0, with_model,
     [](const UiState& state, ActionSink& actions) {
       change_settings(state, actions,
                       [](SettingsState& settings) { settings.sidebar_shown = !settings.sidebar_shown; });
     }},
    {"Dark theme", "", 0, 0, always, use_theme<ThemeName::kDark>},
    {"Light theme", "", 0, 0, always, use_theme<ThemeName::kLight>},
    {"High contrast", "", 0, 0, always, use_theme<ThemeName::kHighContrast>},
    {"Zoom in", "Ctrl+Plus", kControl | ImGuiKey_Equal, kControl | ImGuiKey_KeypadAdd, always,
     change_scale<110>},
    {"Zoom out", "Ctrl+Minus", kControl | ImGuiKey_Minus, kControl | ImGuiKey_KeypadSubtract, always,
     change_scale<91>},
    {"Reset zoom to 100 %", "Ctrl+0", kControl | ImGuiKey_0, 0, always, change_scale<0>},
};

}  // namespace

std::span<const Command> commands() { return kCommands; }

}  // namespace octavo::ui
