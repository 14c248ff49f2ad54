// The Compare workspace: the question and what is asked of it, the answers in one of several layouts, the
// trees of a beam search and of where answers part; or the batch.
//
// Keeps what only matters for drawing: the layout, colours, selection and scroll positions.
#pragma once

#include "ui/compare_state.h"
#include "ui/frame.h"
#include "ui/views/compare/batch_view.h"
#include "ui/views/compare/beam_tree_view.h"
#include "ui/views/compare/columns_view.h"
#include "ui/views/compare/compare_look.h"
#include "ui/views/compare/divergence_view.h"
#include "ui/views/compare/setup_view.h"

namespace octavo::ui {

class CompareView {
 public:
  // In the rectangle from the cursor, `extent` large.
  void draw(const Frame& frame, const UiState& state, ImVec2 extent);

  const CompareLook& look() const { return look_; }

 private:
  void settle(const ComparisonState& comparison);
  float toolbar_height(const Frame& frame, float width) const;
  void draw_toolbar(const Frame& frame, const UiState& state, float width);
  void draw_colours(const Frame& frame, float width);
  void draw_legend(const Frame& frame, const ComparisonState& comparison, ImVec2 at, float right) const;
  static void draw_sharing(const Frame& frame, const UiState& state, ImVec2 right, float room);
  void draw_content(const Frame& frame, const UiState& state, ImVec2 extent);

  CompareLook look_;
  SetupView setup_;
  ColumnsView columns_;
  BeamTreeView tree_;
  DivergenceView divergence_;
  BatchView batch_;
};

}  // namespace octavo::ui
