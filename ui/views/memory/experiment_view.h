// One experiment of the paper's evaluation: what it looks at, the controls of a run, plots, figures and
// notes, live while it runs.
//
// Keeps only what is typed. UI thread.
#pragma once

#include <cstddef>
#include <string>

#include "ui/evaluation_state.h"
#include "ui/frame.h"

namespace octavo::ui {

class ExperimentView {
 public:
  // Inside a card, from the cursor. REQUIRES: `index` is one of the experiments
  void draw(const Frame& frame, const UiState& state, std::size_t index, float width);

 private:
  void draw_controls(const Frame& frame, const UiState& state, std::size_t index, float width);
  void draw_seed(const Frame& frame, const EvaluationState& evaluation);

  std::string seed_text_;
};

// "43 %, about 2 min left", "7 of 9 within 15 %"; empty: it has not run.
std::string progress_text(const ShownExperiment& experiment);
std::string outcome_text(const ShownExperiment& experiment);

}  // namespace octavo::ui
