#include "ui/views/keys_view.h"

#include <algorithm>
#include <cmath>

#include "ui/commands.h"
#include "ui/desktop_actions.h"
#include "ui/state.h"
#include "ui/views/compare/compare_shortcuts.h"
#include "ui/views/dialog.h"
#include "ui/views/memory/memory_keys.h"
#include "ui/widgets/controls.h"

namespace octavo::ui {
namespace {

constexpr float kWidth = 980, kHeight = 700, kBetween = 28;
constexpr float kNarrowestTwo = 800;                               // with less room, both columns become one
constexpr float kCommandKeysShare = 0.5f, kViewKeysShare = 0.34f;  // of a column, for the keys

// Keys of single views, beside those of commands().
struct ViewKey {
  const char* keys;
  const char* text;
};
constexpr ViewKey kViewKeys[] = {
    {"Enter, Ctrl+Enter", "Send, as the settings say"},
    {"Shift+Enter", "New line in a message"},
    {"Ctrl+F, F3, Shift+F3", "Find in this chat; next; previous"},
    {"PageUp, PageDown, Ctrl+End", "Scroll; scroll to the end"},
    {"F2", "Rename the chat"},
    {"Ctrl+Shift+T", "Show or fold what the model thought"},
    {"Ctrl+Shift+Y", "Show or hide where the time of the last answer went"},
    {"Tab, Shift+Tab, arrows", "Go to another control"},
    {"Esc", "Close what is in front"},
};

void draw_key(const Frame& frame, const char* keys, const char* text, float width, float share) {
  TextStyle style = mono_text(frame);
  style.colour = frame.theme.text;
  style.em = 12;
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float left = std::floor(width * share);
  draw_text(frame, ImGui::GetWindowDrawList(), {at.x + left, at.y}, tiny_text(frame), text, width - left);
  line(frame, style, keys, left - frame.px(8));
  gap(frame, 5);
}

void begin_column(const char* id, ImVec2 low, ImVec2 extent) {
  ImGui::SetCursorScreenPos(low);
  ImGui::BeginChild(id, extent, ImGuiChildFlags_NavFlattened);
}

}  // namespace

void draw_keys_view(const Frame& frame, const UiState& state) {
  const DialogOptions dialog{.id = "keys_panel",
                             .title = "Keyboard shortcuts",
                             .width = kWidth,
                             .height = kHeight,
                             .scrolls = false};
  if (!begin_dialog(frame, dialog, state.desktop.keys_open)) return;
  const ImVec2 low = ImGui::GetCursorScreenPos(), extent = ImGui::GetContentRegionAvail();
  const bool two = extent.x >= frame.px(kNarrowestTwo);
  const ImVec2 column{two ? std::floor((extent.x - frame.px(kBetween)) * 0.5f) : extent.x, extent.y};
  begin_column("everywhere", low, column);
  const float width = ImGui::GetContentRegionAvail().x;
  for (const Command& command : commands()) {
    if (command.keys[0] != '\0') draw_key(frame, command.keys, command.name, width, kCommandKeysShare);
  }
  for (const ViewKey& key : kViewKeys) draw_key(frame, key.keys, key.text, width, kCommandKeysShare);
  if (two) {
    ImGui::EndChild();
    begin_column("workspaces", {low.x + column.x + frame.px(kBetween), low.y}, column);
  } else {
    gap(frame, 10);
  }
  line(frame, small_text(frame), "In Compare");
  gap(frame, 6);
  for (const CompareKey& key : compare_keys()) draw_key(frame, key.key, key.help, width, kViewKeysShare);
  gap(frame, 10);
  line(frame, small_text(frame), "In Memory");
  gap(frame, 6);
  for (const MemoryKey& key : memory_keys()) draw_key(frame, key.keys, key.what, width, kViewKeysShare);
  ImGui::EndChild();
  if (end_dialog(frame, state.desktop.keys_open)) frame.actions.push(actions::ShowKeys{false});
}

}  // namespace octavo::ui
