// The figures of a serving benchmark out of its records.
//
//   time to first token    from the request to the first piece with text
//   time per output token  (end - first token) / (output tokens - 1)
//   inter-token latency    between pieces of an answer, each gap of each answer
//   end-to-end latency     from the request to the end of its answer
//   normalised latency     end-to-end latency / output tokens, the mean over requests (Kwon et al. 2023,
//                          arXiv:2309.06180, section 6.1)
//   goodput                requests per second that met every limit
// Requests that failed count in `num_failed` alone.
//
// Pure; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "app/serving_bench/load_generator.h"
#include "engine/base/result.h"

namespace octavo::app {

enum class LatencyMetric { kTtft, kTpot, kItl, kE2el };
inline constexpr LatencyMetric kLatencyMetrics[] = {LatencyMetric::kTtft, LatencyMetric::kTpot,
                                                    LatencyMetric::kItl, LatencyMetric::kE2el};
std::string_view metric_name(LatencyMetric metric);   // "ttft", as vLLM's options write it
std::string_view metric_title(LatencyMetric metric);  // "Time to first token"
std::optional<LatencyMetric> parse_metric(std::string_view name);

// Milliseconds, of every request, or of every gap.
std::vector<double> values_of(LatencyMetric metric, const std::vector<RequestRecord>& records);

struct Spread {
  double mean = 0.0, median = 0.0, deviation = 0.0;  // deviation: of the population
  std::vector<double> percentiles = {};              // as asked, linear between ranks as numpy does
};
Spread spread_of(std::vector<double> values, const std::vector<double>& percents);

struct GoodputLimit {
  LatencyMetric metric;
  double most_ms = 0.0;
};
// "ttft:200"
Result<GoodputLimit> parse_goodput_limit(std::string_view text);

struct FigureOptions {
  std::vector<double> percents = {99.0};
  std::vector<GoodputLimit> goodput = {};
};

struct ServingFigures {
  double duration_s = 0.0;
  std::size_t num_completed = 0, num_failed = 0, num_cut = 0;
  std::int64_t num_prompt_tokens = 0, num_output_tokens = 0;
  std::optional<std::int64_t> num_cached_tokens = {};  // of prompts, where the server tells
  bool is_counted_by_server = true;                    // the output tokens of every request
  double requests_per_s = 0.0, output_tokens_per_s = 0.0, tokens_per_s = 0.0;
  std::optional<double> goodput_per_s = {};  // where limits were given
  double normalised_latency_s = 0.0;         // seconds per token
  std::map<LatencyMetric, Spread> latency;
  std::size_t most_running = 0;
  double most_late_ms = 0.0;  // how much later than planned we sent: beyond some ms we are what is measured
  std::string first_error = {};
};

ServingFigures figures_of(const LoadRun& run, const FigureOptions& options);

// Of each figure the median over rounds, of counts the sum of those that failed or were cut.
// REQUIRES: at least one
ServingFigures median_of(const std::vector<ServingFigures>& rounds);

}  // namespace octavo::app
