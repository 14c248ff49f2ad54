// What an experiment found, as a table, as JSON and as a picture. Pure; any thread.
#pragma once

#include <span>
#include <string>

#include "app/json/json_text.h"
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

std::string report_svg(const paper::ExperimentReport& report);

// "12 of 18 figures that the paper gives are in its range or within 15 %"
std::string verdict_sentence(std::span<const paper::ExperimentReport> reports);

}  // namespace octavo::app
