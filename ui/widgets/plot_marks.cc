#include "ui/widgets/plot_marks.h"

#include <implot.h>

namespace octavo::ui {

void push_plot_style(const Frame& frame) {
  const ImU32 clear = IM_COL32_BLACK_TRANS;
  for (const ImPlotCol colour :
       {ImPlotCol_FrameBg, ImPlotCol_PlotBg, ImPlotCol_PlotBorder, ImPlotCol_AxisTick})
    ImPlot::PushStyleColor(colour, clear);
  ImPlot::PushStyleColor(ImPlotCol_AxisText, frame.theme.faint);
  ImPlot::PushStyleColor(ImPlotCol_AxisGrid, frame.theme.line);
  ImPlot::PushStyleColor(ImPlotCol_LegendBg, frame.theme.panel);
  ImPlot::PushStyleColor(ImPlotCol_LegendBorder, frame.theme.line);
  ImPlot::PushStyleColor(ImPlotCol_LegendText, frame.theme.muted);
  ImPlot::PushStyleVar(ImPlotStyleVar_PlotPadding, ImVec2(frame.px(4), frame.px(4)));
}

void pop_plot_style() {
  ImPlot::PopStyleVar();
  ImPlot::PopStyleColor(9);
}

void draw_curve_mark(ImDrawList* list, std::size_t curve, ImVec2 centre, float radius, ImU32 colour) {
  const auto corner = [&](float dx, float dy) {
    return ImVec2{centre.x + dx * radius, centre.y + dy * radius};
  };
  switch (curve % 6) {
    case 0: return list->AddCircleFilled(centre, radius, colour);
    case 1: return list->AddRectFilled(corner(-0.9f, -0.9f), corner(0.9f, 0.9f), colour);
    case 2:
      return list->AddTriangleFilled(corner(0, -1.2f), corner(1.15f, 0.9f), corner(-1.15f, 0.9f), colour);
    case 3:
      return list->AddQuadFilled(corner(0, -1.3f), corner(1.3f, 0), corner(0, 1.3f), corner(-1.3f, 0),
                                 colour);
    case 4:
      return list->AddTriangleFilled(corner(0, 1.2f), corner(-1.15f, -0.9f), corner(1.15f, -0.9f), colour);
    default:
      return list->AddTriangleFilled(corner(1.2f, 0), corner(-0.9f, 1.15f), corner(-0.9f, -1.15f), colour);
  }
}

void draw_cited_mark(ImDrawList* list, ImVec2 centre, float radius, ImU32 colour, float thickness) {
  list->AddLine({centre.x - radius, centre.y - radius}, {centre.x + radius, centre.y + radius}, colour,
                thickness);
  list->AddLine({centre.x - radius, centre.y + radius}, {centre.x + radius, centre.y - radius}, colour,
                thickness);
}

}  // namespace octavo::ui
