// Figures against sums that are worked out by hand.

#include "app/serving_bench/serving_figures.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "app/serving_bench/serving_report.h"

namespace octavo::app {
namespace {

// Sent at 0; pieces at the given milliseconds.
RequestRecord record_of(std::vector<std::int64_t> piece_ms, std::int64_t end_ms,
                        std::int64_t num_output_tokens, std::int64_t sent_ms = 0) {
  RequestRecord record{.sent_us = sent_ms * 1000, .end_us = end_ms * 1000};
  for (const std::int64_t ms : piece_ms) record.piece_us.push_back(ms * 1000);
  record.num_prompt_tokens = 10;
  record.num_output_tokens = num_output_tokens;
  record.is_counted_by_server = true;
  return record;
}

LoadRun two_requests() {
  LoadRun run;
  run.records = {record_of({100, 150, 250}, 300, 5), record_of({600, 700}, 1'000, 10, 500)};
  run.duration_us = 2'000'000;
  return run;
}

TEST(ServingFigures, AreWhatTheirDefinitionsSay) {
  const ServingFigures figures = figures_of(two_requests(), {.percents = {50, 100}});
  EXPECT_EQ(figures.num_completed, 2u);
  EXPECT_DOUBLE_EQ(figures.requests_per_s, 1.0);
  EXPECT_DOUBLE_EQ(figures.output_tokens_per_s, 7.5);
  EXPECT_DOUBLE_EQ(figures.tokens_per_s, 17.5);
  EXPECT_DOUBLE_EQ(figures.normalised_latency_s, (0.3 / 5 + 0.5 / 10) / 2);
  EXPECT_DOUBLE_EQ(figures.latency.at(LatencyMetric::kTtft).mean, 100.0);
  EXPECT_DOUBLE_EQ(figures.latency.at(LatencyMetric::kTpot).mean, (200.0 / 4 + 400.0 / 9) / 2);
  EXPECT_DOUBLE_EQ(figures.latency.at(LatencyMetric::kItl).mean, (50.0 + 100.0 + 100.0) / 3);
  EXPECT_DOUBLE_EQ(figures.latency.at(LatencyMetric::kItl).median, 100.0);
  EXPECT_DOUBLE_EQ(figures.latency.at(LatencyMetric::kE2el).percentiles[0], 400.0);
  EXPECT_DOUBLE_EQ(figures.latency.at(LatencyMetric::kE2el).percentiles[1], 500.0);
  EXPECT_FALSE(figures.goodput_per_s);
  EXPECT_FALSE(figures.num_cached_tokens) << "nobody told";
}

TEST(ServingFigures, GoodputCountsWhoMeetsEveryLimit) {
  const auto with = [](std::vector<std::string> limits) {
    FigureOptions options;
    for (const std::string& limit : limits) options.goodput.push_back(*parse_goodput_limit(limit));
    return figures_of(two_requests(), options).goodput_per_s.value();
  };
  EXPECT_DOUBLE_EQ(with({"ttft:100"}), 1.0);
  EXPECT_DOUBLE_EQ(with({"ttft:99"}), 0.0);
  EXPECT_DOUBLE_EQ(with({"tpot:45"}), 0.5);
  EXPECT_DOUBLE_EQ(with({"tpot:45", "e2el:400"}), 0.0);
  for (const char* const text : {"", "ttft", "ttft:", "ttft:x", "ttft:-1", "what:1", "itl:5", "ttft:1s"})
    EXPECT_FALSE(parse_goodput_limit(text)) << text;
}

TEST(ServingFigures, PercentilesAreThoseOfNumpy) {
  // numpy.percentile([1, 2, 3, 4], [0, 25, 50, 90, 100])
  const Spread spread = spread_of({4, 1, 3, 2}, {0, 25, 50, 90, 100});
  const std::vector<double> expected = {1.0, 1.75, 2.5, 3.7, 4.0};
  for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_DOUBLE_EQ(spread.percentiles[i], expected[i]);
  EXPECT_DOUBLE_EQ(spread.deviation, 1.118033988749895);
  EXPECT_DOUBLE_EQ(spread_of({}, {50}).percentiles[0], 0.0);
}

TEST(ServingFigures, OneTokenHasNoTimePerFurtherToken) {
  LoadRun run;
  run.records = {record_of({100}, 110, 1)};
  run.duration_us = 1'000'000;
  EXPECT_TRUE(values_of(LatencyMetric::kTpot, run.records).empty());
  EXPECT_DOUBLE_EQ(figures_of(run, {}).normalised_latency_s, 0.110);
}

TEST(ServingFigures, OfRoundsTheMedianCounts) {
  std::vector<ServingFigures> rounds;
  for (const std::int64_t end_ms : {1'000, 5'000, 2'000}) {
    LoadRun run;
    run.records = {record_of({100}, end_ms, 10)};
    run.duration_us = end_ms * 1000;
    rounds.push_back(figures_of(run, {.percents = {99}}));
  }
  const ServingFigures median = median_of(rounds);
  EXPECT_DOUBLE_EQ(median.duration_s, 2.0);
  EXPECT_DOUBLE_EQ(median.output_tokens_per_s, 5.0);
  EXPECT_DOUBLE_EQ(median.latency.at(LatencyMetric::kE2el).percentiles[0], 2'000.0);
}

TEST(ServingReport, JsonHasTheNamesOfVllm) {
  const ServingResult result{.server = "a", .request_rate = 2.0, .rounds = {figures_of(two_requests(), {})}};
  const Json json = result_json(result, {});
  for (const char* const name :
       {"duration", "completed", "total_input_tokens", "total_output_tokens", "request_throughput",
        "request_goodput", "output_throughput", "total_token_throughput", "mean_ttft_ms", "median_ttft_ms",
        "std_ttft_ms", "p99_ttft_ms", "mean_tpot_ms", "p99_itl_ms", "mean_e2el_ms", "request_rate"}) {
    EXPECT_TRUE(json.contains(name)) << name;
  }
  EXPECT_TRUE(json["request_goodput"].is_null());
  EXPECT_TRUE(json["total_cached_tokens"].is_null()) << "unknown is not zero";
  const Json details = details_json(two_requests().records);
  EXPECT_EQ(details["output_lens"].dump(), "[5,10]");
  EXPECT_EQ(details["itls"][0].dump(), "[0.05,0.1]");
}

TEST(ServingReport, ServersStandBesideTheFirstAtTheSameRate) {
  LoadRun slow = two_requests();
  slow.duration_us *= 2;
  const std::vector<ServingResult> results = {
      {.server = "first", .request_rate = 1.0, .rounds = {figures_of(two_requests(), {})}},
      {.server = "second", .request_rate = 1.0, .rounds = {figures_of(slow, {})}}};
  const std::string text = report_text(results, {});
  const std::string second = text.substr(text.find("second"));
  EXPECT_NE(second.find(" 0.50 "), std::string::npos) << text;
}

TEST(ServingReport, SeveralRatesAreDrawnOverTheRate) {
  std::vector<ServingResult> results;
  for (const double rate : {2.0, 1.0})
    results.push_back({.server = "a", .request_rate = rate, .rounds = {figures_of(two_requests(), {})}});
  EXPECT_NE(charts_picture(results, PictureFormat::kSvg)->find("Normalised latency"), std::string::npos);
  results.pop_back();
  EXPECT_NE(charts_picture(results, PictureFormat::kSvg)->find("% of all"), std::string::npos);
}

}  // namespace
}  // namespace octavo::app
