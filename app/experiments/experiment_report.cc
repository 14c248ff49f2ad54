#include "app/experiments/experiment_report.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

#include "engine/base/columns.h"
#include "engine/base/format.h"

namespace octavo::app {
namespace {

using paper::ComparedFigure;
using paper::ExperimentInfo;
using paper::ExperimentReport;
using paper::Verdict;

struct Row {
  std::string name, unit, ours, papers, verdict, source;
};

std::vector<Row> rows_of(const ExperimentReport& report) {
  std::vector<Row> rows;
  for (const ComparedFigure& figure : report.figures) {
    const bool is_compared = figure.verdict() != Verdict::kUncompared;
    rows.push_back({figure.name, figure.unit, figure_text(figure.ours), paper_text(figure),
                    is_compared ? std::string(paper::verdict_text(figure.verdict())) : "",
                    figure.paper_source});
  }
  return rows;
}

std::vector<std::pair<const char*, const std::string*>> facts_of(const ExperimentInfo& info) {
  return {{"source", &info.source},
          {"hardware", &info.hardware},
          {"workload", &info.workload},
          {"systems", &info.systems},
          {"metric", &info.metric}};
}

}  // namespace

std::string list_text(std::span<const ExperimentInfo> infos) {
  std::size_t width = 0;
  for (const ExperimentInfo& info : infos) width = std::max(width, info.name.size());
  std::string text;
  for (const ExperimentInfo& info : infos)
    text += pad_to_columns(info.name, width + 2) + info.title + " (" + info.source + ")\n";
  return text;
}

std::string report_text(const ExperimentInfo& info, const ExperimentReport& report) {
  std::string text = info.name + ": " + info.title + "\n";
  for (const auto& [name, fact] : facts_of(info)) text += "  " + pad_to_columns(name, 10) + *fact + "\n";
  if (!report.machine.empty()) text += "  " + pad_to_columns("machine", 10) + report.machine + "\n";
  const std::vector<Row> rows = rows_of(report);
  const Row heads{"", "", "ours", "paper", "", ""};
  const auto widest = [&](std::string Row::*part) {
    std::size_t width = count_columns(heads.*part);
    for (const Row& row : rows) width = std::max(width, count_columns(row.*part));
    return width + 2;
  };
  const auto add = [&](const Row& row) {
    std::string line = "  " + pad_to_columns(row.name, widest(&Row::name)) +
                       pad_to_columns(row.ours, widest(&Row::ours), true) + " " +
                       pad_to_columns(row.unit, widest(&Row::unit)) +
                       pad_to_columns(row.papers, widest(&Row::papers), true) + "  " +
                       pad_to_columns(row.verdict, widest(&Row::verdict)) + row.source;
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  };
  text += "\n";
  add(heads);
  for (const Row& row : rows) add(row);
  for (const std::string& note : report.notes) text += "\n  " + note + "\n";
  return text;
}

std::string report_markdown(const ExperimentInfo& info, const ExperimentReport& report) {
  std::string text = "## " + info.name + ": " + info.title + "\n\n";
  for (const auto& [name, fact] : facts_of(info)) text += "* " + std::string(name) + ": " + *fact + "\n";
  if (!report.machine.empty()) text += "* machine: " + report.machine + "\n";
  text += "\n| figure | unit | ours | paper | | where |\n|---|---|---|---|---|---|\n";
  for (const Row& row : rows_of(report)) {
    text += "| " + row.name + " | " + row.unit + " | " + row.ours + " | " + row.papers + " | " + row.verdict +
            " | " + row.source + " |\n";
  }
  for (const std::string& note : report.notes) text += "\n" + note + "\n";
  return text + "\n";
}

Json info_json(const ExperimentInfo& info) {
  Json json = {{"name", info.name}, {"title", info.title}};
  for (const auto& [name, fact] : facts_of(info)) json[name] = *fact;
  return json;
}

Json report_json(const ExperimentInfo& info, const ExperimentReport& report) {
  Json figures = Json::array(), plots = Json::array();
  for (const ComparedFigure& figure : report.figures) {
    Json one = {{"name", figure.name},
                {"unit", figure.unit},
                {"ours", figure.ours},
                {"verdict", paper::verdict_text(figure.verdict())}};
    if (figure.paper_least) {
      one["paper"] = {{"least", *figure.paper_least},
                      {"most", figure.paper_most.value_or(*figure.paper_least)},
                      {"source", figure.paper_source}};
    }
    figures.push_back(std::move(one));
  }
  for (const paper::ExperimentPlot& plot : report.plots) {
    Json lines = Json::array();
    for (const paper::PlotLine& line : plot.lines) {
      Json points = Json::array();
      for (const paper::PlotPoint& point : line.points) points.push_back({point.x, point.y});
      lines.push_back({{"name", line.name}, {"of_paper", line.is_papers}, {"points", std::move(points)}});
    }
    plots.push_back({{"title", plot.title},
                     {"x_label", plot.x_label},
                     {"y_label", plot.y_label},
                     {"x_names", plot.x_names},
                     {"lines", std::move(lines)}});
  }
  Json json = info_json(info);
  json["machine"] = report.machine.empty() ? Json(nullptr) : Json(report.machine);
  json["figures"] = std::move(figures);
  json["plots"] = std::move(plots);
  json["notes"] = report.notes;
  return json;
}

std::string source_text(const ExperimentInfo& info, const ExperimentReport& report) {
  return "Kwon et al. 2023 · " + info.source + " · " +
         (report.machine.empty() ? info.hardware : report.machine);
}

Result<std::string> report_picture(const ExperimentInfo& info, const ExperimentReport& report,
                                   PictureFormat format) {
  std::vector<LineChart> charts;
  for (const paper::ExperimentPlot& plot : report.plots) {
    LineChart& chart = charts.emplace_back(LineChart{.title = plot.title,
                                                     .x_label = plot.x_label,
                                                     .y_label = plot.y_label,
                                                     .most_y = plot.most_y,
                                                     .x_names = plot.x_names,
                                                     .source = source_text(info, report)});
    for (const paper::PlotLine& line : plot.lines) {
      ChartLine& drawn = chart.lines.emplace_back(ChartLine{.name = line.name, .has_line = !line.is_papers});
      for (const paper::PlotPoint& point : line.points) drawn.points.push_back({point.x, point.y});
    }
  }
  return picture_of(charts, format);
}

std::string figure_text(double value) { return fixed_text(value, value < 10.0 ? 3 : value < 100.0 ? 2 : 1); }

std::string paper_text(const ComparedFigure& figure) {
  if (!figure.paper_least) return "";
  const std::string least = figure_text(*figure.paper_least);
  return figure.paper_most && *figure.paper_most != *figure.paper_least
             ? least + " to " + figure_text(*figure.paper_most)
             : least;
}

std::string verdict_sentence(std::span<const ExperimentReport> reports) {
  std::int64_t num_compared = 0, num_good = 0;
  for (const ExperimentReport& report : reports) {
    for (const ComparedFigure& figure : report.figures) {
      const Verdict verdict = figure.verdict();
      num_compared += verdict != Verdict::kUncompared;
      num_good += verdict == Verdict::kInRange || verdict == Verdict::kNear;
    }
  }
  return with_thousands(num_good) + " of " + count_text(num_compared, "figure") +
         " that the paper gives are in its range or within 15 %";
}

}  // namespace octavo::app
