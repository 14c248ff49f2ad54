#include "ui/commands.h"

#include <algorithm>

#include "ui/chat_actions.h"
#include "ui/compare_actions.h"
#include "ui/desktop_actions.h"
#include "ui/memory_actions.h"
#include "ui/model_actions.h"
#include "ui/state.h"
#include "ui/two_models_actions.h"

namespace octavo::ui {
namespace {

constexpr ImGuiKeyChord kControl = ImGuiMod_Ctrl, kControlShift = ImGuiMod_Ctrl | ImGuiMod_Shift;

bool always(const UiState&) { return true; }
bool without_dialog(const UiState& state) { return !has_dialog(state); }
// Opens a dialog, or closes it: two would lie in front of each other.
bool with_models(const UiState& state) {
  return without_dialog(state) || (state.picker.open && !state.files.open);
}
bool with_settings(const UiState& state) { return without_dialog(state) || state.settings_open; }
bool with_keys(const UiState& state) { return without_dialog(state) || state.desktop.keys_open; }
bool with_chat(const UiState& state) { return without_dialog(state) && active_chat(state) != nullptr; }
bool with_model(const UiState& state) { return with_chat(state) && state.model.phase == ModelPhase::kReady; }
bool without_tiny_pool(const UiState& state) { return with_model(state) && !state.tiny_pool.is_lent; }
bool with_tiny_pool(const UiState& state) { return with_model(state) && state.tiny_pool.is_lent; }
bool with_answer(const UiState& state) {
  const ChatState* chat = active_chat(state);
  return with_model(state) && is_busy(*chat);
}
// The newest message of a role that is shown; nullptr where there is none.
const MessageState* last_message(const UiState& state, bool answer) {
  const ChatState* chat = active_chat(state);
  if (chat == nullptr) return nullptr;
  const auto found =
      std::find_if(chat->messages.rbegin(), chat->messages.rend(), [&](const MessageState& message) {
        return answer ? message.role == Role::kAssistant : message.role == Role::kUser;
      });
  return found == chat->messages.rend() ? nullptr : &*found;
}

template <bool kAnswer>
bool with_last(const UiState& state) {
  return with_chat(state) && last_message(state, kAnswer) != nullptr;
}
bool with_ended_answer(const UiState& state) {
  return with_last<true>(state) && !last_message(state, true)->streaming;
}
bool with_messages(const UiState& state) { return with_chat(state) && !active_chat(state)->messages.empty(); }
bool with_offer(const UiState& state) {
  return with_messages(state) && !is_busy(*active_chat(state)) &&
         active_chat(state)->messages.back().offer != AnswerOffer::kNone;
}
bool with_other_model(const UiState& state) {
  return with_chat(state) && has_other_model(state, *active_chat(state));
}

template <bool kAnswer, MessageEditor kEditor>
void open_editor(const UiState& state, ActionSink& actions) {
  actions.push(actions::ShowMessage{state.active_chat, last_message(state, kAnswer)->id, kEditor});
}

bool with_deleted(const UiState& state) { return without_dialog(state) && state.deleted.has_value(); }

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
    settings.ui_scale = std::clamp(scale, kLeastUiScale, kMostUiScale);
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
    {"New chat", "Ctrl+N", kControl | ImGuiKey_N, 0, without_dialog,
     [](const UiState&, ActionSink& actions) { actions.push(actions::NewChat{}); }},
    {"Find a command or chat", "Ctrl+K, Ctrl+Shift+P", kControl | ImGuiKey_K, kControlShift | ImGuiKey_P,
     without_dialog,
     [](const UiState& state, ActionSink& actions) {
       actions.push(actions::ShowPalette{!state.palette_open});
     }},
    {"Search all chats", "Ctrl+Shift+F", kControlShift | ImGuiKey_F, 0, with_chat,
     [](const UiState& state, ActionSink& actions) {
       if (!state.settings.sidebar_shown) {
         change_settings(state, actions, [](SettingsState& settings) { settings.sidebar_shown = true; });
       }
       actions.push(actions::ShowSearch{true});
     }},
    {"Next chat", "Ctrl+Tab, Ctrl+PageDown", kControl | ImGuiKey_Tab, kControl | ImGuiKey_PageDown, with_chat,
     select_neighbour<+1>},
    {"Previous chat", "Ctrl+Shift+Tab, Ctrl+PageUp", kControlShift | ImGuiKey_Tab, kControl | ImGuiKey_PageUp,
     with_chat, select_neighbour<-1>},
    {"Chat", "Ctrl+1", kControl | ImGuiKey_1, 0, without_dialog, show_workspace<Workspace::kChat>},
    {"Compare", "Ctrl+2", kControl | ImGuiKey_2, 0, without_dialog, show_workspace<Workspace::kCompare>},
    {"Compare answers to the last question", "Ctrl+Shift+D", kControlShift | ImGuiKey_D, 0, with_model,
     compare_last_question},
    {"Compare two models over a text", "", 0, 0, with_model,
     [](const UiState&, ActionSink& actions) { actions.push(actions::ShowTwoModels{true}); }},
    {"Memory", "Ctrl+3", kControl | ImGuiKey_3, 0, without_dialog, show_workspace<Workspace::kMemory>},
    {"Requests and what became of their prompts", "", 0, 0, with_model,
     [](const UiState&, ActionSink& actions) {
       actions.push(actions::ShowWorkspace{Workspace::kMemory});
       actions.push(actions::ShowMemoryPage{MemoryPage::kRequests});
     }},
    {"Run the paper’s experiments", "", 0, 0, without_dialog,
     [](const UiState&, ActionSink& actions) {
       actions.push(actions::ShowWorkspace{Workspace::kMemory});
       actions.push(actions::ShowMemoryPage{MemoryPage::kPaper});
     }},
    {"Server for other programs", "", 0, 0, without_dialog,
     [](const UiState&, ActionSink& actions) { actions.push(actions::ShowServer{true}); }},
    {"Stop the answer", "Esc", 0, 0, with_answer,
     [](const UiState& state, ActionSink& actions) { actions.push(actions::StopAnswer{state.active_chat}); }},
    {"Continue or generate the answer", "Ctrl+Shift+G", kControlShift | ImGuiKey_G, 0, with_offer,
     [](const UiState& state, ActionSink& actions) {
       actions.push(actions::ContinueAnswer{state.active_chat, active_chat(state)->messages.back().id});
     }},
    {"Regenerate the last answer", "Ctrl+Shift+R", kControlShift | ImGuiKey_R, 0, with_last<true>,
     [](const UiState& state, ActionSink& actions) {
       actions.push(actions::Regenerate{state.active_chat, last_message(state, true)->id});
     }},
    {"Edit the last question", "Ctrl+Shift+E", kControlShift | ImGuiKey_E, 0, with_last<false>,
     open_editor<false, MessageEditor::kText>},
    {"Edit the last answer", "Ctrl+Shift+U", kControlShift | ImGuiKey_U, 0, with_ended_answer,
     open_editor<true, MessageEditor::kText>},
    {"Write how the answer begins", "", 0, 0, with_last<false>, open_editor<false, MessageEditor::kAnswer>},
    {"Delete the last message", "", 0, 0, with_messages,
     [](const UiState& state, ActionSink& actions) {
       actions.push(actions::DeleteMessage{state.active_chat, active_chat(state)->messages.back().id,
                                           actions::DeleteExtent::kMessage});
     }},
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
       actions.push(actions::AskForFile{actions::FileWish::kAttach});
     }},
    {"Presets", "", 0, 0, with_chat,
     [](const UiState&, ActionSink& actions) { actions.push(actions::ShowPresets{true}); }},
    {"Pin or unpin this chat", "", 0, 0, with_chat,
     [](const UiState& state, ActionSink& actions) {
       actions.push(actions::PinChat{state.active_chat, !active_chat(state)->pinned});
     }},
    {"Duplicate this chat", "", 0, 0, with_chat,
     [](const UiState& state, ActionSink& actions) {
       actions.push(actions::DuplicateChat{state.active_chat});
     }},
    {"Load this chat's model", "", 0, 0, with_other_model,
     [](const UiState& state, ActionSink& actions) {
       actions.push(actions::LoadModelFile{active_chat(state)->model_path});
     }},
    {"Delete this chat", "", 0, 0, with_chat,
     [](const UiState& state, ActionSink& actions) { actions.push(actions::DeleteChat{state.active_chat}); }},
    // The chord is in shortcuts.cc: a text that is being edited undoes its own changes first.
    {"Restore what was deleted", "Ctrl+Z", 0, 0, with_deleted,
     [](const UiState&, ActionSink& actions) { actions.push(actions::UndoDelete{}); }},
    {"New folder", "", 0, 0, with_chat,
     [](const UiState& state, ActionSink& actions) {
       if (!state.settings.sidebar_shown) {
         change_settings(state, actions, [](SettingsState& settings) { settings.sidebar_shown = true; });
       }
       actions.push(actions::CreateFolder{"New folder"});
     }},
    {"Export this chat as Markdown…", "", 0, 0, with_chat, export_chat<actions::ChatFormat::kMarkdown>},
    {"Export this chat as JSON…", "", 0, 0, with_chat, export_chat<actions::ChatFormat::kJson>},
    {"Export all chats…", "", 0, 0, with_chat,
     [](const UiState&, ActionSink& actions) { actions.push(actions::ExportAllChats{}); }},
    {"Import chats…", "", 0, 0, without_dialog,
     [](const UiState&, ActionSink& actions) {
       actions.push(actions::AskForFile{actions::FileWish::kImportChats});
     }},
    {"Open a recording…", "", 0, 0, without_dialog,
     [](const UiState&, ActionSink& actions) {
       actions.push(actions::AskForFile{actions::FileWish::kOpenRecording});
     }},
    {"Models", "Ctrl+M, Ctrl+L", kControl | ImGuiKey_M, kControl | ImGuiKey_L, with_models,
     [](const UiState& state, ActionSink& actions) {
       if (state.picker.open) {
         actions.push(actions::CloseModelPicker{});
       } else {
         actions.push(actions::OpenModelPicker{});
       }
     }},
    {"Get models…", "", 0, 0, with_models,
     [](const UiState&, ActionSink& actions) { actions.push(actions::OpenCatalogue{}); }},
    {"Try a tiny pool…", "", 0, 0, without_tiny_pool,
     [](const UiState&, ActionSink& actions) {
       actions.push(actions::ShowWorkspace{Workspace::kMemory});
       actions.push(actions::AskAboutTinyPool{TinyPoolQuestion::kLend});
     }},
    {"Give the pool back", "", 0, 0, with_tiny_pool,
     [](const UiState&, ActionSink& actions) {
       actions.push(actions::AskAboutTinyPool{TinyPoolQuestion::kGiveBack});
     }},
    {"Settings", "Ctrl+,", kControl | ImGuiKey_Comma, 0, with_settings,
     [](const UiState& state, ActionSink& actions) {
       actions.push(actions::ShowSettings{!state.settings_open});
     }},
    {"Keyboard shortcuts", "Ctrl+/, F1", kControl | ImGuiKey_Slash, ImGuiKey_F1, with_keys,
     [](const UiState& state, ActionSink& actions) {
       actions.push(actions::ShowKeys{!state.desktop.keys_open});
     }},
    {"Show or hide the sidebar", "Ctrl+B", kControl | ImGuiKey_B, 0, without_dialog,
     [](const UiState& state, ActionSink& actions) {
       change_settings(state, actions,
                       [](SettingsState& settings) { settings.sidebar_shown = !settings.sidebar_shown; });
     }},
    {"Theme of the system", "", 0, 0, always, use_theme<ThemeName::kSystem>},
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
