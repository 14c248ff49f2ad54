// A beam search as a tree that grows to the right, or as curves of its scores.
#pragma once

#include <cstddef>

#include "ui/compare_state.h"
#include "ui/frame.h"
#include "ui/views/compare/beam_tree_layout.h"
#include "ui/views/compare/compare_look.h"

namespace octavo::ui {

class BeamTreeView {
 public:
  // A card in the rectangle from the cursor.
  void draw(const Frame& frame, const UiState& state, CompareLook& look, ImVec2 extent);

 private:
  void draw_tree(const Frame& frame, const BeamTree& tree, ImVec2 extent);
  void draw_runs(const Frame& frame, const BeamTree& tree, ImVec2 origin, float row_height) const;
  void draw_run(const Frame& frame, const BeamTree& tree, const BeamRun& run, ImVec2 low, ImVec2 high) const;
  void draw_ranking(const Frame& frame, const BeamTree& tree, ImVec2 origin, float row_height) const;
  void update(const Frame& frame, const BeamTree& tree);

  BeamTreeLayout layout_;
  std::size_t num_nodes_ = 0, num_final_ = 0;
  const void* shown_ = nullptr;
  std::int32_t num_steps_ = 0;
  float scale_ = 0;
  bool following_ = true;
};

}  // namespace octavo::ui
