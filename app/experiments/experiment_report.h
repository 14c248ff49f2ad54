// What an experiment found, as a table, as JSON and as a picture. Pure; any thread.
#pragma once

#include <span>
#include <string>

#include "app/charts/line_chart.h"
#include "app/json/json_text.h"
#include "engine/base/result.h"
#include "engine/experiments/experiment.h"

namespace octavo::app {

// One line each.
std::string list_text(std::span<const paper::ExperimentInfo> infos);

// What is looked at, then ours beside the paper's, then what a reader has to know.
std::string report_text(const paper::ExperimentInfo& info, const paper::ExperimentReport& report);
// The same as Markdown.
std::string report_markdown(const paper::ExperimentInfo& info, const paper::ExperimentReport& report);

Json info_json(const paper::ExperimentInfo& info);
Json report_json(const paper::ExperimentInfo& info, const paper::ExperimentReport& report);

// Below each chart stands where its points were published, or on what machine they were measured.
std::string source_text(const paper::ExperimentInfo& info, const paper::ExperimentReport& report);
Result<std::string> report_picture(const paper::ExperimentInfo& info, const paper::ExperimentReport& report,
                                   PictureFormat format);

// A figure as people read it, and what the paper says of it: "1.70 to 2.70"; empty where it says nothing.
std::string figure_text(double value);
std::string paper_text(const paper::ComparedFigure& figure);

// "12 of 18 figures that the paper gives are in its range or within 15 %"
std::string verdict_sentence(std::span<const paper::ExperimentReport> reports);

}  // namespace octavo::app
