// The page "Paper": the evaluation of the PagedAttention paper as a list of experiments, and the chosen one.
// Where there is no room for both, the list is a menu above it.
//
// Keeps only what is typed. UI thread.
#pragma once

#include "ui/frame.h"
#include "ui/memory_state.h"
#include "ui/views/memory/experiment_view.h"

namespace octavo::ui {

class PaperView {
 public:
  void draw(const Frame& frame, const UiState& state, ImVec2 extent);

 private:
  ExperimentView experiment_;
};

}  // namespace octavo::ui
