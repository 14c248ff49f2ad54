#include "app/server/server_metrics.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <map>
#include <random>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

namespace octavo::app {
namespace {

// What a scraper makes of a text of Prometheus' format: types of families, and samples by name and labels.
struct Scraped {
  std::map<std::string, std::string> types;
  std::map<std::string, double> samples;  // name{labels} as written
  std::vector<std::string> order;         // of samples
  std::vector<std::string> complaints;
};

Scraped scrape(const std::string& text) {
  Scraped scraped;
  std::string line, family;
  if (!text.ends_with('\n')) scraped.complaints.push_back("no line break at the end");
  for (std::istringstream lines(text); std::getline(lines, line);) {
    std::istringstream words(line);
    std::string mark, keyword, name, type;
    if (line.starts_with("# ")) {
      words >> mark >> keyword >> name >> type;
      if (keyword == "HELP") family = name;
      if (keyword == "TYPE" && (name != family || !scraped.types.emplace(name, type).second))
        scraped.complaints.push_back("family without help or twice: " + line);
      continue;
    }
    const std::size_t space = line.rfind(' ');
    const std::string sample = line.substr(0, space);
    char* end = nullptr;
    const double value = std::strtod(line.c_str() + space + 1, &end);
    if (space == std::string::npos || *end != '\0' || !sample.ends_with('}') || !sample.starts_with(family))
      scraped.complaints.push_back("no sample of " + family + ": " + line);
    if (!scraped.samples.emplace(sample, value).second) scraped.complaints.push_back("twice: " + line);
    scraped.order.push_back(sample);
  }
  return scraped;
}

// Histograms count upwards to +Inf, which is their count.
void check_histograms(const Scraped& scraped) {
  for (const auto& [name, type] : scraped.types) {
    if (type != "histogram") continue;
    SCOPED_TRACE(name);
    double bound_before = -1, count_before = 0, infinite = -1;
    for (const std::string& sample : scraped.order) {
      if (!sample.starts_with(name + "_bucket{")) continue;
      const std::string bound = sample.substr(sample.find("le=\"") + 4);
      const double number = std::strtod(bound.c_str(), nullptr);
      EXPECT_GT(number, bound_before);
      EXPECT_GE(scraped.samples.at(sample), count_before);
      bound_before = number;
      count_before = scraped.samples.at(sample);
      if (bound.starts_with("+Inf\"")) infinite = count_before;
    }
    const std::string labels = R"({model_name="tiny",engine="0"})";
    ASSERT_TRUE(scraped.samples.contains(name + "_sum" + labels));
    ASSERT_TRUE(scraped.samples.contains(name + "_count" + labels));
    EXPECT_EQ(scraped.samples.at(name + "_count" + labels), infinite);
  }
}

double scraped_value(const ServerMetrics& metrics, const std::string& name, const std::string& more = "",
                     const PoolLevels& levels = {}) {
  const Scraped scraped = scrape(metrics.text(levels));
  const std::string sample =
      name + R"({model_name="tiny",engine="0")" + (more.empty() ? "" : "," + more) + "}";
  const auto found = scraped.samples.find(sample);
  return found == scraped.samples.end() ? -1.0 : found->second;
}

const ServerMetricsOptions kTinyOptions = {.model_name = "tiny", .max_model_len = 64};

TokensGenerated generated_ids(std::uint64_t request, std::int32_t output, std::size_t count) {
  return {.request_id = {request},
          .output_index = output,
          .token_ids = std::vector<TokenId>(count, 5),
          .logprobs = {},
          .top_logprobs = {},
          .text = ""};
}

// Eight prompt tokens, of which three are found; four tokens, then two more of a second output.
void live_whole(ServerMetrics& metrics, std::uint64_t request) {
  metrics.begin({request});
  metrics.add(RequestAccepted{.request_id = {request}, .prompt_token_ids = std::vector<TokenId>(8, 1)});
  metrics.add(RequestAdmitted{.request_id = {request}, .num_cached_tokens = 3, .queue_us = 400'000});
  metrics.add(generated_ids(request, 0, 1));
  metrics.add(generated_ids(request, 0, 3));
  metrics.add(generated_ids(request, 1, 2));
  metrics.add(
      OutputFinished{.request_id = {request}, .output_index = 0, .finish_reason = FinishReason::kLength});
  metrics.add(
      OutputFinished{.request_id = {request}, .output_index = 1, .finish_reason = FinishReason::kStop});
  RequestMetrics told{.queue_us = 400'000,
                      .ttft_us = 650'000,
                      .tpot_us = 20'000,
                      .e2e_us = 710'000,
                      .num_preemptions = 1,
                      .num_draft_tokens = 6,
                      .num_accepted_tokens = 2};
  told.prompt = {.num_computed = 5, .num_hit_live = 1, .num_hit_cached = 1, .num_copied_partial = 1};
  told.prefix_miss.cause = MissCause::kDifferingToken;
  metrics.add(RequestFinished{.request_id = {request}, .prompt_logprobs = {}, .metrics = told});
}

TEST(ServerMetrics, ALifeIsExactlyTheseLines) {
  ServerMetrics metrics(kTinyOptions);
  live_whole(metrics, 1);
  PoolLevels levels{.used_blocks = 3, .cached_blocks = 2, .logical_blocks = 5};
  levels.totals.block_size = 16;
  levels.totals.num_blocks = 12;
  levels.totals.cow_copies = 7;
  levels.totals.partial_copies = 4;
  levels.totals.evicted_cached_blocks = 9;
  const std::string text = metrics.text(levels);
  const std::string labels = R"({model_name="tiny",engine="0")";
  const auto expect_block = [&](std::string block) {
    for (std::size_t at = block.find('@'); at != std::string::npos; at = block.find('@', at))
      block.replace(at, 1, labels);
    EXPECT_NE(text.find(block), std::string::npos) << block << "is not in\n" << text;
  };
  expect_block(
      "# HELP vllm:num_requests_running Requests that run.\n"
      "# TYPE vllm:num_requests_running gauge\n"
      "vllm:num_requests_running@} 0\n");
  expect_block("# TYPE vllm:kv_cache_usage_perc gauge\nvllm:kv_cache_usage_perc@} 0.25\n");
  expect_block("\nvllm:gpu_cache_usage_perc@} 0.25\n");
  expect_block("\nvllm:cache_config_info@,block_size=\"16\",num_gpu_blocks=\"12\",num_cpu_blocks=\"0\"} 1\n");
  expect_block(
      "# TYPE octavo:kv_blocks gauge\n"
      "octavo:kv_blocks@,state=\"used\"} 3\n"
      "octavo:kv_blocks@,state=\"cached\"} 2\n"
      "octavo:kv_blocks@,state=\"free\"} 7\n");
  expect_block("# TYPE vllm:prompt_tokens_total counter\nvllm:prompt_tokens_total@} 8\n");
  expect_block("\nvllm:generation_tokens_total@} 6\n");
  expect_block("\nvllm:prefix_cache_queries_total@} 8\n");
  expect_block("\nvllm:prefix_cache_hits_total@} 3\n");
  expect_block("\nvllm:num_preemptions_total@} 1\n");
  expect_block("\nvllm:spec_decode_num_draft_tokens_total@} 6\n");
  expect_block("\nvllm:spec_decode_num_accepted_tokens_total@} 2\n");
  expect_block(
      "# TYPE vllm:request_success_total counter\n"
      "vllm:request_success_total@,finished_reason=\"stop\"} 0\n"
      "vllm:request_success_total@,finished_reason=\"length\"} 1\n"
      "vllm:request_success_total@,finished_reason=\"abort\"} 0\n"
      "vllm:request_success_total@,finished_reason=\"error\"} 0\n");
  expect_block(
      "# TYPE vllm:request_prompt_tokens histogram\n"
      "vllm:request_prompt_tokens_bucket@,le=\"1.0\"} 0\n"
      "vllm:request_prompt_tokens_bucket@,le=\"2.0\"} 0\n"
      "vllm:request_prompt_tokens_bucket@,le=\"5.0\"} 0\n"
      "vllm:request_prompt_tokens_bucket@,le=\"10.0\"} 1\n"
      "vllm:request_prompt_tokens_bucket@,le=\"20.0\"} 1\n"
      "vllm:request_prompt_tokens_bucket@,le=\"50.0\"} 1\n"
      "vllm:request_prompt_tokens_bucket@,le=\"+Inf\"} 1\n"
      "vllm:request_prompt_tokens_sum@} 8\n"
      "vllm:request_prompt_tokens_count@} 1\n");
  expect_block("vllm:request_generation_tokens_sum@} 6\n");
  expect_block(
      "vllm:time_to_first_token_seconds_bucket@,le=\"0.5\"} 0\n"
      "vllm:time_to_first_token_seconds_bucket@,le=\"0.75\"} 1\n");
  expect_block("vllm:time_to_first_token_seconds_sum@} 0.65\n");
  // Three gaps of the longest output.
  expect_block(
      "vllm:time_per_output_token_seconds_bucket@,le=\"0.01\"} 0\n"
      "vllm:time_per_output_token_seconds_bucket@,le=\"0.025\"} 3\n");
  expect_block("vllm:inter_token_latency_seconds_sum@} 0.06\nvllm:inter_token_latency_seconds_count@} 3\n");
  expect_block("vllm:request_time_per_output_token_seconds_count@} 1\n");
  expect_block("vllm:e2e_request_latency_seconds_sum@} 0.71\n");
  expect_block(
      "vllm:request_queue_time_seconds_bucket@,le=\"0.3\"} 0\n"
      "vllm:request_queue_time_seconds_bucket@,le=\"0.5\"} 1\n");
  expect_block("vllm:request_prefill_time_seconds_sum@} 0.25\n");
  expect_block("vllm:request_decode_time_seconds_sum@} 0.06\n");
  expect_block("octavo:prompt_tokens_total@,source=\"computed\"} 5\n");
  expect_block("octavo:prefix_misses_total@,cause=\"differing_token\"} 1\n");
  expect_block(
      "octavo:kv_block_copies_total@,reason=\"write\"} 3\n"
      "octavo:kv_block_copies_total@,reason=\"partial_prefix\"} 4\n");
  expect_block("octavo:kv_evicted_blocks_total@} 9\n");
  EXPECT_EQ(text.find("iteration_tokens_total"), std::string::npos);  // no step was told
  EXPECT_EQ(text.find("octavo:states_total"), std::string::npos);     // the model has none
}

TEST(ServerMetrics, EveryTextIsWellFormed) {
  ServerMetrics metrics(kTinyOptions);
  PoolLevels levels;
  for (std::uint64_t request = 0; request < 5; ++request) {
    const Scraped scraped = scrape(metrics.text(levels));
    for (const std::string& complaint : scraped.complaints) ADD_FAILURE() << complaint;
    EXPECT_GE(scraped.types.size(), 25u);
    check_histograms(scraped);
    live_whole(metrics, request);
    metrics.add(StepRecord{.num_prefill_tokens = 100, .num_decode_tokens = 30});
    levels.totals.num_states = levels.totals.num_window_blocks = 4;
  }
  EXPECT_EQ(scraped_value(metrics, "vllm:iteration_tokens_total_sum"), 650);
}

TEST(ServerMetrics, RandomLivesKeepHistogramsCumulative) {
  for (unsigned seed = 1; seed <= 10; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    ServerMetrics metrics(kTinyOptions);
    double sum_s = 0.0;
    std::size_t num_short = 0, num_tokens = 0;
    for (std::uint64_t request = 1; request <= 50; ++request) {
      const std::int64_t e2e_us = std::int64_t{1} << random() % 40;
      const std::size_t count = 1 + random() % 200;
      metrics.begin({request});
      metrics.add(
          RequestAccepted{.request_id = {request}, .prompt_token_ids = std::vector<TokenId>(count, 1)});
      metrics.add(RequestAdmitted{.request_id = {request}});
      metrics.add(RequestFinished{
          .request_id = {request}, .prompt_logprobs = {}, .metrics = {.ttft_us = e2e_us, .e2e_us = e2e_us}});
      sum_s += static_cast<double>(e2e_us) / 1e6;
      num_short += count <= 20 ? 1 : 0;
      num_tokens += count;
    }
    check_histograms(scrape(metrics.text({})));
    EXPECT_NEAR(scraped_value(metrics, "vllm:e2e_request_latency_seconds_sum"), sum_s, 1e-6 * sum_s);
    EXPECT_EQ(scraped_value(metrics, "vllm:request_prompt_tokens_bucket", R"(le="20.0")"), num_short);
    EXPECT_EQ(scraped_value(metrics, "vllm:prompt_tokens_total"), num_tokens);
  }
}

TEST(ServerMetrics, ABoundHoldsWhatEqualsIt) {
  ServerMetrics metrics(kTinyOptions);
  for (const std::int32_t num_tokens : {8, 9}) metrics.add(StepRecord{.num_prefill_tokens = num_tokens});
  EXPECT_EQ(scraped_value(metrics, "vllm:iteration_tokens_total_bucket", R"(le="8.0")"), 1);
  EXPECT_EQ(scraped_value(metrics, "vllm:iteration_tokens_total_bucket", R"(le="16.0")"), 2);
}

TEST(ServerMetrics, CountersMoveAtTheEndAndNotBefore) {
  ServerMetrics metrics(kTinyOptions);
  const auto num_prompt = [&] { return scraped_value(metrics, "vllm:prompt_tokens_total"); };
  const auto num_generated = [&] { return scraped_value(metrics, "vllm:generation_tokens_total"); };
  metrics.begin({1});
  metrics.add(RequestAccepted{.request_id = {1}, .prompt_token_ids = {1, 2, 3}});
  metrics.add(RequestAdmitted{.request_id = {1}});
  metrics.add(generated_ids(1, 0, 4));
  EXPECT_EQ(num_prompt(), 0);
  EXPECT_EQ(num_generated(), 0);
  metrics.add(RequestFailed{.request_id = {1}, .error = {}, .metrics = {}});
  EXPECT_EQ(num_prompt(), 3);
  EXPECT_EQ(num_generated(), 4);
  EXPECT_EQ(scraped_value(metrics, "vllm:request_success_total", R"(finished_reason="error")"), 1);
  EXPECT_EQ(scraped_value(metrics, "vllm:e2e_request_latency_seconds_count"), 0);
}

TEST(ServerMetrics, LevelsFollowRequests) {
  ServerMetrics metrics(kTinyOptions);
  const auto expect_levels = [&](int num_waiting, int num_running) {
    EXPECT_EQ(scraped_value(metrics, "vllm:num_requests_waiting"), num_waiting);
    EXPECT_EQ(scraped_value(metrics, "vllm:num_requests_running"), num_running);
  };
  metrics.begin({1});
  metrics.begin({2});
  expect_levels(2, 0);
  metrics.add(RequestAdmitted{.request_id = {1}});
  metrics.add(RequestAdmitted{.request_id = {2}});
  expect_levels(0, 2);
  metrics.add(RequestPreempted{.request_id = {1}, .first_output_index = 1});  // its first output goes on
  expect_levels(0, 2);
  metrics.add(RequestPreempted{.request_id = {1}});
  expect_levels(1, 1);
  metrics.add(generated_ids(1, 0, 1));
  expect_levels(0, 2);
  metrics.add(RequestFinished{.request_id = {1}, .prompt_logprobs = {}, .metrics = {}});
  metrics.add(RequestFailed{.request_id = {2}, .error = {}, .metrics = {}});
  expect_levels(0, 0);
}

TEST(ServerMetrics, WhoDoesNotReadTheCacheDoesNotAskIt) {
  ServerMetrics metrics(kTinyOptions);
  metrics.begin({1});
  metrics.add(RequestAccepted{.request_id = {1}, .prompt_token_ids = {1, 2, 3}});
  metrics.add(RequestAdmitted{.request_id = {1}});
  RequestMetrics told{.ttft_us = 10, .e2e_us = 20};
  told.prefix_miss.cause = MissCause::kNotRead;
  metrics.add(RequestFinished{.request_id = {1}, .prompt_logprobs = {}, .metrics = told});
  EXPECT_EQ(scraped_value(metrics, "vllm:prompt_tokens_total"), 3);
  EXPECT_EQ(scraped_value(metrics, "vllm:prefix_cache_queries_total"), 0);
}

TEST(ServerMetrics, RequestsOfOthersAreLeftOut) {
  ServerMetrics metrics(kTinyOptions);
  const std::string before = metrics.text({});
  metrics.add(RequestAdmitted{.request_id = {9}});
  metrics.add(RequestFinished{.request_id = {9}, .prompt_logprobs = {}, .metrics = {.e2e_us = 5}});
  EXPECT_EQ(metrics.text({}), before);
}

TEST(ServerMetrics, NamesOfModelsAreEscaped) {
  const ServerMetrics metrics({.model_name = "a\"b\\c\nd\xff", .max_model_len = 64});
  const std::string text = metrics.text({});
  EXPECT_NE(
      text.find("vllm:num_requests_running{model_name=\"a\\\"b\\\\c\\nd\xef\xbf\xbd\",engine=\"0\"} 0\n"),
      std::string::npos)
      << text.substr(0, 300);
}

TEST(ServerMetrics, LargeBoundsAreWrittenOut) {
  const ServerMetrics metrics({.model_name = "tiny", .max_model_len = 2'000'000});
  EXPECT_EQ(scraped_value(metrics, "vllm:request_prompt_tokens_bucket", R"(le="1000000.0")"), 0);
  EXPECT_EQ(scraped_value(metrics, "vllm:request_prompt_tokens_bucket", R"(le="2000000.0")"), 0);
}

TEST(ServerMetrics, ATextCanBeAskedForWhileEventsCome) {
  ServerMetrics metrics(kTinyOptions);
  std::atomic<bool> is_over{false};
  std::thread reader([&] {
    do check_histograms(scrape(metrics.text({})));
    while (!is_over);
  });
  for (std::uint64_t request = 1; request <= 500; ++request) live_whole(metrics, request);
  is_over = true;
  reader.join();
  EXPECT_EQ(scraped_value(metrics, "vllm:generation_tokens_total"), 3000);
}

}  // namespace
}  // namespace octavo::app
