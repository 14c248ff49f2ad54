// A small curve of how a figure went lately.
#pragma once

#include <imgui.h>

#include <span>

#include "ui/frame.h"

namespace octavo::ui {

struct Sample {
  double time_s = 0;
  double value = 0;
};

// Draws [end_s - span_s, end_s] inside the rectangle. Levels hold from one sample to the next. The range of
// the values is that of the samples, but no less than `least_range`.
void draw_sparkline(const Frame& frame, ImDrawList* list, ImVec2 low, ImVec2 high,
                    std::span<const Sample> samples, double end_s, double span_s, double least_range,
                    ImU32 colour);

}  // namespace octavo::ui
