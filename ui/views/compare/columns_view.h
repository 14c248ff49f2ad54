// All answers in one of the layouts: side by side with borders that can be dragged, in a grid, one alone with
// arrows, or as differences from a reference.
#pragma once

#include <unordered_map>
#include <vector>

#include "ui/compare_state.h"
#include "ui/frame.h"
#include "ui/views/compare/column_view.h"
#include "ui/views/compare/compare_look.h"

namespace octavo::ui {

class ColumnsView {
 public:
  // In the rectangle from the cursor. REQUIRES: there are columns
  void draw(const Frame& frame, const UiState& state, CompareLook& look, ImVec2 extent);

 private:
  void draw_row(const Frame& frame, const UiState& state, CompareLook& look, ImVec2 extent);
  void draw_border(const Frame& frame, std::vector<float>& widths, const UiState& state, std::size_t index,
                   float height);
  void draw_grid(const Frame& frame, const UiState& state, CompareLook& look, ImVec2 extent);
  void draw_single(const Frame& frame, const UiState& state, CompareLook& look, ImVec2 extent);
  void forget_others(const ComparisonState& comparison);
  std::vector<float> widths_of(const Frame& frame, const ComparisonState& comparison, float room) const;

  std::unordered_map<std::uint64_t, ColumnView> columns_;
  std::unordered_map<std::uint64_t, float> weights_;  // of widths; 1 unless dragged
};

}  // namespace octavo::ui
