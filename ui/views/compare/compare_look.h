// What a person chose to see in the Compare workspace, and what is pointed at: matters for drawing only.
#pragma once

#include <imgui.h>

#include <cstddef>
#include <optional>
#include <vector>

#include "ui/compare_state.h"
#include "ui/views/compare/token_colours.h"

namespace octavo::ui {

enum class CompareLayout { kColumns, kGrid, kSingle, kDiff, kTree };
inline constexpr int kNumCompareLayouts = 5;

struct TokenPlace {
  ColumnId column_id;
  std::size_t token = 0;
};

// Where a cell of a block stands on screen in this frame.
struct CellPlace {
  BlockId block_id;
  ImVec2 low, high;
};

struct CompareLook {
  bool batch = false;       // instead of one question
  bool formatted = false;   // answers as in Chat; nothing stands under their words then
  bool forks_chat = false;  // what the token card's alternatives do, instead of another column
  CompareLayout layout = CompareLayout::kColumns;
  TextColour colour = TextColour::kProbability;
  bool scroll_locked = true;
  bool show_scores = false;           // instead of the beam tree
  ColumnId selected{};                // 0: the first
  ColumnId reference{};               // of the differences; 0: the first
  std::optional<std::size_t> cursor;  // token of the selected column, moved by keyboard
  bool cursor_moved = false;          // in this frame
  std::optional<TokenPlace> card;     // the token whose card is open
  bool open_card = false;             // in this frame
  ImVec2 cursor_place{};              // below the token at the cursor, screen
  float cursor_line = 0;              // height of its line

  // Blocks light up wherever they stand: found while one frame is drawn, shown in the next.
  std::optional<BlockId> pointed_block, next_pointed_block;
  std::vector<CellPlace> shared_cells;

  // Scrolling together: who leads, and where it stands.
  ColumnId scroll_leader{};
  float leader_scroll = 0;
  float wanted_scroll = 0;  // by keyboard, in this frame
};

inline std::size_t column_index(const ComparisonState& comparison, ColumnId id) {
  for (std::size_t i = 0; i < comparison.columns.size(); ++i) {
    if (comparison.columns[i].id == id) return i;
  }
  return 0;
}

}  // namespace octavo::ui
