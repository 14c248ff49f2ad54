// Scores of beams against steps: the sum of log-probabilities of each running beam, or of each answer.
#pragma once

#include "ui/compare_state.h"
#include "ui/frame.h"

namespace octavo::ui {

void draw_score_curves(const Frame& frame, const BeamTree& tree, ImVec2 extent);

}  // namespace octavo::ui
