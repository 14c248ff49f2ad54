#include "ui/views/compare/compare_view.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <utility>

#include "engine/base/format.h"
#include "ui/compare_actions.h"
#include "ui/state.h"
#include "ui/views/compare/compare_shortcuts.h"
#include "ui/views/compare/kv_strip.h"
#include "ui/views/compare/token_card.h"
#include "ui/widgets/controls.h"

namespace octavo::ui {
namespace {

constexpr float kMargin = 16;
constexpr float kToolbarHeight = 48;
constexpr float kSecondRow = 34;
constexpr float kLayoutsWidth = 364;
constexpr float kOneRow = 1090;  // of the toolbar, with the line about sharing
constexpr float kTreeShare = 0.40f;

std::string sharing_words(const ComparisonState& comparison) {
  const ComparisonMemory& memory = comparison.memory;
  if (memory.step < 0) return {};
  const char* what = comparison.shown_kind == ComparisonKind::kBeams ? "seat" : "column";
  if (memory.num_shared_blocks == 0) return count_text(memory.num_tables, what) + ", no blocks shared";
  return count_text(memory.num_tables, what) + " share " + count_text(memory.num_shared_blocks, "block") +
         ": " + bytes_text(memory.saved_bytes) + " saved";
}

}  // namespace

void CompareView::draw(const Frame& frame, const UiState& state, ImVec2 extent) {
  const ComparisonState& comparison = state.comparison;
  settle(comparison);
  apply_compare_shortcuts(frame, state, look_);
  const float margin = frame.px(kMargin);
  const ImVec2 low = ImGui::GetCursorScreenPos();
  const float width = extent.x - 2 * margin;
  if (comparison.messages.empty()) return setup_.draw_empty(frame, state, extent);
  ImGui::SetCursorScreenPos({low.x + margin, low.y + margin});
  setup_.draw(frame, state, width);
  const float toolbar = low.y + margin + setup_.height(frame, state, width) + frame.px(6);
  ImGui::SetCursorScreenPos({low.x + margin, toolbar});
  draw_toolbar(frame, state, width);
  const bool one_row = width >= frame.px(kOneRow);
  const float top = toolbar + frame.px(kToolbarHeight + (one_row ? 0 : kSecondRow));
  ImGui::SetCursorScreenPos({low.x + margin, top});
  draw_content(frame, state, {width, std::max(frame.px(160), low.y + extent.y - margin - top)});
  draw_shared_links(frame, look_);
  draw_token_card(frame, state, look_);
}

// Ids of columns that are gone give way to the first.
void CompareView::settle(const ComparisonState& comparison) {
  look_.pointed_block = std::exchange(look_.next_pointed_block, std::nullopt);
  look_.shared_cells.clear();
  if (comparison.columns.empty()) {
    look_.selected = {};
    look_.cursor.reset();
    return;
  }
  const ColumnId first = comparison.columns.front().id;
  if (find_column(comparison, look_.selected) == nullptr) {
    look_.selected = first;
    look_.cursor.reset();
  }
  if (find_column(comparison, look_.reference) == nullptr) look_.reference = first;
  if (find_column(comparison, look_.scroll_leader) == nullptr) look_.scroll_leader = {};
  if (look_.layout == CompareLayout::kTree && comparison.beams.nodes.empty() && !comparison.running)
    look_.layout = CompareLayout::kColumns;
}

void CompareView::draw_toolbar(const Frame& frame, const UiState& state, float width) {
  constexpr std::array kLayouts = {"Columns", "Grid", "Single", "Diff", "Tree"};
  constexpr std::array kLayoutIds = {"columns", "grid", "single", "diff", "tree"};
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const auto before = static_cast<std::size_t>(look_.layout);
  look_.layout = static_cast<CompareLayout>(
      segments(frame, "layout", kLayouts, kLayoutIds, before, frame.px(kLayoutsWidth)));
  const bool one_row = width >= frame.px(kOneRow);
  draw_sharing(frame, state, {at.x, at.y + frame.px(9)}, width);
  ImGui::SetCursorScreenPos(one_row ? ImVec2{at.x + frame.px(kLayoutsWidth + 14), at.y + frame.px(6)}
                                    : ImVec2{at.x, at.y + frame.px(kToolbarHeight - 6)});
  for (int i = 0; i < kNumTextColours; ++i) {
    const auto colour = static_cast<TextColour>(i);
    const std::string id = "colour_" + std::to_string(i + 1);
    const bool on = look_.colour == colour;
    if (on) {
      const ImVec2 low = ImGui::GetCursorScreenPos();
      const float chip_width = text_width(frame, tiny_text(frame), text_colour_name(colour)) + frame.px(18);
      ImGui::GetWindowDrawList()->AddRectFilled(low, {low.x + std::ceil(chip_width), low.y + frame.px(24)},
                                                with_alpha(frame.theme.accent, 0.28f), frame.px(7));
    }
    if (chip(frame, id.c_str(), text_colour_name(colour))) look_.colour = colour;
    tooltip(frame, std::string(text_colour_help(colour)) + " Key " + std::to_string(i + 1) + ".");
    beside(frame, 6);
  }
  if (chip(frame, "scroll_lock", look_.scroll_locked ? "scroll: together" : "scroll: separate"))
    look_.scroll_locked = !look_.scroll_locked;
  tooltip(frame, "Scroll columns together or separately (L)");
  beside(frame, 6);
  const bool any = !state.comparison.columns.empty();
  if (any && chip(frame, "export_json", "JSON"))
    frame.actions.push(actions::ExportComparison{actions::ComparisonFormat::kJson});
  if (any) tooltip(frame, "Export question, answers, seeds and log-probabilities (E)");
  beside(frame, 6);
  if (any && chip(frame, "export_markdown", "Markdown"))
    frame.actions.push(actions::ExportComparison{actions::ComparisonFormat::kMarkdown});
  if (any) tooltip(frame, "Export question and answers with their seeds (Shift+E)");
}

// At the right end of the toolbar's first row.
void CompareView::draw_sharing(const Frame& frame, const UiState& state, ImVec2 at, float width) {
  const std::string words = sharing_words(state.comparison);
  if (words.empty()) return;
  const TextStyle tiny = tiny_text(frame);
  const float room = width - frame.px(kLayoutsWidth + 16) -
                     (width >= frame.px(kOneRow) ? frame.px(kOneRow - kLayoutsWidth - 256) : 0);
  const float needed = std::min(text_width(frame, tiny, words), room);
  ImGui::SetCursorScreenPos({at.x + width - needed, at.y});
  line(frame, tiny, words, needed + 1);
  tooltip(frame,
          "Measured when most of them were in memory at once. Shared: blocks in more than one block table. "
          "Saved: (sum of table lengths − distinct blocks) × bytes per block.");
}

void CompareView::draw_content(const Frame& frame, const UiState& state, ImVec2 extent) {
  const ComparisonState& comparison = state.comparison;
  const ImVec2 low = ImGui::GetCursorScreenPos();
  if (comparison.columns.empty()) {
    TextStyle faint = small_text(frame);
    faint.colour = frame.theme.faint;
    const char* hint = "Choose what to compare and press Run (Ctrl+Enter).";
    const float width = text_width(frame, faint, hint);
    draw_text(frame, ImGui::GetWindowDrawList(),
              {low.x + std::floor((extent.x - width) * 0.5f), low.y + extent.y * 0.38f}, faint, hint);
    return;
  }
  const bool has_tree = comparison.shown_kind == ComparisonKind::kBeams;
  if (look_.layout == CompareLayout::kTree && has_tree) return tree_.draw(frame, state, look_, extent);
  const bool tree_below = has_tree && look_.layout == CompareLayout::kColumns && extent.y > frame.px(520);
  const float tree_height = tree_below ? std::floor(extent.y * kTreeShare) : 0;
  const float space = tree_below ? frame.px(12) : 0;
  columns_.draw(frame, state, look_, {extent.x, extent.y - tree_height - space});
  if (!tree_below) return;
  ImGui::SetCursorScreenPos({low.x, low.y + extent.y - tree_height});
  tree_.draw(frame, state, look_, {extent.x, tree_height});
}

}  // namespace octavo::ui
