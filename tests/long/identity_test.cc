// A request to the default model, run OCTAVO_IDENTITY_RUNS times (a few, where the variable is
// not set) in the middle of others that are never the same, in a pool too small for them: one
// output, every reported number equal.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <utility>
#include <vector>

#include "tests/demonstrations/mixed_requests.h"
#include "tests/engine/default_model.h"

namespace octavo {
namespace {

std::uint64_t num_runs() {
  const char* const chosen = std::getenv("OCTAVO_IDENTITY_RUNS");
  return chosen != nullptr ? std::strtoull(chosen, nullptr, 10) : 5;
}

// The most alternatives that a request may ask for.
constexpr std::int32_t kMostLogprobs = 1024;

TEST(Identity, ARequestAmongRandomOthersGivesOneOutput) {
  OCTAVO_NEEDS_DEFAULT_MODEL();
  const auto engine = open_default_model({.num_kv_blocks = 48,
                                          .max_num_batched_tokens = 96,
                                          .admission_reserve = AdmissionReserve::kOnePercent});
  simulation::Random random(1);
  GenerationRequest request = mixed_requests(2, 4, 8)[3];  // sampled, with penalties
  request.sampling.max_tokens = 8;
  request.sampling.ignore_eos = true;
  request.sampling.logprobs = kMostLogprobs;
  const RequestOutput first = run_alone(*engine, request);
  ASSERT_FALSE(first.error);
  for (std::uint64_t run = 0; run < num_runs(); ++run) {
    std::vector<GenerationRequest> together = mixed_requests(run, random.between(0, 5), 16);
    const auto index = static_cast<std::size_t>(random.between(0, static_cast<int>(together.size())));
    together.insert(together.begin() + static_cast<std::ptrdiff_t>(index), request);
    if (random.chance(0.2)) engine->reset_prefix_cache();
    const auto outputs = run_together(*engine, std::move(together));
    ASSERT_EQ(first_difference({outputs[index]}, {first}), "") << "run " << run;
  }
  const KvTotals totals = engine->kv_totals();
  std::printf("%llu runs, %lld preemptions, %lld prompt tokens found in the cache\n",
              static_cast<unsigned long long>(num_runs()),
              static_cast<long long>(totals.preempted_swap + totals.preempted_recompute),
              static_cast<long long>(totals.prefix_hit_tokens));
}

}  // namespace
}  // namespace octavo
