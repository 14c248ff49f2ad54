#include "ui/widgets/sparkline.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace octavo::ui {

void draw_sparkline(const Frame& frame, ImDrawList* list, ImVec2 low, ImVec2 high,
                    std::span<const Sample> samples, double end_s, double span_s, double least_range,
                    ImU32 colour) {
  if (samples.empty()) return;
  double bottom = samples.front().value, top = bottom;
  for (const Sample& sample : samples) {
    bottom = std::min(bottom, sample.value);
    top = std::max(top, sample.value);
  }
  const double missing = std::max(0.0, least_range - (top - bottom));
  bottom -= missing * 0.5;
  top += missing * 0.5;
  const auto x_of = [&](double time_s) {
    const double fraction = std::clamp((time_s - (end_s - span_s)) / span_s, 0.0, 1.0);
    return low.x + (high.x - low.x) * static_cast<float>(fraction);
  };
  const auto y_of = [&](double value) {
    return high.y - (high.y - low.y) * static_cast<float>((value - bottom) / (top - bottom));
  };
  std::vector<ImVec2> points;
  for (const Sample& sample : samples) {
    const ImVec2 point{x_of(sample.time_s), y_of(sample.value)};
    // One point a pixel column is as much as can be seen.
    if (!points.empty() && point.x - points.back().x < 1.0f) {
      points.back().y = point.y;
    } else {
      if (!points.empty()) points.push_back({point.x, points.back().y});  // the level before holds until here
      points.push_back(point);
    }
  }
  points.push_back({high.x, points.back().y});
  list->AddPolyline(points.data(), static_cast<int>(points.size()), colour, frame.px(1.8f));
}

}  // namespace octavo::ui
