// Poisson arrivals on simulated hardware: by hand where that is possible, and beside a program that shares no
// code with ours.

#include "engine/experiments/serving.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>

#include "engine/experiments/experiment_parts.h"
#include "engine/experiments/recorded_beams.h"
#include "tests/experiments/experiment_data.h"
#include "tests/support/paths.h"

namespace octavo::paper {
namespace {

class FixedRequests final : public RequestSource {
 public:
  explicit FixedRequests(std::vector<RequestLengths> lengths) : lengths_(std::move(lengths)) {}
  ScriptedRequest draw(UniformStream&) const override {
    return {.lengths = lengths_[next_++ % lengths_.size()]};
  }

 private:
  std::vector<RequestLengths> lengths_;
  mutable std::size_t next_ = 0;
};

Platform one_a100() { return {kA100x1, kOpt13B, kPaperCosts}; }

double decode_ms(std::int64_t num_rows, std::int64_t num_context_tokens) {
  return 1e3 * step_time(one_a100(), {.num_rows = num_rows,
                                      .num_sampled = num_rows,
                                      .num_requests = num_rows,
                                      .num_context_tokens = num_context_tokens})
                   .total_s();
}

// Mean requests = requests/s x tokens x seconds a step: figure 13a, its rates, and the means of the workload.
TEST(SimulatedHardware, TakesTheStepTimesThatThePapersFiguresImply) {
  EXPECT_NEAR(decode_ms(30, 14'000), 1e3 * 30.42 / (2.0 * 338), 0.15 * 45);
  EXPECT_NEAR(decode_ms(7, 3'300), 1e3 * 7.00 / (0.75 * 338), 0.15 * 28);
  EXPECT_NEAR(decode_ms(132, 11'000), 1e3 * 132.44 / (30.0 * 58.45), 0.15 * 75);
}

// What vLLM's first users measured of one sequence of a model of 13 billion parameters on an A100: 40 to 45
// tokens/s.
TEST(SimulatedHardware, DecodesOneSequenceAsFastAsWasMeasured) {
  EXPECT_GT(1e3 / decode_ms(1, 500), 40.0);
  EXPECT_LT(1e3 / decode_ms(1, 500), 46.0);
}

TEST(SimulatedHardware, ReadsWeightsOnceAndMultipliesWhatIsMore) {
  const auto linear = [](std::int64_t rows) { return step_time(one_a100(), {.num_rows = rows}).linear_s; };
  EXPECT_EQ(linear(1), linear(100));
  EXPECT_GT(linear(2'000), 2.0 * linear(100));
  EXPECT_EQ(step_time(one_a100(), {}).total_s(), 0.0);
}

TEST(Serving, OneRequestTakesItsStepsAndNothingElse) {
  const FixedRequests requests({{100, 3}});
  ServingSetup setup =
      serving_setup(kA100x1, kOpt13B, papers_policy(MemoryManager::kPaged, kSlots13B), requests, {});
  setup.rate = 0.0;
  setup.num_requests = 1;
  const ServingFigures figures = run_serving(setup);
  const double prompt_s =
      step_time(one_a100(),
                {.num_rows = 100, .num_sampled = 1, .num_requests = 1, .num_prompt_pairs = 100 * 101 / 2})
          .total_s();
  const double steps_s = prompt_s + 1e-3 * (decode_ms(1, 101) + decode_ms(1, 102));
  EXPECT_NEAR(figures.normalised_latency, steps_s / 3, 1e-9);
  EXPECT_NEAR(figures.requests_per_s, 1.0 / steps_s, 1e-6);
  EXPECT_EQ(figures.num_requests, 1);
}

TEST(Serving, StaticBatchesAreRectanglesWhoseAnswersComeAtTheEnd) {
  const FixedRequests requests({{100, 3}, {40, 5}});
  ServingSetup setup = static_setup(kA100x1, kOpt13B, kSlots13B, 2, kFasterTransformerCosts, requests, {});
  setup.rate = 0.0;
  setup.num_requests = 2;
  const ServingFigures figures = run_serving(setup);
  double end_s =
      step_time(setup.platform,
                {.num_rows = 200, .num_sampled = 2, .num_requests = 2, .num_prompt_pairs = 2 * 100 * 101 / 2})
          .total_s();
  for (int i = 1; i <= 4; ++i) {
    end_s +=
        step_time(setup.platform,
                  {.num_rows = 2, .num_sampled = 2, .num_requests = 2, .num_context_tokens = 2 * (100 + i)})
            .total_s();
  }
  EXPECT_NEAR(figures.normalised_latency, (end_s / 3 + end_s / 5) / 2, 1e-9);
}

// Static batches have no knee: what they sustain depends on the latency at which it is read.
TEST(Serving, TheSustainedRateIsThatOfTheLatencyAskedFor) {
  ServingSetup setup =
      static_setup(kA100x1, kOpt13B, kSlots13B, 5, kFasterTransformerCosts, sharegpt_requests(), {});
  const double at_quarter = find_sustained_rate(setup, 0.2, {}, 0.25).sustained;
  const double at_half = find_sustained_rate(setup, 0.2).sustained;
  EXPECT_GT(at_quarter, 0.0);
  EXPECT_LT(at_quarter, 0.9 * at_half);
}

TEST(Serving, SharedPrefixesAreComputedOnce) {
  const Translations requests(341);
  scheduler::SchedulerOptions policy = papers_policy(MemoryManager::kPaged, kSlots13B);
  const auto rate = [&](bool shares) {
    policy.enable_prefix_caching = shares;
    ServingSetup setup = serving_setup(kA100x1, kLlama13B, policy, requests, {});
    setup.rate = 0.0;
    setup.num_requests = 200;
    return run_serving(setup).requests_per_s;
  };
  EXPECT_GT(rate(true), 1.5 * rate(false));
}

TEST(RecordedBeams, AreTheGoldenOnes) {
  for (const std::int32_t width : {2, 4, 6}) {
    const RecordedBeams golden = recorded_beams(width);
    const DefaultModelBeams ours(width);
    for (std::uint64_t request = 0; request < 7; ++request) {
      const auto a = golden.start(request), b = ours.start(request);
      for (int step = 0; step < 1'100; ++step) ASSERT_EQ(a->next_parents(), b->next_parents()) << width;
    }
  }
}

// simulate_serving.py, for a tenth of the time that `octavo experiment` simulates.
TEST(Serving, AgreesWithinThreePercentWithAProgramThatSharesNoCode) {
  const ExperimentOptions tenth{.time_share = 0.1};
  const std::string command =
      "python3 " + (test::source_folder() / "tests/experiments/simulate_serving.py").string() + " 0.1";
  std::FILE* const pipe = popen(command.c_str(), "r");
  ASSERT_NE(pipe, nullptr);
  std::string output(1 << 14, '\0');
  output.resize(std::fread(output.data(), 1, output.size(), pipe));
  ASSERT_EQ(pclose(pipe), 0);
  const nlohmann::json theirs = nlohmann::json::parse(output, nullptr, /*allow_exceptions=*/false);
  ASSERT_TRUE(theirs.is_object()) << output;
  const std::map<std::string, MemoryManager> managers = {{"paged", MemoryManager::kPaged},
                                                         {"Orca (Oracle)", MemoryManager::kOrcaOracle},
                                                         {"Orca (Pow2)", MemoryManager::kOrcaPow2},
                                                         {"Orca (Max)", MemoryManager::kOrcaMax}};
  for (const auto& [name, manager] : managers) {
    SCOPED_TRACE(name);
    ServingSetup setup =
        serving_setup(kA100x1, kOpt13B, papers_policy(manager, kSlots13B), sharegpt_requests(), tenth);
    const double expected_rate = theirs["figure-12"][name].get<double>();
    EXPECT_NEAR(find_sustained_rate(setup, 1.0).sustained, expected_rate, 0.03 * expected_rate);
    setup.rate = 2.0;
    setup.seconds *= 3.0;
    const double expected_batch = theirs["figure-13"][name].get<double>();
    EXPECT_NEAR(run_serving(setup).batched_requests, expected_batch, 0.03 * expected_batch);
  }
}

}  // namespace
}  // namespace octavo::paper
