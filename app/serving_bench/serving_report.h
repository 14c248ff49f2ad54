// What a serving benchmark tells: a table, JSON with vLLM's names, and charts. Pure; any thread.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "app/charts/line_chart.h"
#include "app/json/json_text.h"
#include "app/serving_bench/serving_figures.h"

namespace octavo::app {

// One server at one request rate.
struct ServingResult {
  std::string server;
  double request_rate = 0.0;  // infinity: all at once
  std::vector<ServingFigures> rounds = {};
  std::vector<RequestRecord> records = {};  // of the last round, for charts and details
};

struct ReportOptions {
  std::vector<LatencyMetric> metrics = {LatencyMetric::kTtft, LatencyMetric::kTpot, LatencyMetric::kItl};
  FigureOptions figures = {};
};

// One result: the block that vLLM prints, and normalised latency. Several: a line each, with throughput
// beside that of the first server at the same rate.
std::string report_text(const std::vector<ServingResult>& results, const ReportOptions& options);

// vLLM's names for medians over rounds; with several rounds all of them under "rounds".
Json result_json(const ServingResult& result, const ReportOptions& options);
// Of each request, in vLLM's lists.
Json details_json(const std::vector<RequestRecord>& records);

// Several rates: normalised latency and throughput over the rate, as the paper's figure 12. One: how many
// requests had at most which time to first token and per token.
Result<std::string> charts_picture(const std::vector<ServingResult>& results, PictureFormat format);

}  // namespace octavo::app
