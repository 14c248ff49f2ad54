// A line chart as SVG: what a benchmark draws where there is no window. The colours are Okabe and Ito's,
// which colour-blind people tell apart, and each line has marks of its own, for paper without colours.
//
// Pure; any thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace octavo::app {

struct ChartPoint {
  double x = 0.0, y = 0.0;
};
struct ChartLine {
  std::string name;
  std::vector<ChartPoint> points = {};  // in the order of the line; what is not finite is left out
  bool has_marks = true;
  bool has_line = true;  // false: marks alone, as of single measurements
};
struct LineChart {
  std::string title, x_label, y_label;
  std::vector<ChartLine> lines = {};
  std::optional<double> most_y = {};  // above, lines leave the picture; none: all of them is shown
};

// Charts beside each other in one picture; both axes begin at 0. Labels may be any text.
std::string svg_of(const std::vector<LineChart>& charts);

// Where an axis from 0 to at least `most` has its marks: 1, 2 or 5 times a power of ten apart, at most
// `most_marks` + 1 of them. REQUIRES: most_marks > 0
std::vector<double> axis_marks(double most, int most_marks);

}  // namespace octavo::app
