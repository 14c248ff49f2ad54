#include "ui/views/settings_view.h"

#include <algorithm>
#include <array>
#include <string>

#include "ui/commands.h"
#include "ui/desktop_actions.h"
#include "ui/state.h"
#include "ui/views/compare/compare_shortcuts.h"
#include "ui/views/dialog.h"
#include "ui/views/memory/memory_keys.h"
#include "ui/widgets/controls.h"

namespace octavo::ui {
namespace {

constexpr float kWidth = 560, kShortcutsHeight = 236;
constexpr std::array kScales = {0.75, 0.9, 1.0, 1.1, 1.25, 1.5, 1.75, 2.0, 2.5, 3.0};

// Keys of single views, beside those of commands().
struct ShortcutHelp {
  const char* keys;
  const char* text;
};
constexpr ShortcutHelp kShortcuts[] = {
    {"Shift+Enter", "New line in a message"},
    {"PageUp, PageDown, Ctrl+End", "Scroll; scroll to the end"},
    {"F2", "Rename the chat"},
};

void row_label(const Frame& frame, const char* label) {
  line(frame, small_text(frame), label);
  gap(frame, 6);
}

template <class Value>
void draw_choice(const Frame& frame, const char* id, const char* label, std::span<const char* const> labels,
                 std::span<const char* const> ids, SettingsState settings, Value SettingsState::*member,
                 float width) {
  row_label(frame, label);
  const auto before = static_cast<std::size_t>(settings.*member);
  const std::size_t after = segments(frame, id, labels, ids, before, width);
  if (after != before) {
    settings.*member = static_cast<Value>(after);
    frame.actions.push(actions::ChangeSettings{settings});
  }
  gap(frame, 16);
}

void draw_scale(const Frame& frame, const SettingsState& settings, float width) {
  row_label(frame, "Zoom");
  const auto set = [&](double scale) {
    SettingsState changed = settings;
    changed.ui_scale = scale;
    frame.actions.push(actions::ChangeSettings{changed});
  };
  const auto larger = std::upper_bound(kScales.begin(), kScales.end(), settings.ui_scale + 1e-6);
  const auto not_smaller = std::lower_bound(kScales.begin(), kScales.end(), settings.ui_scale - 1e-6);
  if (button(frame, "scale_down", "–", {.width = 44, .enabled = not_smaller != kScales.begin()}))
    set(*(not_smaller - 1));
  beside(frame, 8);
  const std::string shown = std::to_string(static_cast<int>(settings.ui_scale * 100.0 + 0.5)) + " %";
  if (button(frame, "scale_reset", shown,
             {.width = width / frame.theme.scale - 104, .help = "Reset to 100 %"}))
    set(1.0);
  beside(frame, 8);
  if (button(frame, "scale_up", "+", {.width = 44, .enabled = larger != kScales.end()})) set(*larger);
  gap(frame, 16);
}

void draw_shortcut(const Frame& frame, const char* keys, const char* text) {
  TextStyle style = mono_text(frame);
  style.colour = frame.theme.text;
  style.em = 12;
  const ImVec2 at = ImGui::GetCursorScreenPos();
  draw_text(frame, ImGui::GetWindowDrawList(), {at.x + frame.px(232), at.y}, tiny_text(frame), text);
  line(frame, style, keys);
  gap(frame, 4);
}

void draw_shortcuts(const Frame& frame, float width) {
  row_label(frame, "Keyboard");
  ImGui::BeginChild("shortcuts", {width, frame.px(kShortcutsHeight)}, ImGuiChildFlags_NavFlattened);
  for (const Command& command : commands()) {
    if (command.keys[0] != '\0') draw_shortcut(frame, command.keys, command.name);
  }
  for (const ShortcutHelp& shortcut : kShortcuts) draw_shortcut(frame, shortcut.keys, shortcut.text);
  row_label(frame, "In Compare");
  for (const CompareKey& key : compare_keys()) draw_shortcut(frame, key.key, key.help);
  row_label(frame, "In Memory");
  for (const MemoryKey& key : memory_keys()) draw_shortcut(frame, key.keys, key.what);
  ImGui::EndChild();
}

}  // namespace

void draw_settings_view(const Frame& frame, const UiState& state) {
  const DialogOptions dialog{.id = "settings_panel", .title = "Settings", .width = kWidth};
  if (!begin_dialog(frame, dialog, state.settings_open)) return;
  const float width = ImGui::GetContentRegionAvail().x;
  constexpr std::array kThemes = {"Dark", "Light", "High contrast"},
                       kThemeIds = {"dark", "light", "high_contrast"};
  constexpr std::array kSends = {"Enter", "Ctrl+Enter"}, kSendIds = {"enter", "control_enter"};
  draw_choice(frame, "theme", "Theme", kThemes, kThemeIds, state.settings, &SettingsState::theme, width);
  draw_choice(frame, "send_key", "Send messages with", kSends, kSendIds, state.settings,
              &SettingsState::send_key, width);
  draw_scale(frame, state.settings, width);
  draw_shortcuts(frame, width);
  if (end_dialog(frame, state.settings_open)) frame.actions.push(actions::ShowSettings{false});
}

}  // namespace octavo::ui
