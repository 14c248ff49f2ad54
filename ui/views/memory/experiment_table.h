// The figures of an experiment, ours beside the paper's, with a verdict in a word and a colour. Each row
// takes the keyboard, so that a long table is read without the mouse.
#pragma once

#include "ui/evaluation_state.h"
#include "ui/frame.h"

namespace octavo::ui {

// At the cursor, which moves below it.
void draw_experiment_table(const Frame& frame, const ExperimentFindings& findings, float width);

}  // namespace octavo::ui
