#include "app/serving_bench/serving_figures.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <functional>
#include <utility>

#include "engine/base/text.h"

namespace octavo::app {
namespace {

double to_ms(std::int64_t us) { return static_cast<double>(us) / 1e3; }

double per_second(double count, double seconds) { return seconds > 0.0 ? count / seconds : 0.0; }

std::optional<double> value_of(LatencyMetric metric, const RequestRecord& record) {
  switch (metric) {
    case LatencyMetric::kTtft: return to_ms(record.first_us() - record.sent_us);
    case LatencyMetric::kTpot:
      if (record.num_output_tokens < 2) return std::nullopt;
      return to_ms(record.end_us - record.first_us()) / static_cast<double>(record.num_output_tokens - 1);
    case LatencyMetric::kE2el: return to_ms(record.end_us - record.sent_us);
    case LatencyMetric::kItl: {  // of a request by itself: the mean of its gaps
      if (record.piece_us.size() < 2) return std::nullopt;
      return to_ms(record.piece_us.back() - record.piece_us.front()) /
             static_cast<double>(record.piece_us.size() - 1);
    }
  }
  return std::nullopt;
}

bool meets(const RequestRecord& record, const std::vector<GoodputLimit>& limits) {
  return std::ranges::all_of(limits, [&](const GoodputLimit& limit) {
    return value_of(limit.metric, record).value_or(0.0) <= limit.most_ms;
  });
}

// numpy's default: linear between neighbouring ranks. 0 when empty.
double percentile_of_sorted(const std::vector<double>& sorted, double percent) {
  if (sorted.empty()) return 0.0;
  const double place = percent / 100.0 * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (place - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

double median_value(std::vector<double> values) {
  std::ranges::sort(values);
  return percentile_of_sorted(values, 50.0);
}

}  // namespace

std::string_view metric_name(LatencyMetric metric) {
  switch (metric) {
    case LatencyMetric::kTtft: return "ttft";
    case LatencyMetric::kTpot: return "tpot";
    case LatencyMetric::kItl: return "itl";
    case LatencyMetric::kE2el: return "e2el";
  }
  return "";
}

std::string_view metric_title(LatencyMetric metric) {
  switch (metric) {
    case LatencyMetric::kTtft: return "Time to first token";
    case LatencyMetric::kTpot: return "Time per output token";
    case LatencyMetric::kItl: return "Inter-token latency";
    case LatencyMetric::kE2el: return "End-to-end latency";
  }
  return "";
}

std::optional<LatencyMetric> parse_metric(std::string_view name) {
  for (const LatencyMetric metric : kLatencyMetrics)
    if (metric_name(metric) == name) return metric;
  return std::nullopt;
}

std::vector<double> values_of(LatencyMetric metric, const std::vector<RequestRecord>& records) {
  std::vector<double> values;
  for (const RequestRecord& record : records) {
    if (!record.ok()) continue;
    if (metric == LatencyMetric::kItl) {
      for (std::size_t i = 1; i < record.piece_us.size(); ++i)
        values.push_back(to_ms(record.piece_us[i] - record.piece_us[i - 1]));
    } else if (const auto value = value_of(metric, record)) {
      values.push_back(*value);
    }
  }
  return values;
}

Spread spread_of(std::vector<double> values, const std::vector<double>& percents) {
  std::ranges::sort(values);
  Spread spread;
  for (const double value : values) spread.mean += value;
  if (!values.empty()) spread.mean /= static_cast<double>(values.size());
  for (const double value : values) spread.deviation += (value - spread.mean) * (value - spread.mean);
  if (!values.empty()) spread.deviation = std::sqrt(spread.deviation / static_cast<double>(values.size()));
  spread.median = percentile_of_sorted(values, 50.0);
  for (const double percent : percents) spread.percentiles.push_back(percentile_of_sorted(values, percent));
  return spread;
}

Result<GoodputLimit> parse_goodput_limit(std::string_view text) {
  const std::size_t colon = std::min(text.find(':'), text.size());
  const auto metric = parse_metric(text.substr(0, colon));
  const std::string_view number = text.substr(std::min(text.size(), colon + 1));
  GoodputLimit limit{.metric = metric.value_or(LatencyMetric::kTtft)};
  const auto [end, problem] = std::from_chars(number.data(), number.data() + number.size(), limit.most_ms);
  const bool is_number = problem == std::errc() && end == number.data() + number.size();
  if (metric && *metric != LatencyMetric::kItl && is_number && limit.most_ms > 0.0) return limit;
  return Error{
      .code = ErrorCode::kInvalidArgument,
      .message = "--goodput takes limits in milliseconds, such as ttft:200 tpot:50 e2el:5000, but one is '" +
                 escape_for_message(text) + "'",
      .subject = "--goodput"};
}

ServingFigures figures_of(const LoadRun& run, const FigureOptions& options) {
  ServingFigures figures;
  figures.duration_s = static_cast<double>(run.duration_us) / 1e6;
  figures.most_running = run.most_running;
  figures.num_cut = run.num_cut;
  std::size_t num_good = 0;
  double normalised_s = 0.0;
  for (const RequestRecord& record : run.records) {
    figures.most_late_ms = std::max(figures.most_late_ms, to_ms(record.sent_us - record.planned_us));
    if (!record.ok()) {
      if (figures.num_failed++ == 0) figures.first_error = record.error->message;
      continue;
    }
    ++figures.num_completed;
    figures.num_prompt_tokens += record.num_prompt_tokens;
    figures.num_output_tokens += record.num_output_tokens;
    if (record.num_cached_tokens)
      figures.num_cached_tokens = figures.num_cached_tokens.value_or(0) + *record.num_cached_tokens;
    figures.is_counted_by_server = figures.is_counted_by_server && record.is_counted_by_server;
    normalised_s += static_cast<double>(record.end_us - record.sent_us) / 1e6 /
                    static_cast<double>(std::max<std::int64_t>(1, record.num_output_tokens));
    if (meets(record, options.goodput)) ++num_good;
  }
  const auto num_completed = static_cast<double>(figures.num_completed);
  figures.requests_per_s = per_second(num_completed, figures.duration_s);
  figures.output_tokens_per_s =
      per_second(static_cast<double>(figures.num_output_tokens), figures.duration_s);
  figures.tokens_per_s = per_second(
      static_cast<double>(figures.num_output_tokens + figures.num_prompt_tokens), figures.duration_s);
  if (!options.goodput.empty())
    figures.goodput_per_s = per_second(static_cast<double>(num_good), figures.duration_s);
  if (figures.num_completed > 0) figures.normalised_latency_s = normalised_s / num_completed;
  for (const LatencyMetric metric : kLatencyMetrics)
    figures.latency[metric] = spread_of(values_of(metric, run.records), options.percents);
  return figures;
}

ServingFigures median_of(const std::vector<ServingFigures>& rounds) {
  ServingFigures result = rounds.front();
  const auto median = [&](const auto& figure) {
    std::vector<double> values;
    for (const ServingFigures& round : rounds)
      values.push_back(static_cast<double>(std::invoke(figure, round)));
    return median_value(std::move(values));
  };
  result.duration_s = median(&ServingFigures::duration_s);
  result.num_completed = static_cast<std::size_t>(median(&ServingFigures::num_completed));
  result.num_prompt_tokens = static_cast<std::int64_t>(median(&ServingFigures::num_prompt_tokens));
  result.num_output_tokens = static_cast<std::int64_t>(median(&ServingFigures::num_output_tokens));
  result.requests_per_s = median(&ServingFigures::requests_per_s);
  result.output_tokens_per_s = median(&ServingFigures::output_tokens_per_s);
  result.tokens_per_s = median(&ServingFigures::tokens_per_s);
  result.normalised_latency_s = median(&ServingFigures::normalised_latency_s);
  result.most_late_ms = median(&ServingFigures::most_late_ms);
  result.most_running = static_cast<std::size_t>(median(&ServingFigures::most_running));
  if (result.goodput_per_s)
    result.goodput_per_s = median([](const ServingFigures& f) { return f.goodput_per_s.value_or(0.0); });
  if (result.num_cached_tokens)
    result.num_cached_tokens = static_cast<std::int64_t>(
        median([](const ServingFigures& f) { return f.num_cached_tokens.value_or(0); }));
  for (auto& [metric, spread] : result.latency) {
    const auto of = [metric = metric](const ServingFigures& f) -> const Spread& {
      return f.latency.at(metric);
    };
    spread.mean = median([&](const ServingFigures& f) { return of(f).mean; });
    spread.median = median([&](const ServingFigures& f) { return of(f).median; });
    spread.deviation = median([&](const ServingFigures& f) { return of(f).deviation; });
    for (std::size_t i = 0; i < spread.percentiles.size(); ++i)
      spread.percentiles[i] = median([&](const ServingFigures& f) { return of(f).percentiles[i]; });
  }
  for (std::size_t i = 1; i < rounds.size(); ++i) {
    result.num_failed += rounds[i].num_failed;
    result.num_cut += rounds[i].num_cut;
    result.is_counted_by_server = result.is_counted_by_server && rounds[i].is_counted_by_server;
    if (result.first_error.empty()) result.first_error = rounds[i].first_error;
  }
  return result;
}

}  // namespace octavo::app
