// `octavo bench speed`: what it reports, what it refuses, and that its figures are those of their
// definitions.

#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "app/commands/hardware_counters.h"
#include "app/commands/speed_benchmark.h"
#include "tests/support/run_program.h"

namespace octavo::tests {
namespace {

using nlohmann::json;

TEST(BenchSpeed, RefusesWhatCannotBeMeasuredWithOneSentence) {
  for (const std::vector<std::string>& options :
       std::vector<std::vector<std::string>>{{"--prompt-tokens", "0"},
                                             {"--prompt-tokens", "64,0"},
                                             {"--output-tokens", "0"},
                                             {"--sequences", "0"},
                                             {"--sequences", "4097"},
                                             {"--shared-prefix-tokens", "-1"},
                                             {"--shared-prefix-tokens", "512"},
                                             {"--cached-tokens", "-1"},
                                             {"--repeat", "0"},
                                             {"--threads", "-3"},
                                             {"--prompt-tokens", "many"}}) {
    std::vector<std::string> arguments = {"bench", "speed", "--json"};
    arguments.insert(arguments.end(), options.begin(), options.end());
    const ProgramResult result = run_program(arguments);
    EXPECT_EQ(result.status, 2) << options[0] << " " << options[1];
    EXPECT_EQ(result.num_error_lines(), 1u) << result.err;
    EXPECT_NE(result.err.find(options[0]), std::string::npos) << result.err;
    EXPECT_EQ(result.out, "");
  }
}

TEST(HardwareCounters, CountWorkOrSayThatTheyCannot) {
  const app::HardwareCounters counters;
  const app::HardwareCounters::Counts begin = counters.read();
  volatile double sum = 0.0;
  for (int i = 0; i < 1'000'000; ++i) sum = sum + i;
  const app::HardwareCounters::Counts counted = app::counted_between(begin, counters.read(), 1'000'000);
  for (std::size_t i = 0; i < 2; ++i) {  // cycles and instructions; misses may well be none
    if (!counted[i].has_value()) continue;
    EXPECT_GT(*counted[i], 0.5) << app::HardwareCounters::kNames[i];
  }
}

TEST(HardwareCounters, DifferencesAreForEachOfAnAmountAndNeedBothEnds) {
  const app::HardwareCounters::Counts begin = {100.0, std::nullopt, 7.0}, end = {500.0, 3.0, 7.0};
  const app::HardwareCounters::Counts counted = app::counted_between(begin, end, 4.0);
  EXPECT_EQ(counted[0], 100.0);
  EXPECT_EQ(counted[1], std::nullopt);
  EXPECT_EQ(counted[2], 0.0);
  EXPECT_EQ(app::counted_between(begin, end, 0.0)[0], std::nullopt);
}

TEST(SpeedBenchmark, PercentilesAreOfTheValuesInOrder) {
  EXPECT_EQ(app::percentile({}, 0.5), 0.0);
  EXPECT_EQ(app::percentile({4, 1, 3, 2}, 0.5), 2.0);
  EXPECT_EQ(app::percentile({4, 1, 3, 2}, 0.99), 4.0);
}

class BenchSpeedWithModel : public testing::Test {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(default_model()))
      GTEST_SKIP() << "the default model is not installed; packaging/setup installs it";
  }
};

TEST_F(BenchSpeedWithModel, ReportsEveryCombinationAndTheMachine) {
  const ProgramResult result = run_program(
      {"bench", "speed", "--prompt-tokens", "32,64", "--output-tokens", "9", "--sequences", "1,2", "--repeat",
       "1", "--cached-tokens", "32", "--shared-prefix-tokens", "16", "--threads", "1", "--json"});
  ASSERT_EQ(result.status, 0) << result.err;
  EXPECT_EQ(result.err, "");
  const json report = json::parse(result.out);
  EXPECT_TRUE(report["machine"]["cpu"].is_string());
  EXPECT_TRUE(report["machine"]["isa"].is_string());
  EXPECT_EQ(report["machine"]["threads"], 1);
  for (const char* limit : {"read_gb_per_s", "int8_gmac_per_s", "float_gmac_per_s"})
    EXPECT_GT(report["machine"][limit].get<double>(), 0.1) << limit;
  ASSERT_EQ(report["results"].size(), 4u);
  std::vector<std::pair<int, int>> combinations;
  for (const json& entry : report["results"]) {
    combinations.emplace_back(entry["prompt_tokens"].get<int>(), entry["sequences"].get<int>());
    EXPECT_EQ(entry["output_tokens"], 9);
    EXPECT_EQ(entry["cached_tokens"], 32);
    EXPECT_EQ(entry["shared_prefix_tokens"], 16);
    for (const char* figure : {"prefill_tokens_per_s", "decode_tokens_per_s", "ttft_ms", "read_gb_per_s",
                               "decode_read_fraction", "prefill_int8_fraction", "prefill_float_fraction"}) {
      EXPECT_GT(entry[figure].get<double>(), 0.0) << figure;
    }
    EXPECT_GT(entry["peak_rss_mb"].get<double>(), 50.0);
    EXPECT_GT(entry["step_ms"]["p50"].get<double>(), 0.0);
    EXPECT_GE(entry["step_ms"]["p99"].get<double>(), entry["step_ms"]["p50"].get<double>());
    EXPECT_GT(entry["between_steps_us"].get<double>(), 0.0);
    for (const char* phase : {"prefill", "decode"}) {
      ASSERT_TRUE(entry["counters"].contains(phase));
      const json& counts = entry["counters"][phase];
      EXPECT_TRUE(counts.is_null() || counts.contains("cycles_per_token")) << counts;
    }
  }
  EXPECT_EQ(combinations, (std::vector<std::pair<int, int>>{{32, 1}, {32, 2}, {64, 1}, {64, 2}}));
}

TEST_F(BenchSpeedWithModel, TheFractionOfReadingIsWeightsOnceAndKeysAndValuesForEachStep) {
  const ProgramResult result =
      run_program({"bench", "speed", "--prompt-tokens", "512", "--shared-prefix-tokens", "256",
                   "--output-tokens", "17", "--sequences", "3", "--repeat", "1", "--threads", "1", "--json"});
  ASSERT_EQ(result.status, 0) << result.err;
  const json report = json::parse(result.out), entry = report["results"][0];
  // 96.4 MB of matrices and norms; 23,040 bytes for each token: 256 shared ones once, and those of each
  // sequence.
  const double bytes_per_step = 96.44e6 + 23040.0 * (256 + 3 * (256 + 8.5));
  const double steps_per_s = entry["decode_tokens_per_s"].get<double>() / 3;
  EXPECT_NEAR(entry["decode_read_fraction"].get<double>() * entry["read_gb_per_s"].get<double>() * 1e9 /
                  (bytes_per_step * steps_per_s),
              1.0, 0.02);
  // 106.17 M products for each token in the layers, and 28.3 M for the last token of each prompt.
  const double products_per_token = 106.17e6 + 28.31e6 * 3 / (256 + 3 * 256);
  const double rate = products_per_token * entry["prefill_tokens_per_s"].get<double>() * 1e-9;
  EXPECT_NEAR(entry["prefill_int8_fraction"].get<double>() *
                  report["machine"]["int8_gmac_per_s"].get<double>() / rate,
              1.0, 0.02);
  EXPECT_NEAR(entry["prefill_float_fraction"].get<double>() *
                  report["machine"]["float_gmac_per_s"].get<double>() / rate,
              1.0, 0.02);
}

TEST_F(BenchSpeedWithModel, ControlCEndsItWithoutAReport) {
  const ProgramResult result = run_program({"bench", "speed", "--prompt-tokens", "4096", "--sequences", "8",
                                            "--repeat", "100", "--threads", "1", "--json"},
                                           {.interrupt_after_ms = 2500});
  EXPECT_EQ(result.status, 130) << result.err;
  EXPECT_EQ(result.out, "");
}

TEST_F(BenchSpeedWithModel, MoreTokensThanTheModelTakesAreRefusedWithTheNumbers) {
  const ProgramResult result =
      run_program({"bench", "speed", "--prompt-tokens", "8100", "--output-tokens", "100", "--threads", "1"});
  EXPECT_EQ(result.status, 2) << result.err;
  EXPECT_EQ(result.num_error_lines(), 1u) << result.err;
  EXPECT_NE(result.err.find("8200"), std::string::npos) << result.err;
  EXPECT_NE(result.err.find("8192"), std::string::npos) << result.err;
}

// Of the pairs of neighbours in a running sequence's block table, those that also lie side by side in memory.
double share_of_adjacent_blocks(Engine& engine) {
  GenerationRequest request;
  request.prompt = TokenPrompt{.token_ids = std::vector<TokenId>(400, 1000)};
  request.sampling.max_tokens = 1000;
  request.sampling.ignore_eos = true;
  const RequestId id = engine.submit(std::move(request));
  std::vector<BlockId> table;
  while (table.size() < 25) {
    engine.poll(std::chrono::milliseconds(20));
    const std::shared_ptr<const KvSnapshot> snapshot = engine.kv_snapshot(SnapshotScope::kPool);
    if (snapshot != nullptr && !snapshot->sequences.empty()) table = snapshot->sequences.front().block_table;
  }
  engine.cancel(id);
  double adjacent = 0.0;
  for (std::size_t i = 1; i < table.size(); ++i)
    adjacent += std::abs(table[i].value - table[i - 1].value) == 1 ? 1.0 : 0.0;
  return adjacent / static_cast<double>(table.size() - 1);
}

TEST_F(BenchSpeedWithModel, ScatteredBlocksLieApart) {
  EngineOptions options;
  options.model = default_model().string();
  options.threads = 1;
  options.num_kv_blocks = 160;
  const app::HardwareCounters counters;
  const Result<std::unique_ptr<Engine>> fresh = Engine::create(options);
  ASSERT_TRUE(fresh.has_value()) << fresh.error().message;
  EXPECT_GT(share_of_adjacent_blocks(**fresh), 0.9);
  const Result<std::unique_ptr<Engine>> used = Engine::create(options);
  ASSERT_TRUE(used.has_value()) << used.error().message;
  app::SpeedBenchmark benchmark(**used, counters);
  ASSERT_TRUE(benchmark.scatter_blocks().has_value());
  EXPECT_LT(share_of_adjacent_blocks(**used), 0.2);
}

}  // namespace
}  // namespace octavo::tests
