#include "ui/views/memory/experiment_plot.h"

#include <implot.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>

#include "engine/base/format.h"
#include "ui/widgets/plot_marks.h"
#include "ui/widgets/text.h"

namespace octavo::ui {
namespace {

constexpr float kTitle = 24, kAxisLabel = 20, kPlot = 228, kLegendRow = 20, kLegendTop = 6;
constexpr float kSample = 26, kSampleGap = 8, kEntryGap = 18;
constexpr float kMark = 3.6f, kCitedMark = 5, kNearby = 12;
constexpr float kTickRoom = 56;  // of the numbers at the left, at most
constexpr double kHeadroom = 1.06;
constexpr double kBarShare = 0.56;  // of the room that a name has

TextStyle quiet_text(const Frame& frame) {
  TextStyle style = tiny_text(frame);
  style.colour = frame.theme.muted;
  return style;
}

// Our curves have the theme's colours in turn; the paper's points that of the curve before them, and on bars
// that of text.
struct CurveLook {
  std::size_t place = 0;  // among ours
  ImU32 colour = 0;
};
CurveLook look_of(const Frame& frame, const ShownPlot& plot, std::size_t index) {
  const auto end = plot.curves.begin() + static_cast<std::ptrdiff_t>(index);
  const auto place = static_cast<std::size_t>(
      std::count_if(plot.curves.begin(), end, [](const ShownCurve& curve) { return !curve.is_papers; }));
  const auto colour = [&](std::size_t ours) { return frame.theme.owner(static_cast<std::uint32_t>(ours)); };
  if (!plot.curves[index].is_papers) return {place, colour(place)};
  return {place, plot.x_names.empty() && place > 0 ? colour(place - 1) : frame.theme.text};
}

// ---- the legend: as many entries in a row as it has room for

template <class Draw>
float lay_out_legend(const Frame& frame, const ShownPlot& plot, float width, const Draw& draw) {
  const TextStyle style = quiet_text(frame);
  float x = 0, y = frame.px(kLegendTop);
  for (std::size_t i = 0; i < plot.curves.size(); ++i) {
    const float sample = frame.px(kSample + kSampleGap);
    const float entry =
        std::min(width, sample + std::ceil(text_width(frame, style, plot.curves[i].name)) + 1);
    if (x > 0 && x + entry > width) {
      x = 0;
      y += frame.px(kLegendRow);
    }
    draw(i, ImVec2{x, y}, entry - sample);
    x += entry + frame.px(kEntryGap);
  }
  return plot.curves.empty() ? 0 : y + frame.px(kLegendRow);
}

void draw_sample(const Frame& frame, ImDrawList* list, const ShownPlot& plot, std::size_t index, ImVec2 at) {
  const CurveLook look = look_of(frame, plot, index);
  const ImVec2 centre{at.x + frame.px(kSample * 0.5f), at.y + frame.px(9)};
  if (plot.curves[index].is_papers)
    return draw_cited_mark(list, centre, frame.px(kCitedMark), look.colour, frame.px(2));
  if (!plot.x_names.empty())
    return list->AddRectFilled({at.x + frame.px(6), at.y + frame.px(3)},
                               {at.x + frame.px(kSample - 6), at.y + frame.px(15)}, look.colour, frame.px(2));
  list->AddLine({at.x, centre.y}, {at.x + frame.px(kSample), centre.y}, look.colour, frame.px(2));
  draw_curve_mark(list, look.place, centre, frame.px(kMark), look.colour);
}

// ---- the axes

struct Limits {
  double least_x = 0, most_x = 1, most_y = 1;
};

Limits limits_of(const ShownPlot& plot) {
  double most_x = 0, most_y = 0;
  for (const ShownCurve& curve : plot.curves) {
    for (const double x : curve.xs) most_x = std::max(most_x, x);
    for (const double y : curve.ys) most_y = std::max(most_y, y);
  }
  const auto count = static_cast<double>(plot.x_names.size());
  const double headroom = most_y > 0 ? most_y * kHeadroom : 1.0;
  if (count > 0) return {-0.5, count - 0.5, plot.most_y.value_or(headroom)};
  return {0, most_x > 0 ? most_x * kHeadroom : 1.0, plot.most_y.value_or(headroom)};
}

std::string value_text(double value) {
  return std::abs(value) < 10 ? fixed_text(value, 3) : short_number(value);
}

// ---- curves

struct Pointed {
  std::size_t curve = 0, point = 0;
  float distance = 0;  // pixels
};

class PlotDrawing {
 public:
  PlotDrawing(const Frame& frame, const ShownPlot& plot)
      : frame_(frame), plot_(plot), list_(ImPlot::GetPlotDrawList()) {}

  void draw() {
    ImPlot::PushPlotClipRect(frame_.px(kCitedMark + 1));
    for (std::size_t i = 0; i < plot_.curves.size(); ++i)
      if (!plot_.curves[i].is_papers) draw_ours(i);
    for (std::size_t i = 0; i < plot_.curves.size(); ++i)
      if (plot_.curves[i].is_papers) draw_papers(i);
    ImPlot::PopPlotClipRect();
    if (pointed_) tell();
  }

 private:
  ImVec2 place_of(const ShownCurve& curve, std::size_t point) const {
    return ImPlot::PlotToPixels(curve.xs[point], curve.ys[point]);
  }

  void draw_ours(std::size_t index) {
    const ShownCurve& curve = plot_.curves[index];
    const CurveLook look = look_of(frame_, plot_, index);
    if (!plot_.x_names.empty()) return draw_bars(index, look.colour);
    std::vector<ImVec2> places;
    for (std::size_t i = 0; i < curve.xs.size(); ++i) places.push_back(place_of(curve, i));
    list_->AddPolyline(places.data(), static_cast<int>(places.size()), look.colour, frame_.px(2));
    for (std::size_t i = 0; i < places.size(); ++i) {
      draw_curve_mark(list_, look.place, places[i], frame_.px(kMark), look.colour);
      point_at(index, i, places[i]);
    }
  }

  void draw_bars(std::size_t index, ImU32 colour) {
    const ShownCurve& curve = plot_.curves[index];
    for (std::size_t i = 0; i < curve.xs.size(); ++i) {
      const ImVec2 low = ImPlot::PlotToPixels(curve.xs[i] - kBarShare / 2, curve.ys[i]);
      const ImVec2 high = ImPlot::PlotToPixels(curve.xs[i] + kBarShare / 2, 0.0);
      list_->AddRectFilled(low, high, with_alpha(colour, 0.85f), frame_.px(2));
      if (ImGui::IsMouseHoveringRect(low, high)) pointed_ = Pointed{index, i, frame_.px(kNearby)};
    }
  }

  void draw_papers(std::size_t index) {
    const ShownCurve& curve = plot_.curves[index];
    for (std::size_t i = 0; i < curve.xs.size(); ++i) {
      const ImVec2 place = place_of(curve, i);
      // On a ground of its own, so that it is seen on a bar, too.
      draw_cited_mark(list_, place, frame_.px(kCitedMark), frame_.theme.panel, frame_.px(5));
      draw_cited_mark(list_, place, frame_.px(kCitedMark), look_of(frame_, plot_, index).colour,
                      frame_.px(2));
      point_at(index, i, place);
    }
  }

  void point_at(std::size_t curve, std::size_t point, ImVec2 place) {
    const ImVec2 mouse = ImGui::GetIO().MousePos;
    const float distance = std::hypot(mouse.x - place.x, mouse.y - place.y);
    if (distance < (pointed_ ? pointed_->distance : frame_.px(kNearby)))
      pointed_ = Pointed{curve, point, distance};
  }

  void tell() const {
    if (!ImGui::IsWindowHovered()) return;
    const ShownCurve& curve = plot_.curves[pointed_->curve];
    const double x = curve.xs[pointed_->point], y = curve.ys[pointed_->point];
    const auto name = static_cast<std::size_t>(std::max(0.0, x));
    const bool is_named = name < plot_.x_names.size();
    tooltip_now(frame_, curve.name + "\n" +
                            (is_named ? plot_.x_names[name] : plot_.x_label + ": " + value_text(x)) + "\n" +
                            plot_.y_label + ": " + value_text(y));
  }

  const Frame& frame_;
  const ShownPlot& plot_;
  ImDrawList* list_;
  std::optional<Pointed> pointed_;
};

// ---- names in place of numbers: below their bars, or by number where they would touch

bool names_fit(const Frame& frame, const ShownPlot& plot, float width) {
  const float room = (width - frame.px(kTickRoom)) / static_cast<float>(plot.x_names.size());
  return std::ranges::all_of(plot.x_names, [&](const std::string& name) {
    return text_width(frame, quiet_text(frame), name) + frame.px(4) < room;
  });
}

// The axis's label, and above it what stands below bars.
float below_axis_height(const Frame& frame, const ShownPlot& plot) {
  return frame.px(kAxisLabel) * (plot.x_names.empty() ? 1.0f : 2.0f);
}

float list_of_names_height(const Frame& frame, const ShownPlot& plot, float width) {
  if (names_fit(frame, plot, width)) return 0;
  return frame.px(kLegendRow) * static_cast<float>(plot.x_names.size());
}

void draw_below_bars(const Frame& frame, const ShownPlot& plot, ImVec2 low, float width, bool fit) {
  const TextStyle style = quiet_text(frame);
  const float room = width / static_cast<float>(plot.x_names.size());
  for (std::size_t i = 0; i < plot.x_names.size(); ++i) {
    const std::string text = fit ? plot.x_names[i] : std::to_string(i + 1);
    const float middle = low.x + room * (static_cast<float>(i) + 0.5f);
    draw_text(frame, ImGui::GetWindowDrawList(), {middle - text_width(frame, style, text) * 0.5f, low.y},
              style, text);
  }
}

void draw_list_of_names(const Frame& frame, const ShownPlot& plot, ImVec2 at, float width) {
  const TextStyle style = quiet_text(frame);
  ImDrawList* const list = ImGui::GetWindowDrawList();
  const float text = frame.px(kSample + kSampleGap);
  for (std::size_t i = 0; i < plot.x_names.size(); ++i) {
    const std::string number = std::to_string(i + 1);
    const float middle = at.x + frame.px(kSample * 0.5f);
    draw_text(frame, list, {middle - text_width(frame, style, number) * 0.5f, at.y}, style, number);
    draw_text(frame, list, {at.x + text, at.y}, style, plot.x_names[i], width - text);
    at.y += frame.px(kLegendRow);
  }
}

}  // namespace

float experiment_plot_height(const Frame& frame, const ShownPlot& plot, float width) {
  return frame.px(kTitle + kAxisLabel + kPlot) + below_axis_height(frame, plot) +
         lay_out_legend(frame, plot, width, [](std::size_t, ImVec2, float) {}) +
         list_of_names_height(frame, plot, width);
}

void draw_experiment_plot(const Frame& frame, const ShownPlot& plot, int number, ImVec2 extent) {
  const ImVec2 at = ImGui::GetCursorScreenPos();
  ImDrawList* const list = ImGui::GetWindowDrawList();
  TextStyle title = small_text(frame);
  title.face = FontFace::kSemiBold;
  title.colour = frame.theme.text;
  const TextStyle label = quiet_text(frame);
  draw_text(frame, list, at, title, plot.title, extent.x);
  draw_text(frame, list, {at.x, at.y + frame.px(kTitle)}, label, plot.y_label, extent.x);

  const float top = at.y + frame.px(kTitle + kAxisLabel), bottom = top + frame.px(kPlot);
  const bool has_names = !plot.x_names.empty();
  const Face face = frame.face(FontFace::kRegular, size::kTiny);
  ImGui::PushFont(face.font, face.size);
  push_plot_style(frame);
  ImGui::SetCursorScreenPos({at.x, top});
  ImGui::PushID(number);
  constexpr ImPlotFlags kFlags = ImPlotFlags_CanvasOnly | ImPlotFlags_NoFrame | ImPlotFlags_NoInputs;
  float left = at.x, inner = extent.x;
  if (ImPlot::BeginPlot("##plot", {extent.x, frame.px(kPlot)}, kFlags)) {
    const ImPlotAxisFlags of_x = ImPlotAxisFlags_NoTickMarks |
                                 (has_names ? ImPlotAxisFlags_NoTickLabels | ImPlotAxisFlags_NoGridLines : 0);
    ImPlot::SetupAxis(ImAxis_X1, nullptr, of_x);
    ImPlot::SetupAxis(ImAxis_Y1, nullptr, ImPlotAxisFlags_NoTickMarks);
    const Limits limits = limits_of(plot);
    ImPlot::SetupAxesLimits(limits.least_x, limits.most_x, 0, limits.most_y, ImPlotCond_Always);
    ImPlot::SetupFinish();
    left = ImPlot::GetPlotPos().x;
    inner = ImPlot::GetPlotSize().x;
    const float foot = ImPlot::GetPlotPos().y + ImPlot::GetPlotSize().y;
    ImPlot::GetPlotDrawList()->AddLineH(left, left + inner, foot, frame.theme.faint);
    PlotDrawing(frame, plot).draw();
    ImPlot::EndPlot();
  }
  ImGui::PopID();
  pop_plot_style();
  ImGui::PopFont();

  if (has_names) draw_below_bars(frame, plot, {left, bottom}, inner, names_fit(frame, plot, extent.x));
  const float below_axis = bottom + below_axis_height(frame, plot);
  const float text = std::min(text_width(frame, label, plot.x_label), inner);
  draw_text(frame, list, {left + inner - text, below_axis - frame.px(kAxisLabel)}, label, plot.x_label,
            inner + 1);
  const ImVec2 legend{at.x, below_axis};
  const float below = lay_out_legend(frame, plot, extent.x, [&](std::size_t i, ImVec2 place, float room) {
    draw_sample(frame, list, plot, i, {legend.x + place.x, legend.y + place.y});
    draw_text(frame, list, {legend.x + place.x + frame.px(kSample + kSampleGap), legend.y + place.y}, label,
              plot.curves[i].name, room);
  });
  if (!names_fit(frame, plot, extent.x))
    draw_list_of_names(frame, plot, {legend.x, legend.y + below}, extent.x);
  ImGui::SetCursorScreenPos(at);
  ImGui::PushID(number);
  ImGui::InvisibleButton("experiment_plot", extent, ImGuiButtonFlags_EnableNav);  // keys scroll to it
  ImGui::PopID();
}

}  // namespace octavo::ui
