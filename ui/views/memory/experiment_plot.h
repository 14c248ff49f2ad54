// One plot of an experiment: title, axes with their units, our curves, the paper's points in the colour of
// the curve before them, and a legend below it. Whoever draws several beside each other asks for their height
// first.
#pragma once

#include "ui/evaluation_state.h"
#include "ui/frame.h"

namespace octavo::ui {

float experiment_plot_height(const Frame& frame, const ShownPlot& plot, float width);

// At the cursor; `number` tells plots of one experiment apart.
void draw_experiment_plot(const Frame& frame, const ShownPlot& plot, int number, ImVec2 extent);

}  // namespace octavo::ui
