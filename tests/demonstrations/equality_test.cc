// The same requests give the same tokens and log-probabilities, bit for bit, whatever the pool, the blocks,
// the chunks and the threads are, and whoever is cancelled beside them. On the default model.

#include <gtest/gtest.h>

#include <cstdlib>
#include <iterator>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "tests/demonstrations/mixed_requests.h"
#include "tests/engine/default_model.h"
#include "tests/support/sweep.h"

namespace octavo {
namespace {

constexpr int kLongestOutput = 40;

int num_requests() { return test::is_full_sweep() ? 200 : 20; }

const std::vector<GenerationRequest>& requests() {
  static const auto requests = mixed_requests(1, num_requests(), kLongestOutput);
  return requests;
}

const std::vector<RequestOutput>& expected() {
  static const std::vector<RequestOutput> outputs =
      run_together(*open_default_model({.num_kv_blocks = 4000}), requests());
  return outputs;
}

struct Variant {
  std::string name;
  EngineOptions options;
  bool swaps = false;       // the pool forces it
  bool recomputes = false;  // the pool forces it
};

class Equality : public testing::TestWithParam<Variant> {};

TEST_P(Equality, MixedRequestsGiveTheSameBits) {
  OCTAVO_NEEDS_DEFAULT_MODEL();
  const auto engine = open_default_model(GetParam().options);
  const auto outputs = run_together(*engine, requests());
  ASSERT_EQ(std::ssize(outputs), num_requests());
  EXPECT_EQ(first_difference(outputs, expected()), "");
  const KvTotals totals = engine->kv_totals();
  EXPECT_EQ(totals.preempted_swap > 0, GetParam().swaps) << totals.preempted_swap;
  EXPECT_EQ(totals.preempted_recompute > 0, GetParam().recomputes) << totals.preempted_recompute;
  if (GetParam().swaps) {
    EXPECT_GT(totals.swapped_in_blocks, 0);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Pools, Equality,
    testing::Values(
        Variant{"Swap",
                {.num_kv_blocks = 40,
                 .preemption_mode = PreemptionPolicy::kSwap,
                 .admission_reserve = AdmissionReserve::kOnePercent},
                true,
                false},
        Variant{"Recompute",
                {.num_kv_blocks = 40,
                 .preemption_mode = PreemptionPolicy::kRecompute,
                 .admission_reserve = AdmissionReserve::kOnePercent},
                false,
                true},
        Variant{
            "Both", {.num_kv_blocks = 40, .admission_reserve = AdmissionReserve::kOnePercent}, true, true},
        Variant{"RecomputeUncached",
                {.num_kv_blocks = 40,
                 .enable_prefix_caching = false,
                 .preemption_mode = PreemptionPolicy::kRecompute,
                 .admission_reserve = AdmissionReserve::kOnePercent},
                false,
                true},
        Variant{
            "Blocks8", {.block_size = 8, .num_kv_blocks = 4000, .max_num_batched_tokens = 17}, false, false},
        Variant{"Blocks32",
                {.block_size = 32, .num_kv_blocks = 20, .admission_reserve = AdmissionReserve::kOnePercent},
                true,
                true},
        Variant{"Uncached", {.num_kv_blocks = 4000, .enable_prefix_caching = false}, false, false},
        Variant{"OneThread", {.threads = 1, .num_kv_blocks = 4000}, false, false}),
    [](const testing::TestParamInfo<Variant>& info) { return info.param.name; });

// How many rows of prompts a step takes then follows from how long steps took, and is never the same twice.
TEST(Equality, ATargetThatNoStepKeepsGivesTheSameBits) {
  OCTAVO_NEEDS_DEFAULT_MODEL();
  const auto engine = Engine::create(
      {.model = model::default_model_path().string(), .num_kv_blocks = 4000, .target_step_ms = 1});
  ASSERT_TRUE(engine) << engine.error().message;
  EXPECT_EQ(first_difference(run_together(**engine, requests()), expected()), "");
}

// Cancels come in the middle of other requests' work; those give what they give alone.
TEST(Equality, CancelsChangeNobodyElse) {
  OCTAVO_NEEDS_DEFAULT_MODEL();
  const auto engine = open_default_model({.num_kv_blocks = 44});
  const std::vector<RequestId> ids = engine->submit_all(requests());
  OutputCollector collector;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    collector.expect(ids[i],
                     expected()[i].outputs.empty() ? 1 : static_cast<int>(expected()[i].outputs.size()));
  }
  simulation::Random random(3);
  std::set<RequestId> cancelled;
  std::size_t num_tokens = 0, num_tokens_at_cancel = 40;  // however many tokens an event tells
  while (!collector.done()) {
    for (const EngineEvent& event : engine->poll(std::chrono::seconds(1))) {
      collector.add(event);
      if (const auto* generated = std::get_if<TokensGenerated>(&event))
        num_tokens += generated->token_ids.size();
      if (num_tokens < num_tokens_at_cancel) continue;
      num_tokens_at_cancel = num_tokens + 40;
      const RequestId victim = ids[static_cast<std::size_t>(random.between(0, num_requests() - 1))];
      engine->cancel(victim);
      cancelled.insert(victim);
    }
  }
  std::vector<RequestOutput> rest, rest_expected;
  const std::vector<RequestOutput> outputs = collector.take();
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (cancelled.contains(ids[i])) continue;
    rest.push_back(outputs[i]);
    rest_expected.push_back(expected()[i]);
  }
  EXPECT_GT(cancelled.size(), 10u);
  EXPECT_EQ(first_difference(rest, rest_expected), "");
}

}  // namespace
}  // namespace octavo
