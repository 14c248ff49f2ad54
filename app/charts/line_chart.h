// A line chart as a file: what measurements draw where there is no window. One description of a chart and one
// layout, on the canvas of the file's kind (canvas.h). The colours are Okabe and Ito's, which colour-blind
// people tell apart, and each line has marks of its own, for paper without colours.
//
// Pure; any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/result.h"

namespace octavo::app {

struct ChartPoint {
  double x = 0.0, y = 0.0;
};
struct ChartLine {
  std::string name;
  std::vector<ChartPoint> points = {};  // in the order of the line; what is not finite is left out
  bool has_marks = true;
  bool has_line = true;  // false: marks alone, in the colour of the line before them
};
struct LineChart {
  std::string title, x_label, y_label;
  std::vector<ChartLine> lines = {};
  std::optional<double> most_y = {};  // above, lines leave the picture; none: all of them is shown
  // Of x = 0, 1, …, where x is no number: lines become bars. Names without room stand in the legend, by
  // number. Empty: x is a number.
  std::vector<std::string> x_names = {};
  std::string source = {};  // a small line below: where this was published or measured
};

enum class PictureFormat { kSvg, kPng };
// By the end of the name: PNG for ".png", in any case of letters, else SVG.
PictureFormat picture_format_of(std::string_view file_name);

// The bytes of one picture with up to three charts beside each other, and the others below. Both axes begin
// at 0. Labels may be any text. Only a PNG can fail, for want of memory.
Result<std::string> picture_of(const std::vector<LineChart>& charts, PictureFormat format);

// Where an axis from 0 to at least `most` has its marks: 1, 2 or 5 times a power of ten apart, at most
// `most_marks` + 1 of them. REQUIRES: most_marks > 0
std::vector<double> axis_marks(double most, int most_marks);

}  // namespace octavo::app
