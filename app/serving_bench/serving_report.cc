#include "app/serving_bench/serving_report.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "engine/base/format.h"
#include "engine/base/text.h"

namespace octavo::app {
namespace {

std::string percent_name(double percent) {
  char text[32];
  std::snprintf(text, sizeof text, "%g", percent);
  return text;
}

std::string rate_text(double rate) { return std::isfinite(rate) ? short_number(rate) : "inf"; }

std::string padded(std::string text, std::size_t width) {
  if (text.size() < width) text.insert(0, width - text.size(), ' ');
  return text;
}

std::string line_of(const std::string& name, const std::string& value) {
  return name + padded(value, name.size() < 50 ? 60 - name.size() : 10) + "\n";
}

std::string heading(std::string_view title) {
  constexpr std::size_t kWidth = 60;
  const std::size_t before = (kWidth - std::min(kWidth, title.size())) / 2;
  std::string text = std::string(before, '-') + std::string(title);
  text.resize(std::max(text.size(), kWidth), '-');
  return text + "\n";
}

std::string upper_name(LatencyMetric metric) {
  std::string name(metric_name(metric));
  for (char& c : name)
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  return name;
}

std::string one_result(const ServingResult& result, const ReportOptions& options) {
  const ServingFigures figures = median_of(result.rounds);
  std::string text = heading(" " + escape_for_message(result.server) + " ");
  text += line_of("Requests answered", std::to_string(figures.num_completed));
  if (figures.num_failed > 0) text += line_of("Requests that failed", std::to_string(figures.num_failed));
  if (figures.num_cut > 0) text += line_of("Requests cut by the end", std::to_string(figures.num_cut));
  text += line_of("Most requests at a time", std::to_string(figures.most_running));
  text += line_of("Duration (s)", fixed_text(figures.duration_s, 2));
  text += line_of("Prompt tokens", std::to_string(figures.num_prompt_tokens));
  if (figures.num_cached_tokens)
    text += line_of("of them from the prefix cache", std::to_string(*figures.num_cached_tokens));
  text +=
      line_of(figures.is_counted_by_server ? "Generated tokens" : "Generated pieces (tokens are not told)",
              std::to_string(figures.num_output_tokens));
  text += line_of("Requests per second", fixed_text(figures.requests_per_s, 3));
  if (figures.goodput_per_s) text += line_of("Goodput (req/s)", fixed_text(*figures.goodput_per_s, 3));
  text += line_of("Output tokens per second", fixed_text(figures.output_tokens_per_s, 2));
  text += line_of("All tokens per second", fixed_text(figures.tokens_per_s, 2));
  text += line_of("Normalised latency (s/token)", fixed_text(figures.normalised_latency_s, 5));
  for (const LatencyMetric metric : options.metrics) {
    const Spread& spread = figures.latency.at(metric);
    const std::string unit = " " + upper_name(metric) + " (ms)";
    text += heading(metric_title(metric));
    text += line_of("Mean" + unit, fixed_text(spread.mean, 2));
    text += line_of("Median" + unit, fixed_text(spread.median, 2));
    for (std::size_t i = 0; i < spread.percentiles.size(); ++i) {
      text += line_of("P" + percent_name(options.figures.percents[i]) + unit,
                      fixed_text(spread.percentiles[i], 2));
    }
  }
  if (!figures.first_error.empty())
    text += "The first failure: " + escape_for_message(figures.first_error, 600) + "\n";
  return text;
}

std::string table_of(const std::vector<ServingResult>& results) {
  std::string text = padded("server", 18) + padded("rate", 8) + padded("req/s", 9) + padded("out tok/s", 11) +
                     padded("ratio", 7) + padded("TTFT p50", 10) + padded("TPOT p50", 10) +
                     padded("s/token", 10) + padded("goodput", 9) + padded("failed", 8) + "\n";
  std::string failures;
  for (const ServingResult& result : results) {
    const ServingFigures figures = median_of(result.rounds);
    const auto base = std::ranges::find(results, result.request_rate, &ServingResult::request_rate);
    const double base_rate = median_of(base->rounds).output_tokens_per_s;
    text += padded(escape_for_message(result.server, 17), 18) + padded(rate_text(result.request_rate), 8) +
            padded(fixed_text(figures.requests_per_s, 3), 9) +
            padded(fixed_text(figures.output_tokens_per_s, 1), 11) +
            padded(base_rate > 0.0 ? fixed_text(figures.output_tokens_per_s / base_rate, 2) : "-", 7) +
            padded(fixed_text(figures.latency.at(LatencyMetric::kTtft).median, 1), 10) +
            padded(fixed_text(figures.latency.at(LatencyMetric::kTpot).median, 2), 10) +
            padded(fixed_text(figures.normalised_latency_s, 5), 10) +
            padded(figures.goodput_per_s ? fixed_text(*figures.goodput_per_s, 3) : "-", 9) +
            padded(std::to_string(figures.num_failed), 8) + "\n";
    if (!figures.first_error.empty()) {
      failures += "The first failure of " + escape_for_message(result.server, 17) + ": " +
                  escape_for_message(figures.first_error, 600) + "\n";
    }
  }
  return text + failures;
}

Json figures_json(const ServingFigures& figures, const ReportOptions& options) {
  Json json = {{"duration", figures.duration_s},
               {"completed", figures.num_completed},
               {"failed", figures.num_failed},
               {"cut", figures.num_cut},
               {"total_input_tokens", figures.num_prompt_tokens},
               {"total_cached_tokens", nullptr},
               {"total_output_tokens", figures.num_output_tokens},
               {"output_tokens_counted_by", figures.is_counted_by_server ? "server" : "pieces"},
               {"request_throughput", figures.requests_per_s},
               {"request_goodput", nullptr},
               {"output_throughput", figures.output_tokens_per_s},
               {"total_token_throughput", figures.tokens_per_s},
               {"normalised_latency_s", figures.normalised_latency_s},
               {"max_concurrent_requests", figures.most_running},
               {"max_send_delay_ms", figures.most_late_ms}};
  if (figures.num_cached_tokens) json["total_cached_tokens"] = *figures.num_cached_tokens;
  if (figures.goodput_per_s) json["request_goodput"] = *figures.goodput_per_s;
  for (const LatencyMetric metric : kLatencyMetrics) {
    const Spread& spread = figures.latency.at(metric);
    const std::string name = "_" + std::string(metric_name(metric)) + "_ms";
    json["mean" + name] = spread.mean;
    json["median" + name] = spread.median;
    json["std" + name] = spread.deviation;
    for (std::size_t i = 0; i < spread.percentiles.size(); ++i)
      json["p" + percent_name(options.figures.percents[i]) + name] = spread.percentiles[i];
  }
  if (!figures.first_error.empty()) json["first_error"] = figures.first_error;
  return json;
}

ChartLine share_below(const ServingResult& result, LatencyMetric metric) {
  std::vector<double> values = values_of(metric, result.records);
  std::ranges::sort(values);
  ChartLine line{.name = result.server, .points = {{0.0, 0.0}}, .has_marks = false};
  constexpr std::size_t kMostPoints = 400;
  const std::size_t step = std::max<std::size_t>(1, values.size() / kMostPoints);
  for (std::size_t i = 0; i < values.size(); i += step)
    line.points.push_back(
        {values[i], 100.0 * static_cast<double>(i + 1) / static_cast<double>(values.size())});
  if (!values.empty()) line.points.push_back({values.back(), 100.0});
  return line;
}

LineChart share_chart(const std::vector<ServingResult>& results, LatencyMetric metric) {
  LineChart chart{.title = std::string(metric_title(metric)), .x_label = "ms", .y_label = "% of all"};
  for (const ServingResult& result : results) chart.lines.push_back(share_below(result, metric));
  return chart;
}

template <class Figure>
LineChart rate_chart(const std::vector<ServingResult>& results, std::string title, std::string y_label,
                     const Figure& figure) {
  LineChart chart{
      .title = std::move(title), .x_label = "Request rate (req/s)", .y_label = std::move(y_label)};
  for (const ServingResult& result : results) {
    auto line = std::ranges::find(chart.lines, result.server, &ChartLine::name);
    if (line == chart.lines.end()) line = chart.lines.insert(line, {.name = result.server, .points = {}});
    if (median_of(result.rounds).num_completed > 0)
      line->points.push_back({result.request_rate, figure(median_of(result.rounds))});
  }
  for (ChartLine& line : chart.lines) std::ranges::sort(line.points, {}, &ChartPoint::x);
  return chart;
}

}  // namespace

std::string report_text(const std::vector<ServingResult>& results, const ReportOptions& options) {
  return results.size() == 1 ? one_result(results.front(), options) : table_of(results);
}

Json result_json(const ServingResult& result, const ReportOptions& options) {
  Json json = {
      {"server", result.server},
      {"request_rate", std::isfinite(result.request_rate) ? Json(result.request_rate) : Json("inf")}};
  json.update(figures_json(median_of(result.rounds), options));
  if (result.rounds.size() > 1) {
    Json& rounds = json["rounds"] = Json::array();
    for (const ServingFigures& figures : result.rounds) rounds.push_back(figures_json(figures, options));
  }
  return json;
}

Json details_json(const std::vector<RequestRecord>& records) {
  Json json = {{"input_lens", Json::array()}, {"output_lens", Json::array()}, {"start_times", Json::array()},
               {"ttfts", Json::array()},      {"itls", Json::array()},        {"e2els", Json::array()},
               {"errors", Json::array()}};
  const auto seconds = [](std::int64_t us) { return static_cast<double>(us) / 1e6; };
  for (const RequestRecord& record : records) {
    json["input_lens"].push_back(record.num_prompt_tokens);
    json["output_lens"].push_back(record.num_output_tokens);
    json["start_times"].push_back(seconds(record.sent_us));
    json["ttfts"].push_back(seconds(record.first_us() - record.sent_us));
    Json gaps = Json::array();
    for (std::size_t i = 1; i < record.piece_us.size(); ++i)
      gaps.push_back(seconds(record.piece_us[i] - record.piece_us[i - 1]));
    json["itls"].push_back(std::move(gaps));
    json["e2els"].push_back(seconds(record.end_us - record.sent_us));
    json["errors"].push_back(record.error ? record.error->message : "");
  }
  return json;
}

Result<std::string> charts_picture(const std::vector<ServingResult>& results, PictureFormat format) {
  std::set<double> rates;
  for (const ServingResult& result : results)
    if (std::isfinite(result.request_rate)) rates.insert(result.request_rate);
  if (rates.size() < 2) {
    return picture_of({share_chart(results, LatencyMetric::kTtft), share_chart(results, LatencyMetric::kTpot),
                       share_chart(results, LatencyMetric::kItl)},
                      format);
  }
  return picture_of(
      {rate_chart(results, "Normalised latency", "s/token",
                  [](const ServingFigures& f) { return f.normalised_latency_s; }),
       rate_chart(results, "Time to first token (median)", "ms",
                  [](const ServingFigures& f) { return f.latency.at(LatencyMetric::kTtft).median; }),
       rate_chart(results, "Output", "tokens/s",
                  [](const ServingFigures& f) { return f.output_tokens_per_s; })},
      format);
}

}  // namespace octavo::app
