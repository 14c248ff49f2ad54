#include "ui/views/compare/compare_shortcuts.h"

#include <algorithm>
#include <array>

#include "ui/compare_actions.h"
#include "ui/state.h"

namespace octavo::ui {
namespace {

constexpr std::array<CompareKey, 17> kKeys = {{
    {"Alt+1 to Alt+4", "Samples, beams, settings, batch"},
    {"Ctrl+Enter, A", "Run; run again with the same seeds"},
    {"Esc", "Stop all answers"},
    {"X", "Stop this answer; the others go on"},
    {"1 to 6", "Colours: none, shared start, probability, relative, entropy, blocks"},
    {"C, G, S, D, T", "Columns, grid, single, differences, tree"},
    {"F", "Show answers as Markdown, or as tokens"},
    {"[, ]", "Previous or next column"},
    {"M", "Show only this column, or all"},
    {"R", "Set this column as the reference for differences"},
    {"L", "Scroll columns together or separately"},
    {"Page up, Page down", "Scroll"},
    {", and .", "Previous or next token"},
    {"Enter", "Open the token's card; choose an alternative to fork there"},
    {"K, Shift+K", "Keep this answer; keep all"},
    {"N", "Start a new chat with question and answer"},
    {"E, Shift+E, P", "Export JSON; Markdown; tree or scores"},
}};

bool pressed(ImGuiKeyChord chord) { return ImGui::IsKeyChordPressed(chord); }

void choose_colour(CompareLook& look) {
  for (int i = 0; i < kNumTextColours; ++i) {
    if (pressed(ImGuiKey_1 + i)) look.colour = static_cast<TextColour>(i);
  }
}

void choose_layout(CompareLook& look) {
  constexpr std::array kLayoutKeys = {ImGuiKey_C, ImGuiKey_G, ImGuiKey_S, ImGuiKey_D, ImGuiKey_T};
  for (std::size_t i = 0; i < kLayoutKeys.size(); ++i) {
    if (pressed(kLayoutKeys[i])) look.layout = static_cast<CompareLayout>(i);
  }
  if (pressed(ImGuiKey_M))
    look.layout = look.layout == CompareLayout::kSingle ? CompareLayout::kColumns : CompareLayout::kSingle;
  if (pressed(ImGuiKey_F)) look.formatted = !look.formatted;
  if (pressed(ImGuiKey_L)) look.scroll_locked = !look.scroll_locked;
  if (pressed(ImGuiKey_P)) look.show_scores = !look.show_scores;
  if (pressed(ImGuiKey_PageDown)) look.wanted_scroll = 1;
  if (pressed(ImGuiKey_PageUp)) look.wanted_scroll = -1;
  if (look.wanted_scroll != 0) look.scroll_leader = {};
}

void move_selection(const ComparisonState& comparison, CompareLook& look) {
  const std::size_t index = column_index(comparison, look.selected);
  const std::size_t last = comparison.columns.size() - 1;
  std::size_t wanted = index;
  if (pressed(ImGuiKey_LeftBracket) && index > 0) wanted = index - 1;
  if (pressed(ImGuiKey_RightBracket)) wanted = std::min(index + 1, last);
  if (wanted != index) {
    look.selected = comparison.columns[wanted].id;
    look.cursor_moved = true;
  }
  const ComparedColumn& column = comparison.columns[wanted];
  if (column.tokens.empty()) return look.cursor.reset();
  const std::size_t last_token = column.tokens.size() - 1;
  const bool next = pressed(ImGuiKey_Period), previous = pressed(ImGuiKey_Comma);
  if ((next || previous) && !look.cursor) {
    look.cursor = next ? 0 : last_token;
    look.cursor_moved = true;
  } else if (look.cursor && (next || previous)) {
    look.cursor = next ? std::min(*look.cursor + 1, last_token) : *look.cursor - (*look.cursor > 0 ? 1 : 0);
    look.cursor_moved = true;
  }
  if (look.cursor) look.cursor = std::min(*look.cursor, last_token);
  if (look.cursor && (pressed(ImGuiKey_Enter) || pressed(ImGuiKey_KeypadEnter))) {
    look.card = TokenPlace{column.id, *look.cursor};
    look.open_card = true;
  }
}

void act_on_columns(const Frame& frame, const ComparisonState& comparison, CompareLook& look) {
  ActionSink& sink = frame.actions;
  const ColumnId selected = look.selected;
  if (pressed(ImGuiMod_Shift | ImGuiKey_K)) sink.push(actions::KeepAllColumns{});
  if (pressed(ImGuiKey_K)) sink.push(actions::KeepColumn{selected});
  if (pressed(ImGuiKey_X)) sink.push(actions::StopColumn{selected});
  if (pressed(ImGuiKey_N)) sink.push(actions::ContinueColumn{selected});
  if (pressed(ImGuiKey_R)) look.reference = selected;
  if (pressed(ImGuiKey_A) && !comparison.running) sink.push(actions::RunComparisonAgain{});
  if (pressed(ImGuiMod_Shift | ImGuiKey_E))
    sink.push(actions::ExportComparison{actions::ComparisonFormat::kMarkdown});
  if (pressed(ImGuiKey_E)) sink.push(actions::ExportComparison{actions::ComparisonFormat::kJson});
}

}  // namespace

std::span<const CompareKey> compare_keys() { return kKeys; }

void apply_compare_shortcuts(const Frame& frame, const UiState& state, CompareLook& look) {
  const ComparisonState& comparison = state.comparison;
  look.cursor_moved = false;
  look.wanted_scroll = 0;
  const bool card_open = look.card.has_value();
  if (has_dialog(state) || card_open || look.batch || comparison.messages.empty()) return;
  if (pressed(ImGuiMod_Ctrl | ImGuiKey_Enter) && !comparison.running)
    frame.actions.push(actions::RunComparison{});
  if (ImGui::GetIO().WantTextInput || ImGui::IsPopupOpen("", ImGuiPopupFlags_AnyPopupId)) return;
  if (pressed(ImGuiKey_Escape)) {
    if (comparison.running) frame.actions.push(actions::StopComparison{});
    look.cursor.reset();
  }
  choose_colour(look);
  choose_layout(look);
  if (comparison.columns.empty()) return;
  move_selection(comparison, look);
  act_on_columns(frame, comparison, look);
}

}  // namespace octavo::ui
