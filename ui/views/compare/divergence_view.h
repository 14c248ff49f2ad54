// Where the answers part, as a tree that grows to the right: a box for each run of tokens that some answers
// share, with their number and the probability of its first token. A click opens that token's card.
#pragma once

#include <cstdint>

#include "ui/compare_state.h"
#include "ui/frame.h"
#include "ui/views/compare/compare_look.h"
#include "ui/views/compare/divergence_tree.h"

namespace octavo::ui {

class DivergenceView {
 public:
  // A card in the rectangle from the cursor.
  void draw(const Frame& frame, const UiState& state, CompareLook& look, ImVec2 extent);

 private:
  void update(const ComparisonState& comparison);
  void draw_links(const Frame& frame, ImVec2 origin) const;
  void draw_run(const Frame& frame, const ComparisonState& comparison, CompareLook& look, std::size_t index,
                ImVec2 origin) const;
  ImVec2 place(const Frame& frame, std::size_t index, ImVec2 origin) const;

  DivergenceTree tree_;
  DivergenceLayout layout_;
  std::uint64_t shown_ = 0;  // hash of the tokens that it was made of
  float box_width_ = 0;
};

}  // namespace octavo::ui
