// What the plots of the window have in common beyond ImPlot: its colours from the theme, and marks that tell
// curves apart without their colours, the same in a plot and in its legend.
#pragma once

#include <imgui.h>

#include <cstddef>

#include "ui/frame.h"

namespace octavo::ui {

// Around BeginPlot and EndPlot.
void push_plot_style(const Frame& frame);
void pop_plot_style();

// A filled form of its own for each of six curves, then from the start again.
void draw_curve_mark(ImDrawList* list, std::size_t curve, ImVec2 centre, float radius, ImU32 colour);
// For points that were published elsewhere: a cross, which no curve has.
void draw_cited_mark(ImDrawList* list, ImVec2 centre, float radius, ImU32 colour, float thickness);

}  // namespace octavo::ui
