#include "ui/views/compare/score_curves_view.h"

#include <implot.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include "ui/compare_state.h"
#include "ui/views/compare/beam_tree_layout.h"
#include "ui/widgets/plot_marks.h"

namespace octavo::ui {
namespace {

struct Curve {
  std::vector<double> steps, scores;
};

Curve curve_of(const BeamTree& tree, std::int32_t leaf) {
  Curve curve;
  for (const std::int32_t node : beam_path(tree, leaf)) {
    const BeamTreeNode& shown = tree.nodes[static_cast<std::size_t>(node)];
    curve.steps.push_back(shown.step + 1);
    curve.scores.push_back(shown.cumulative_logprob);
  }
  return curve;
}

int score_label(double value, char* text, int size, void*) {
  return std::snprintf(text, static_cast<std::size_t>(size), "%s%g", value < 0 ? "−" : "", std::abs(value));
}

}  // namespace

void draw_score_curves(const Frame& frame, const BeamTree& tree, ImVec2 extent) {
  const std::vector<std::int32_t>& leaves = tree.final.empty() ? tree.live : tree.final;
  std::vector<Curve> curves;
  double lowest = -1;
  for (const std::int32_t leaf : leaves) {
    curves.push_back(curve_of(tree, leaf));
    for (const double score : curves.back().scores) lowest = std::min(lowest, score);
  }
  const Face face = frame.face(FontFace::kRegular, 11);
  ImGui::PushFont(face.font, face.size);
  push_plot_style(frame);
  constexpr ImPlotFlags kFlags = ImPlotFlags_NoTitle | ImPlotFlags_NoMenus | ImPlotFlags_NoBoxSelect |
                                 ImPlotFlags_NoFrame | ImPlotFlags_NoMouseText;
  if (ImPlot::BeginPlot("score_curves", extent, kFlags)) {
    ImPlot::SetupAxis(ImAxis_X1, nullptr, ImPlotAxisFlags_NoGridLines | ImPlotAxisFlags_NoTickMarks);
    ImPlot::SetupAxis(ImAxis_Y1, nullptr, ImPlotAxisFlags_NoTickMarks);
    ImPlot::SetupAxisFormat(ImAxis_X1, "step %g");
    ImPlot::SetupAxisFormat(ImAxis_Y1, score_label);
    // Room for the right half of the last step's name.
    const double steps = std::max(2, tree.num_steps);
    const double end = steps * (1 + static_cast<double>(frame.px(30) / std::max(extent.x, frame.px(200))));
    ImPlot::SetupAxesLimits(0, end, lowest * 1.05, 0, ImPlotCond_Always);
    ImPlot::SetupLegend(ImPlotLocation_SouthWest);
    ImPlot::SetupFinish();
    for (std::size_t i = 0; i < curves.size(); ++i) {
      ImPlotSpec spec;
      spec.LineColor = ImGui::ColorConvertU32ToFloat4(frame.theme.owner(static_cast<std::uint32_t>(i)));
      spec.LineWeight = frame.px(2);
      const std::string name = "Beam " + std::to_string(i + 1);
      ImPlot::PlotLine(name.c_str(), curves[i].steps.data(), curves[i].scores.data(),
                       static_cast<int>(curves[i].steps.size()), spec);
    }
    ImPlot::EndPlot();
  }
  pop_plot_style();
  ImGui::PopFont();
}

}  // namespace octavo::ui
