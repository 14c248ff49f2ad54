// Two models over one text, in the Compare workspace: which models and which text, how far the comparison is,
// the text with its marks, the table and the worst tokens.
//
// Keeps what is typed, and what only matters for drawing.
#pragma once

#include <cstdint>
#include <string>

#include "ui/frame.h"
#include "ui/two_models_state.h"
#include "ui/views/two_models/two_models_colours.h"
#include "ui/views/two_models/two_models_text.h"

namespace octavo::ui {

class TwoModelsView {
 public:
  // In the rectangle from the cursor, `extent` large.
  void draw(const Frame& frame, const UiState& state, ImVec2 extent);

  const TwoModelsText& text() const { return text_; }

 private:
  void draw_setup(const Frame& frame, const UiState& state, ImVec2 extent);
  void draw_models(const Frame& frame, const UiState& state, float width);
  void draw_source(const Frame& frame, const TwoModelsState& shown, float width);
  void draw_start(const Frame& frame, const TwoModelsState& shown, ImVec2 low, float width);
  void draw_legend(const Frame& frame, float width);
  void draw_figures(const Frame& frame, const TwoModelsResult& result, ImVec2 extent);

  std::string typed_;
  std::uint64_t text_serial_ = 0;
  TwoModelsColour colour_ = TwoModelsColour::kDivergence;
  TwoModelsText text_;
};

}  // namespace octavo::ui
