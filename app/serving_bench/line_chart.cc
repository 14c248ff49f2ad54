#include "app/serving_bench/line_chart.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <string_view>

#include "engine/base/text.h"

namespace octavo::app {
namespace {

constexpr double kWidth = 520, kHeight = 400;  // of one chart
constexpr double kLeft = 70, kRight = 20, kTop = 40, kBottom = 56, kLegendLine = 18;
constexpr int kMarksAlong = 6;
constexpr std::array<const char*, 7> kColours = {"#0072B2", "#D55E00", "#009E73", "#CC79A7",
                                                 "#E69F00", "#56B4E9", "#000000"};

std::string number_text(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.6g", value);
  return text;
}

std::string place_text(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2f", value);
  return text;
}

std::string xml_text(std::string_view text) {
  std::string safe;
  for (const char c : sanitise_utf8(text)) {
    switch (c) {
      case '&': safe += "&amp;"; break;
      case '<': safe += "&lt;"; break;
      case '>': safe += "&gt;"; break;
      case '"': safe += "&quot;"; break;
      default: safe += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
    }
  }
  return safe;
}

bool is_shown(const ChartPoint& point) { return std::isfinite(point.x) && std::isfinite(point.y); }

std::string text_at(double x, double y, std::string_view anchor, std::string_view text,
                    std::string_view more = {}) {
  return "<text x=\"" + place_text(x) + "\" y=\"" + place_text(y) + "\" text-anchor=\"" +
         std::string(anchor) + "\"" + std::string(more) + ">" + xml_text(text) + "</text>\n";
}

std::string line_between(double x1, double y1, double x2, double y2, std::string_view colour) {
  return "<line x1=\"" + place_text(x1) + "\" y1=\"" + place_text(y1) + "\" x2=\"" + place_text(x2) +
         "\" y2=\"" + place_text(y2) + "\" stroke=\"" + std::string(colour) + "\"/>\n";
}

// Another form for each line.
std::string mark_at(std::size_t line, double x, double y, const char* colour) {
  const std::string fill = std::string("\" fill=\"") + colour + "\"/>\n";
  const auto corner = [&](double dx, double dy) {
    return place_text(x + dx) + "," + place_text(y + dy) + " ";
  };
  switch (line % 4) {
    case 0: return "<circle cx=\"" + place_text(x) + "\" cy=\"" + place_text(y) + "\" r=\"3.5" + fill;
    case 1:
      return "<rect x=\"" + place_text(x - 3.2) + "\" y=\"" + place_text(y - 3.2) +
             "\" width=\"6.4\" height=\"6.4" + fill;
    case 2: return "<polygon points=\"" + corner(0, -4.5) + corner(4.2, 3.2) + corner(-4.2, 3.2) + fill;
    default:
      return "<polygon points=\"" + corner(0, -4.8) + corner(4.8, 0) + corner(0, 4.8) + corner(-4.8, 0) +
             fill;
  }
}

class ChartDrawing {
 public:
  ChartDrawing(const LineChart& chart, double left, std::size_t index)
      : chart_(chart), left_(left + kLeft), clip_("plot" + std::to_string(index)) {
    double most_x = 0.0, most_y = 0.0;
    for (const ChartLine& line : chart.lines) {
      for (const ChartPoint& point : line.points) {
        if (!is_shown(point)) continue;
        most_x = std::max(most_x, point.x);
        most_y = std::max(most_y, point.y);
      }
    }
    x_marks_ = axis_marks(most_x, kMarksAlong);
    y_marks_ = axis_marks(chart.most_y.value_or(most_y), kMarksAlong);
  }

  std::string draw() const {
    std::string svg = frame();
    svg += "<g clip-path=\"url(#" + clip_ + ")\">\n";
    for (std::size_t i = 0; i < chart_.lines.size(); ++i) svg += curve(i);
    svg += "</g>\n";
    for (std::size_t i = 0; i < chart_.lines.size(); ++i) svg += legend(i);
    return svg;
  }

 private:
  static constexpr double kPlotWidth = kWidth - kLeft - kRight, kPlotHeight = kHeight - kTop - kBottom;

  double x_of(double value) const { return left_ + value / x_marks_.back() * kPlotWidth; }
  double y_of(double value) const { return kTop + kPlotHeight * (1.0 - value / y_marks_.back()); }

  std::string frame() const {
    std::string svg = "<clipPath id=\"" + clip_ + "\"><rect x=\"" + place_text(left_) + "\" y=\"" +
                      place_text(kTop) + "\" width=\"" + place_text(kPlotWidth) + "\" height=\"" +
                      place_text(kPlotHeight) + "\"/></clipPath>\n";
    const double bottom = kTop + kPlotHeight, middle = left_ + kPlotWidth / 2;
    svg += text_at(middle, kTop - 16, "middle", chart_.title, " font-weight=\"bold\"");
    for (const double mark : x_marks_) {
      svg += line_between(x_of(mark), kTop, x_of(mark), bottom, "#e4e4e4");
      svg += text_at(x_of(mark), bottom + 18, "middle", number_text(mark));
    }
    for (const double mark : y_marks_) {
      svg += line_between(left_, y_of(mark), left_ + kPlotWidth, y_of(mark), "#e4e4e4");
      svg += text_at(left_ - 8, y_of(mark) + 4, "end", number_text(mark));
    }
    svg += line_between(left_, bottom, left_ + kPlotWidth, bottom, "#444444");
    svg += line_between(left_, kTop, left_, bottom, "#444444");
    svg += text_at(middle, bottom + 40, "middle", chart_.x_label);
    const double label_x = left_ - 54, label_y = kTop + kPlotHeight / 2;
    svg += text_at(label_x, label_y, "middle", chart_.y_label,
                   " transform=\"rotate(-90 " + place_text(label_x) + " " + place_text(label_y) + ")\"");
    return svg;
  }

  std::string curve(std::size_t index) const {
    const char* const colour = kColours[index % kColours.size()];
    std::string points, marks;
    for (const ChartPoint& point : chart_.lines[index].points) {
      if (!is_shown(point)) continue;
      points += place_text(x_of(point.x)) + "," + place_text(y_of(point.y)) + " ";
      if (chart_.lines[index].has_marks) marks += mark_at(index, x_of(point.x), y_of(point.y), colour);
    }
    if (!chart_.lines[index].has_line) return marks;
    return "<polyline points=\"" + points + "\" fill=\"none\" stroke=\"" + colour +
           "\" stroke-width=\"2\"/>\n" + marks;
  }

  std::string legend(std::size_t index) const {
    const double y = kTop + 14 + kLegendLine * static_cast<double>(index);
    const char* const colour = kColours[index % kColours.size()];
    const std::string line =
        chart_.lines[index].has_line ? line_between(left_ + 10, y, left_ + 34, y, colour) : "";
    return line + mark_at(index, left_ + 22, y, colour) +
           text_at(left_ + 42, y + 4, "start", chart_.lines[index].name);
  }

  const LineChart& chart_;
  const double left_;
  const std::string clip_;
  std::vector<double> x_marks_, y_marks_;
};

}  // namespace

std::vector<double> axis_marks(double most, int most_marks) {
  if (!std::isfinite(most) || most <= 0.0) return {0.0, 1.0};
  double step = std::pow(10.0, std::floor(std::log10(most / most_marks)));
  for (const double factor : {1.0, 2.0, 5.0, 10.0}) {
    if (most / (step * factor) > most_marks * (1.0 + 1e-9)) continue;
    step *= factor;
    break;
  }
  const int num_steps = std::max(1, static_cast<int>(std::ceil(most / step * (1.0 - 1e-9))));
  std::vector<double> marks;
  for (int i = 0; i <= num_steps; ++i) marks.push_back(step * i);
  return marks;
}

std::string svg_of(const std::vector<LineChart>& charts) {
  const double width = kWidth * static_cast<double>(charts.size());
  std::string svg = "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" + place_text(width) +
                    "\" height=\"" + place_text(kHeight) +
                    "\" font-family=\"Inter, Helvetica, Arial, sans-serif\" font-size=\"12\" "
                    "fill=\"#222222\">\n<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n";
  for (std::size_t i = 0; i < charts.size(); ++i)
    svg += ChartDrawing(charts[i], kWidth * static_cast<double>(i), i).draw();
  return svg + "</svg>\n";
}

}  // namespace octavo::app
