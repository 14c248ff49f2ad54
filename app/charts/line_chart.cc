#include "app/charts/line_chart.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <memory>
#include <string_view>

#include "app/charts/canvas.h"
#include "engine/base/ascii.h"
#include "engine/base/text.h"

namespace octavo::app {
namespace {

constexpr double kWidth = 520, kHeight = 420;  // of one chart, without its legend
constexpr double kLeft = 70, kRight = 20, kTop = 40, kBottom = 76, kLegendLine = 18, kSourceLine = 13;
constexpr double kTitleSize = 13, kTextSize = 12, kSourceSize = 10;
constexpr std::size_t kMostSource = 90;      // characters of the smallest text in a line
constexpr std::size_t kLongestSource = 300;  // in bytes
constexpr std::size_t kMostBeside = 3;
constexpr int kMarksAlong = 6;
constexpr CanvasColour kPaper = 0xffffff, kText = 0x222222, kQuiet = 0x666666, kAxis = 0x444444,
                       kGrid = 0xe4e4e4;
constexpr std::array<CanvasColour, 7> kColours = {0x0072b2, 0xd55e00, 0x009e73, 0xcc79a7,
                                                  0xe69f00, 0x56b4e9, 0x000000};

std::string number_text(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.6g", value);
  return text;
}

// As many lines as it needs, broken at spaces.
std::vector<std::string> source_lines(std::string_view source) {
  const std::string text = escape_for_message(source, kLongestSource);
  std::vector<std::string> lines;
  for (std::size_t begin = 0; begin < text.size();) {
    std::size_t end = text.size();
    if (end - begin > kMostSource) {
      const std::size_t space = text.rfind(' ', begin + kMostSource);
      end = space == std::string::npos || space <= begin ? begin + kMostSource : space;
    }
    lines.push_back(text.substr(begin, end - begin));
    begin = text.find_first_not_of(' ', end);
    if (begin == std::string::npos) break;
  }
  return lines;
}

// Whether all names stand below their bars without touching, by the width of a usual letter.
bool names_fit(const LineChart& chart) {
  constexpr double kLetter = 6.6;
  const double room = (kWidth - kLeft - kRight) / static_cast<double>(chart.x_names.size());
  return std::ranges::all_of(chart.x_names, [room](const std::string& name) {
    return kLetter * static_cast<double>(escape_for_message(name, kLongestSource).size()) < room;
  });
}

// Names that do not fit are numbers below the bars, and explained in the legend.
std::size_t num_legend_names(const LineChart& chart) { return names_fit(chart) ? 0 : chart.x_names.size(); }

bool is_shown(const ChartPoint& point) { return std::isfinite(point.x) && std::isfinite(point.y); }

void draw_segment(Canvas& canvas, CanvasPoint from, CanvasPoint to, CanvasColour colour) {
  canvas.draw_line(std::array{from, to}, 1.0, colour);
}

// Another form for each line.
void draw_mark(Canvas& canvas, std::size_t line, CanvasPoint at, CanvasColour colour) {
  const auto corner = [&](double dx, double dy) { return CanvasPoint{at.x + dx, at.y + dy}; };
  switch (line % 4) {
    case 0: return canvas.fill_circle(at, 3.5, colour);
    case 1: return canvas.fill_box({at.x - 3.2, at.y - 3.2, 6.4, 6.4}, colour);
    case 2:
      return canvas.fill_polygon(std::array{corner(0, -4.5), corner(4.2, 3.2), corner(-4.2, 3.2)}, colour);
    default:
      return canvas.fill_polygon(std::array{corner(0, -4.8), corner(4.8, 0), corner(0, 4.8), corner(-4.8, 0)},
                                 colour);
  }
}

class ChartDrawing {
 public:
  ChartDrawing(const LineChart& chart, CanvasPoint corner, std::size_t num_legend_lines, Canvas& canvas)
      : chart_(chart),
        left_(corner.x + kLeft),
        top_(corner.y + kTop),
        num_legend_lines_(num_legend_lines),
        canvas_(canvas) {
    double most_x = 0.0, most_y = 0.0;
    for (const ChartLine& line : chart.lines) {
      for (const ChartPoint& point : line.points) {
        if (!is_shown(point)) continue;
        most_x = std::max(most_x, point.x);
        most_y = std::max(most_y, point.y);
      }
    }
    if (chart.x_names.empty()) {
      x_marks_ = axis_marks(most_x, kMarksAlong);
      most_x_ = x_marks_.back();
    } else {
      least_x_ = -0.5;
      most_x_ = static_cast<double>(chart.x_names.size()) - 0.5;
    }
    y_marks_ = axis_marks(chart.most_y.value_or(most_y), kMarksAlong);
  }

  void draw() const {
    draw_frame();
    canvas_.begin_clip({left_, top_, kPlotWidth, kPlotHeight});
    for (std::size_t i = 0; i < chart_.lines.size(); ++i) draw_curve(i);
    canvas_.end_clip();
    for (std::size_t i = 0; i < chart_.lines.size(); ++i) draw_marks(i);
    for (std::size_t i = 0; i < chart_.lines.size(); ++i) draw_legend(i);
    if (!chart_.x_names.empty()) draw_names();
  }

 private:
  static constexpr double kPlotWidth = kWidth - kLeft - kRight, kPlotHeight = kHeight - kTop - kBottom;

  // What belongs to a line has its colour, unless both stand on the same bars.
  CanvasColour colour_of(std::size_t index) const {
    const auto end = chart_.lines.begin() + static_cast<std::ptrdiff_t>(index);
    const auto place = static_cast<std::size_t>(
        std::count_if(chart_.lines.begin(), end, [](const ChartLine& line) { return line.has_line; }));
    const bool is_of_line = !chart_.lines[index].has_line && chart_.x_names.empty() && place > 0;
    return kColours[(is_of_line ? place - 1 : place) % kColours.size()];
  }
  // Below the plot, where it covers no curve.
  static constexpr double kLegendTop = 62;
  double legend_y(std::size_t line) const {
    return top_ + kPlotHeight + kLegendTop + kLegendLine * static_cast<double>(line);
  }
  double x_of(double value) const { return left_ + (value - least_x_) / (most_x_ - least_x_) * kPlotWidth; }
  double y_of(double value) const { return top_ + kPlotHeight * (1.0 - value / y_marks_.back()); }

  void draw_frame() const {
    const double bottom = top_ + kPlotHeight, right = left_ + kPlotWidth, middle = left_ + kPlotWidth / 2;
    canvas_.draw_text({middle, top_ - 16}, chart_.title,
                      {.anchor = TextAnchor::kMiddle, .size = kTitleSize, .is_bold = true, .colour = kText});
    for (const double mark : x_marks_) {
      draw_segment(canvas_, {x_of(mark), top_}, {x_of(mark), bottom}, kGrid);
      canvas_.draw_text({x_of(mark), bottom + 18}, number_text(mark),
                        {.anchor = TextAnchor::kMiddle, .size = kTextSize, .colour = kText});
    }
    for (const double mark : y_marks_) {
      draw_segment(canvas_, {left_, y_of(mark)}, {right, y_of(mark)}, kGrid);
      canvas_.draw_text({left_ - 8, y_of(mark) + 4}, number_text(mark),
                        {.anchor = TextAnchor::kEnd, .size = kTextSize, .colour = kText});
    }
    draw_segment(canvas_, {left_, bottom}, {right, bottom}, kAxis);
    draw_segment(canvas_, {left_, top_}, {left_, bottom}, kAxis);
    canvas_.draw_text({middle, bottom + 40}, chart_.x_label,
                      {.anchor = TextAnchor::kMiddle, .size = kTextSize, .colour = kText});
    canvas_.draw_text(
        {left_ - 54, top_ + kPlotHeight / 2}, chart_.y_label,
        {.anchor = TextAnchor::kMiddle, .size = kTextSize, .is_upright = true, .colour = kText});
    double source_y = legend_y(num_legend_lines_) + 4;
    for (const std::string& line : source_lines(chart_.source)) {
      canvas_.draw_text({right, source_y}, line,
                        {.anchor = TextAnchor::kEnd, .size = kSourceSize, .colour = kQuiet});
      source_y += kSourceLine;
    }
  }

  std::vector<CanvasPoint> places_of(const ChartLine& line) const {
    std::vector<CanvasPoint> places;
    for (const ChartPoint& point : line.points) {
      if (is_shown(point)) places.push_back({x_of(point.x), y_of(point.y)});
    }
    return places;
  }

  bool are_bars(const ChartLine& line) const { return line.has_line && !chart_.x_names.empty(); }

  void draw_curve(std::size_t index) const {
    const ChartLine& line = chart_.lines[index];
    if (!line.has_line) return;
    const std::vector<CanvasPoint> places = places_of(line);
    if (are_bars(line)) return draw_bars(places, colour_of(index));
    if (places.size() > 1) canvas_.draw_line(places, 2.0, colour_of(index));
  }

  // Whole, also on the border.
  void draw_marks(std::size_t index) const {
    const ChartLine& line = chart_.lines[index];
    if (!line.has_marks || are_bars(line)) return;
    for (const CanvasPoint& place : places_of(line)) {
      if (place.y >= top_) draw_mark(canvas_, index, place, colour_of(index));
    }
  }

  void draw_bars(const std::vector<CanvasPoint>& tops, CanvasColour colour) const {
    constexpr double kBarShare = 0.56;  // of the room that a name has
    const double width = kBarShare * kPlotWidth / static_cast<double>(chart_.x_names.size());
    for (const CanvasPoint& top : tops)
      canvas_.fill_box({top.x - width / 2, top.y, width, std::max(0.0, y_of(0.0) - top.y)}, colour);
  }

  void draw_names() const {
    const double y = top_ + kPlotHeight + 18;
    const bool fit = names_fit(chart_);
    for (std::size_t i = 0; i < chart_.x_names.size(); ++i) {
      const std::string number = std::to_string(i + 1);
      canvas_.draw_text({x_of(static_cast<double>(i)), y}, fit ? chart_.x_names[i] : number,
                        {.anchor = TextAnchor::kMiddle, .size = kTextSize, .colour = kText});
      if (fit) continue;
      const double below = legend_y(chart_.lines.size() + i) + 4;
      canvas_.draw_text({left_ + 12, below}, number,
                        {.anchor = TextAnchor::kMiddle, .size = kTextSize, .colour = kQuiet});
      canvas_.draw_text({left_ + 32, below}, chart_.x_names[i], {.size = kTextSize, .colour = kText});
    }
  }

  void draw_legend(std::size_t index) const {
    const double y = legend_y(index);
    if (are_bars(chart_.lines[index])) {
      canvas_.fill_box({left_ + 5, y - 6, 14, 12}, colour_of(index));
      return canvas_.draw_text({left_ + 32, y + 4}, chart_.lines[index].name,
                               {.size = kTextSize, .colour = kText});
    }
    if (chart_.lines[index].has_line) draw_segment(canvas_, {left_, y}, {left_ + 24, y}, colour_of(index));
    draw_mark(canvas_, index, {left_ + 12, y}, colour_of(index));
    canvas_.draw_text({left_ + 32, y + 4}, chart_.lines[index].name, {.size = kTextSize, .colour = kText});
  }

  const LineChart& chart_;
  const double left_, top_;             // of the plot
  const std::size_t num_legend_lines_;  // of the longest legend in the picture
  Canvas& canvas_;
  std::vector<double> x_marks_, y_marks_;  // no x_marks_ where x has names
  double least_x_ = 0.0, most_x_ = 1.0;
};

}  // namespace

PictureFormat picture_format_of(std::string_view file_name) {
  return ascii_lower_case(file_name).ends_with(".png") ? PictureFormat::kPng : PictureFormat::kSvg;
}

Result<std::string> picture_of(const std::vector<LineChart>& charts, PictureFormat format) {
  std::size_t num_legend_lines = 0, num_source_lines = 1;
  for (const LineChart& chart : charts) {
    num_legend_lines = std::max(num_legend_lines, chart.lines.size() + num_legend_names(chart));
    num_source_lines = std::max(num_source_lines, source_lines(chart.source).size());
  }
  const double cell_height = kHeight + kLegendLine * static_cast<double>(num_legend_lines) +
                             kSourceLine * static_cast<double>(num_source_lines - 1);
  const std::size_t num_beside = std::clamp<std::size_t>(charts.size(), 1, kMostBeside);
  const std::size_t num_rows = std::max<std::size_t>(1, (charts.size() + num_beside - 1) / num_beside);
  const double width = kWidth * static_cast<double>(num_beside),
               height = cell_height * static_cast<double>(num_rows);
  const std::unique_ptr<Canvas> canvas =
      format == PictureFormat::kPng ? make_png_canvas(width, height) : make_svg_canvas(width, height);
  canvas->fill_box({0, 0, width, height}, kPaper);
  for (std::size_t i = 0; i < charts.size(); ++i) {
    const CanvasPoint corner{kWidth * static_cast<double>(i % num_beside),
                             cell_height * static_cast<double>(i / num_beside)};
    ChartDrawing(charts[i], corner, num_legend_lines, *canvas).draw();
  }
  return canvas->finish();
}

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

}  // namespace octavo::app
