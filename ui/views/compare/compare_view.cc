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
constexpr float kToolbarRow = 44;
constexpr float kChipRow = 34;
constexpr float kLayoutsWidth = 364;
constexpr float kGroupsWidth = 450;   // of the groups beside the layouts
constexpr float kColoursWidth = 500;  // of the colours' chips
constexpr float kLegendWidth = 420;
constexpr float kSharingWidth = 240;  // of what they share in memory
constexpr float kNarrowestSharing = 150;
constexpr float kMostSetup = 0.55f;  // of the workspace's height
constexpr float kTreeShare = 0.40f;
constexpr float kLeastContent = 260;  // a column's head, two lines of its text, and its foot

// Answers that ended at once, or waited for room, may never have stood in one snapshot: then the words say
// how many did.
std::string sharing_words(const ComparisonState& comparison) {
  const ComparisonMemory& memory = comparison.memory;
  if (memory.step < 0) return {};
  const bool is_search = comparison.shown_kind == ComparisonKind::kBeams;
  const auto num_columns = static_cast<std::int32_t>(comparison.columns.size());
  const bool is_part = !is_search && memory.num_tables < num_columns;
  if (memory.num_tables < 2 && is_part)
    return "Only " + std::to_string(memory.num_tables) + " of " + count_text(num_columns, "column") +
           " was in memory at once";
  const std::string tables =
      is_part ? std::to_string(memory.num_tables) + " of " + count_text(num_columns, "column") + " at once,"
              : count_text(memory.num_tables, is_search ? "seat" : "column");
  if (memory.num_shared_blocks == 0) return tables + (is_part ? "" : ",") + " no blocks shared";
  return tables + (is_part ? " sharing " : " share ") + count_text(memory.num_shared_blocks, "block") + ": " +
         bytes_text(memory.saved_bytes) + " saved";
}

// Whether layouts, the other groups and what the columns share stand beside each other.
bool is_one_row(const Frame& frame, float width) {
  return width >= frame.px(kLayoutsWidth + kGroupsWidth + kSharingWidth);
}

// Design pixels.
float colours_height(const Frame& frame, float width) {
  return width >= frame.px(kColoursWidth) ? kChipRow : 2 * kChipRow;
}

}  // namespace

void CompareView::draw(const Frame& frame, const UiState& state, ImVec2 extent) {
  const ComparisonState& comparison = state.comparison;
  settle(comparison);
  apply_compare_shortcuts(frame, state, look_);
  const float margin = frame.px(kMargin);
  const ImVec2 low = ImGui::GetCursorScreenPos();
  const float width = extent.x - 2 * margin;
  if (look_.batch) {
    ImGui::SetCursorScreenPos({low.x + margin, low.y + margin});
    return batch_.draw(frame, state, look_, {width, extent.y - 2 * margin});
  }
  if (comparison.messages.empty()) return setup_.draw_empty(frame, state, look_, extent);
  const float most = extent.y * kMostSetup;
  ImGui::SetCursorScreenPos({low.x + margin, low.y + margin});
  setup_.draw(frame, state, look_, width, most);
  const float toolbar = low.y + margin + setup_.height(frame, state, width, most) + frame.px(12);
  ImGui::SetCursorScreenPos({low.x + margin, toolbar});
  draw_toolbar(frame, state, width);
  const float top = toolbar + toolbar_height(frame, width);
  ImGui::SetCursorScreenPos({low.x + margin, top});
  draw_content(frame, state, {width, std::max(frame.px(kLeastContent), low.y + extent.y - margin - top)});
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
}

// Rows: layouts and the other groups, colours, and the colours' key where it does not fit beside them.
float CompareView::toolbar_height(const Frame& frame, float width) const {
  const bool one_row = is_one_row(frame, width);
  const bool key_beside = width >= frame.px(kColoursWidth + kLegendWidth);
  const bool has_key = !look_.formatted && look_.colour != TextColour::kNone;
  const float colours = look_.formatted ? kChipRow : colours_height(frame, width);
  return frame.px(kToolbarRow + (one_row ? 0 : kChipRow) + colours + (has_key && !key_beside ? kChipRow : 0));
}

void CompareView::draw_toolbar(const Frame& frame, const UiState& state, float width) {
  constexpr std::array kLayouts = {"Columns", "Grid", "Single", "Diff", "Tree"};
  constexpr std::array kLayoutIds = {"columns", "grid", "single", "diff", "tree"};
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const auto before = static_cast<std::size_t>(look_.layout);
  look_.layout = static_cast<CompareLayout>(
      segments(frame, "layout", kLayouts, kLayoutIds, before, std::min(frame.px(kLayoutsWidth), width)));
  const bool one_row = is_one_row(frame, width);
  float y = at.y + frame.px(one_row ? 6 : kToolbarRow);
  ImGui::SetCursorScreenPos({at.x + (one_row ? frame.px(kLayoutsWidth + 16) : 0), y});
  const bool names_groups = width >= frame.px(kGroupsWidth);
  const auto group = [&](const char* name) {
    if (!names_groups) return;
    const ImVec2 place = ImGui::GetCursorScreenPos();
    const TextStyle style = tiny_text(frame);
    draw_text(frame, ImGui::GetWindowDrawList(), {place.x, place.y + frame.px(3)}, style, name);
    ImGui::SetCursorScreenPos({place.x + text_width(frame, style, name) + frame.px(8), place.y});
  };
  group("Text");
  if (chip(frame, "formatted", "Markdown", {.is_on = look_.formatted})) look_.formatted = !look_.formatted;
  tooltip(frame, "Show answers as in Chat, without colours under their words (F)");
  beside(frame, 16);
  group("Scroll");
  if (chip(frame, "scroll_lock", look_.scroll_locked ? "together" : "separate"))
    look_.scroll_locked = !look_.scroll_locked;
  tooltip(frame, "Scroll columns together or separately (L)");
  if (!state.comparison.columns.empty()) {
    beside(frame, 16);
    group("Export");
    if (chip(frame, "export_json", "JSON"))
      frame.actions.push(actions::ExportComparison{actions::ComparisonFormat::kJson});
    tooltip(frame, "Export question, answers, seeds and log-probabilities (E)");
    beside(frame, 6);
    if (chip(frame, "export_markdown", "Markdown"))
      frame.actions.push(actions::ExportComparison{actions::ComparisonFormat::kMarkdown});
    tooltip(frame, "Export question and answers with their seeds (Shift+E)");
  }
  const float beside_them = one_row ? ImGui::GetItemRectMax().x : at.x + frame.px(kLayoutsWidth);
  const float room = at.x + width - beside_them - frame.px(16);
  if (room >= frame.px(kNarrowestSharing))
    draw_sharing(frame, state, {at.x + width, at.y + frame.px(9)}, room);
  y = at.y + frame.px(kToolbarRow + (one_row ? 0 : kChipRow));
  ImGui::SetCursorScreenPos({at.x, y});
  if (look_.formatted)
    return line(frame, tiny_text(frame), "Colours belong to tokens: switch Markdown off to see them.", width);
  group("Colours");
  draw_colours(frame, width);
  const bool key_beside = width >= frame.px(kColoursWidth + kLegendWidth);
  draw_legend(frame, state.comparison,
              key_beside ? ImVec2{at.x + frame.px(kColoursWidth), y}
                         : ImVec2{at.x, y + frame.px(colours_height(frame, width))},
              at.x + width);
}

void CompareView::draw_colours(const Frame& frame, float width) {
  const ImVec2 first = ImGui::GetCursorScreenPos();
  const bool two_rows = width < frame.px(kColoursWidth);
  for (int i = 0; i < kNumTextColours; ++i) {
    const auto colour = static_cast<TextColour>(i);
    const std::string id = "colour_" + std::to_string(i + 1);
    if (two_rows && i == kNumTextColours / 2) {
      ImGui::SetCursorScreenPos({first.x, first.y + frame.px(kChipRow)});
    } else if (i > 0) {
      beside(frame, 6);
    }
    if (chip(frame, id.c_str(), text_colour_name(colour), {.is_on = look_.colour == colour}))
      look_.colour = colour;
    tooltip(frame, std::string(text_colour_help(colour)) + " Key " + std::to_string(i + 1) + ".");
  }
}

// What each shade below the words says.
void CompareView::draw_legend(const Frame& frame, const ComparisonState& comparison, ImVec2 at,
                              float right) const {
  ImDrawList* list = ImGui::GetWindowDrawList();
  const TextStyle style = tiny_text(frame);
  TextStyle pale = style;
  pale.colour = frame.theme.faint;
  for (const LegendEntry& entry : colour_legend(look_.colour, comparison.num_alternatives)) {
    const ImVec2 low{at.x, at.y + frame.px(4)}, high{at.x + frame.px(18), at.y + frame.px(20)};
    switch (entry.mark) {
      case LegendMark::kUnderline: {
        const float thickness = frame.px(2) + std::round(entry.surprise * frame.px(2));
        list->AddRectFilled({low.x, high.y - frame.px(4)}, {high.x, high.y - frame.px(4) + thickness},
                            surprise_colour(frame.theme, entry.surprise), 1.0f);
        break;
      }
      case LegendMark::kPale: draw_text(frame, list, {low.x, at.y + frame.px(3)}, pale, "Abc"); break;
      case LegendMark::kBar:
        list->AddRectFilled({low.x + frame.px(8), low.y}, {low.x + frame.px(10), high.y}, frame.theme.accent);
        break;
      case LegendMark::kShared:
        list->AddRectFilled(low, high, mix(frame.theme.panel, frame.theme.accent, 0.28f));
        break;
      case LegendMark::kOwn:
        list->AddRectFilled(low, high, mix(frame.theme.panel, frame.theme.owner(0), 0.28f));
        break;
    }
    const float text = at.x + frame.px(entry.mark == LegendMark::kPale ? 28 : 24);
    if (text + frame.px(20) > right) return;
    draw_text(frame, list, {text, at.y + frame.px(3)}, style, entry.label, right - text);
    at.x = text + text_width(frame, style, entry.label) + frame.px(14);
  }
}

// Ends at `right`.
void CompareView::draw_sharing(const Frame& frame, const UiState& state, ImVec2 right, float room) {
  const std::string words = sharing_words(state.comparison);
  if (words.empty()) return;
  const TextStyle tiny = tiny_text(frame);
  const float needed = std::min(text_width(frame, tiny, words), room);
  ImGui::SetCursorScreenPos({right.x - needed, right.y});
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
    return ImGui::Dummy(extent);
  }
  const bool has_tree = comparison.shown_kind == ComparisonKind::kBeams;
  if (look_.layout == CompareLayout::kTree && has_tree) return tree_.draw(frame, state, look_, extent);
  if (look_.layout == CompareLayout::kTree) return divergence_.draw(frame, state, look_, extent);
  const bool tree_below = has_tree && look_.layout == CompareLayout::kColumns && extent.y > frame.px(520);
  const float tree_height = tree_below ? std::floor(extent.y * kTreeShare) : 0;
  const float space = tree_below ? frame.px(12) : 0;
  columns_.draw(frame, state, look_, {extent.x, extent.y - tree_height - space});
  if (!tree_below) return;
  ImGui::SetCursorScreenPos({low.x, low.y + extent.y - tree_height});
  tree_.draw(frame, state, look_, {extent.x, tree_height});
}

}  // namespace octavo::ui
