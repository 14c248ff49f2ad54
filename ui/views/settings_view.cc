#include "ui/views/settings_view.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string>

#include "ui/desktop_actions.h"
#include "ui/state.h"
#include "ui/views/dialog.h"
#include "ui/widgets/controls.h"
#include "ui/widgets/menu.h"

namespace octavo::ui {
namespace {

constexpr float kWidth = 560;
constexpr std::array kScales = {kLeastUiScale, 0.9, 1.0, 1.1, 1.25, 1.5, 1.75, 2.0, 2.5, kMostUiScale};

void row_label(const Frame& frame, std::string_view label) {
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

int percent(double zoom) { return static_cast<int>(zoom * 100.0 + 0.5); }

void draw_scale(const Frame& frame, const SettingsState& settings, double shown_zoom, float width) {
  row_label(frame, percent(shown_zoom) < percent(settings.ui_scale)
                       ? "Zoom: this window has room for " + std::to_string(percent(shown_zoom)) + " %"
                       : "Zoom");
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
  const std::string shown = std::to_string(percent(settings.ui_scale)) + " %";
  if (button(frame, "scale_reset", shown,
             {.width = width / frame.theme.scale - 104, .help = "Reset to 100 %"}))
    set(1.0);
  beside(frame, 8);
  if (button(frame, "scale_up", "+", {.width = 44, .enabled = larger != kScales.end()})) set(*larger);
  gap(frame, 16);
}

void draw_notifies(const Frame& frame, SettingsState settings, float width) {
  row_label(frame, "When an answer took long and nobody looks");
  constexpr std::array kLabels = {"Notify me", "Be quiet"}, kIds = {"notify", "be_quiet"};
  const std::size_t before = settings.notifies ? 0 : 1;
  const std::size_t after = segments(frame, "notifies", kLabels, kIds, before, width);
  if (after != before) {
    settings.notifies = after == 0;
    frame.actions.push(actions::ChangeSettings{settings});
  }
  gap(frame, 16);
}

}  // namespace

// What was written counts when the field is left, or the panel is closed: settings are a file.
void SettingsView::keep_system_prompt(const Frame& frame, const UiState& state) const {
  if (system_prompt_ == state.settings.system_prompt) return;
  SettingsState settings = state.settings;
  settings.system_prompt = system_prompt_;
  frame.actions.push(actions::ChangeSettings{settings});
}

void SettingsView::draw_new_chats(const Frame& frame, const UiState& state, float width) {
  row_label(frame, "New chats begin with");
  const PresetState* chosen = nullptr;
  for (const PresetState& preset : state.library.presets) {
    if (preset.id == state.settings.preset) chosen = &preset;
  }
  const ButtonOptions choose{.icon = Icon::kChevronDown,
                             .width = width / frame.theme.scale,
                             .align_left = true,
                             .help = "A preset has a system prompt, sampling and thinking of its own"};
  if (button(frame, "default_preset", chosen != nullptr ? chosen->name : "No preset", choose))
    ImGui::OpenPopup("default_preset_menu");
  if (begin_menu(frame, "default_preset_menu")) {
    const auto entry = [&](const char* id, std::string_view name, PresetId preset) {
      const bool is_chosen = preset == (chosen != nullptr ? chosen->id : PresetId{});
      const MenuItemOptions options{.icon = is_chosen ? std::optional(Icon::kCheck) : std::nullopt};
      if (!menu_item(frame, id, name, options)) return;
      SettingsState settings = state.settings;
      settings.preset = preset;
      frame.actions.push(actions::ChangeSettings{settings});
    };
    entry("no_preset", "No preset", {});
    for (const PresetState& preset : state.library.presets) {
      ImGui::PushID(static_cast<int>(preset.id.value));
      entry("preset", preset.name.empty() ? std::string_view("Untitled") : preset.name, preset.id);
      ImGui::PopID();
    }
    end_menu();
  }
  gap(frame, 8);
  const Face face = frame.face(FontFace::kRegular, size::kText);
  const ImVec2 extent{width, face.size * 3 + frame.px(16)};
  if (chosen != nullptr) {
    std::string prompt = chosen->system_prompt;
    ImGui::BeginDisabled();
    text_area(frame, "##preset_prompt", prompt, extent, 0, "This preset has no system prompt");
    ImGui::EndDisabled();
  } else {
    // Escape closes the panel; it must not also throw away what was written.
    const std::string before_escape = ImGui::IsKeyPressed(ImGuiKey_Escape) ? system_prompt_ : std::string();
    text_area(frame, "##default_system_prompt", system_prompt_, extent, 0, "System prompt");
    if (!before_escape.empty()) system_prompt_ = before_escape;
    if (ImGui::IsItemDeactivated()) keep_system_prompt(frame, state);
  }
  gap(frame, 16);
}

void SettingsView::draw(const Frame& frame, const UiState& state, float shown_zoom) {
  const DialogOptions dialog{.id = "settings_panel", .title = "Settings", .width = kWidth};
  if (state.settings_open && !was_open_) system_prompt_ = state.settings.system_prompt;
  was_open_ = state.settings_open;
  if (!begin_dialog(frame, dialog, state.settings_open)) return;
  const float width = ImGui::GetContentRegionAvail().x;
  constexpr std::array kThemes = {"Dark", "Light", "High contrast", "As the system"},
                       kThemeIds = {"dark", "light", "high_contrast", "as_the_system"};
  constexpr std::array kSends = {"Enter", "Ctrl+Enter"}, kSendIds = {"enter", "control_enter"};
  draw_choice(frame, "theme", "Theme", kThemes, kThemeIds, state.settings, &SettingsState::theme, width);
  draw_choice(frame, "send_key", "Send messages with", kSends, kSendIds, state.settings,
              &SettingsState::send_key, width);
  constexpr std::array kRepeats = {"Tell me", "Stop the answer"},
                       kRepeatsIds = {"repeats_tell", "repeats_stop"};
  draw_choice(frame, "on_repeats", "When an answer repeats itself", kRepeats, kRepeatsIds, state.settings,
              &SettingsState::on_repeats, width);
  draw_scale(frame, state.settings, shown_zoom, width);
  draw_notifies(frame, state.settings, width);
  draw_new_chats(frame, state, width);
  if (button(frame, "show_server", "Server for other programs…", {})) {
    keep_system_prompt(frame, state);
    frame.actions.push(actions::ShowSettings{false});
    frame.actions.push(actions::ShowServer{true});
  }
  gap(frame, 8);
  if (button(frame, "show_keys", "Keyboard shortcuts (Ctrl+/)", {})) {
    keep_system_prompt(frame, state);
    frame.actions.push(actions::ShowSettings{false});
    frame.actions.push(actions::ShowKeys{true});
  }
  if (!end_dialog(frame, state.settings_open)) return;
  keep_system_prompt(frame, state);
  frame.actions.push(actions::ShowSettings{false});
}

}  // namespace octavo::ui
