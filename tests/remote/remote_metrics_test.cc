// Load as servers tell it; what they do not tell stays unknown.

#include "app/remote/remote_metrics.h"

#include <gtest/gtest.h>

namespace octavo::app {
namespace {

TEST(RemoteMetrics, OfVllm) {
  const RemoteLoad load = read_remote_metrics(R"(# HELP vllm:num_requests_running Number of requests.
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="m"} 3.0
vllm:num_requests_running{engine="1",model_name="m"} 2.0
vllm:num_requests_waiting{engine="0",model_name="m"} 1.0
vllm:kv_cache_usage_perc{engine="0",model_name="m"} 0.25
vllm:kv_cache_usage_perc{engine="1",model_name="m"} 0.75
vllm:prefix_cache_queries_total{engine="0",model_name="m"} 1000.0
vllm:prefix_cache_hits_total{engine="0",model_name="m"} 4e2
vllm:generation_tokens_total{engine="0",model_name="m"} 77
)",
                                              "m");
  EXPECT_EQ(load.num_running, 5.0);
  EXPECT_EQ(load.num_waiting, 1.0);
  EXPECT_EQ(load.kv_usage, 0.5) << "of engines the mean";
  EXPECT_EQ(load.hit_rate(), 0.4);
  EXPECT_EQ(load.output_tokens, 77.0);
  EXPECT_FALSE(load.num_swapped) << "not told is not zero";
  EXPECT_FALSE(load.prompt_tokens);
}

TEST(RemoteMetrics, OfLlamaCppAndOlderVllm) {
  const RemoteLoad llama = read_remote_metrics(
      "llamacpp:requests_processing 2\nllamacpp:requests_deferred 0\nllamacpp:prompt_tokens_total 10\n");
  EXPECT_EQ(llama.num_running, 2.0);
  EXPECT_EQ(llama.num_waiting, 0.0) << "told to be none";
  EXPECT_FALSE(llama.kv_usage);
  EXPECT_FALSE(llama.hit_rate());
  const RemoteLoad old = read_remote_metrics(
      "vllm:gpu_cache_usage_perc{model_name=\"m\"} 0.5\nvllm:num_requests_swapped{model_name=\"m\"} 4\n");
  EXPECT_EQ(old.kv_usage, 0.5);
  EXPECT_EQ(old.num_swapped, 4.0);
}

TEST(RemoteMetrics, OtherModelsOfTheServerDoNotCount) {
  const char* const text =
      "vllm:num_requests_running{model_name=\"a\"} 3\nvllm:num_requests_running{model_name=\"b}\\\"\"} 4\n";
  EXPECT_EQ(read_remote_metrics(text, "a").num_running, 3.0);
  EXPECT_EQ(read_remote_metrics(text).num_running, 7.0);
  EXPECT_FALSE(read_remote_metrics(text, "c").num_running);
}

TEST(RemoteMetrics, NothingThatAServerSendsIsFatal) {
  for (const char* const text :
       {"", "\n\n", "vllm:num_requests_running", "vllm:num_requests_running ",
        "vllm:num_requests_running NaN", "vllm:num_requests_running +Inf", "vllm:num_requests_running{",
        "vllm:num_requests_running{a=\"} 1", "vllm:num_requests_running{a=\"\\", "{} 1", "<html>\n</html>",
        "vllm:num_requests_running 1e999"}) {
    EXPECT_FALSE(read_remote_metrics(text).knows_anything()) << text;
  }
  EXPECT_EQ(read_remote_metrics("vllm:kv_cache_usage_perc 7").kv_usage, 1.0);
}

}  // namespace
}  // namespace octavo::app
