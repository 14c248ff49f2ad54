// Random traffic on random pools: whatever happens, every rule holds after every step (harness.h), every
// output has the tokens that it has alone, and in the end the pool is whole.
#include <gtest/gtest.h>

#include <concepts>
#include <random>
#include <utility>

#include "tests/block/seed.h"
#include "tests/scheduler/harness.h"

namespace octavo::scheduler {
namespace {

class Traffic {
 public:
  explicit Traffic(unsigned seed) : random_(seed), options_(draw_options()), harness_(options_) {}

  void run() {
    const int num_steps = 20 + below(120);
    const int percent_failing = below(3) == 0 ? below(20) : 0;
    const int percent_cancelled = below(2) == 0 ? below(12) : 0;
    for (int i = 0; i < num_steps && !::testing::Test::HasFailure(); ++i) {
      if (below(3) == 0) submit();
      if (below(100) < percent_cancelled) cancel();
      harness_.step(below(100) < percent_failing);
      if (below(60) == 0) harness_.scheduler.reset_prefix_cache();
      if (below(60) == 0) harness_.scheduler.release_pins();
      if (below(10) == 0) {
        harness_.scheduler.set_preemption_costs({.us_per_swapped_block = 1.0 + below(20),
                                                 .us_per_prefilled_token = static_cast<double>(below(5))});
      }
    }
    harness_.run_until_idle(100'000);
    EXPECT_EQ(harness_.scheduler.figures().used_blocks, 0);
    EXPECT_EQ(harness_.scheduler.figures().free_blocks + harness_.scheduler.figures().cached_blocks,
              options_.num_blocks);
  }

  const Harness& harness() const { return harness_; }

 private:
  std::int32_t below(std::integral auto bound) {
    return static_cast<std::int32_t>(random_() % static_cast<unsigned>(bound));
  }

  SchedulerOptions draw_options() {
    const std::int32_t block_sizes[] = {1, 2, 4, 8, 16};
    SchedulerOptions options;
    options.block_size = block_sizes[below(5)];
    options.num_blocks = 4 + below(60);
    options.bytes_per_block = 64;
    options.max_num_seqs = 1 + below(12);
    options.max_num_batched_tokens = 1 + below(below(2) == 0 ? 8 : 64);
    options.max_model_len = 8 + below(120);
    options.enable_prefix_caching = below(4) != 0;
    options.num_host_blocks = below(3) == 0 ? 0 : below(options.num_blocks);
    options.preemption_mode = static_cast<PreemptionPolicy>(below(4));
    options.admit_after_preemption = static_cast<AdmissionAfterPreemption>(below(2));
    options.reserve_block_per_sequence = below(3) != 0;
    options.prefill_first = below(8) == 0;
    if (below(4) == 0) options.batching_policy = static_cast<BatchingPolicy>(below(3));
    options.speculative = static_cast<Speculation>(below(2));
    if (below(6) == 0) options.memory_manager = static_cast<MemoryManager>(below(4));
    return options;
  }

  bool is_paged() const { return options_.memory_manager == MemoryManager::kPaged; }

  // The least blocks of a request; a contiguous manager may reserve the model's length for each output.
  bool can_ever_run(const SimulatedRequest& request) const {
    const std::int32_t num_outputs = request.beam_width.value_or(request.n);
    const auto num_shared = static_cast<std::int32_t>(request.prompt.size()) / options_.block_size;
    if (is_paged()) return num_shared + num_outputs <= options_.num_blocks;
    std::int32_t run = 1;
    while (run * options_.block_size < options_.max_model_len) run *= 2;
    return num_outputs * run <= options_.num_blocks / run * run;
  }

  // Refusals have tests of their own. Prompts share starts.
  void submit() {
    SimulatedRequest request;
    request.n = below(3) == 0 ? 1 + below(std::min(options_.max_num_seqs, 6)) : 1;
    if (is_paged() && below(4) == 0) request.beam_width = std::exchange(request.n, 1);
    const std::int32_t slots = options_.num_blocks * options_.block_size;
    const std::int32_t most = std::min(options_.max_model_len - 1, std::max(1, slots / 2));
    request.prompt = random_like_tokens(static_cast<std::uint64_t>(below(3)), 1 + below(most));
    if (below(2) == 0)
      request.prompt[static_cast<std::size_t>(below(std::ssize(request.prompt)))] = below(1000);
    request.max_tokens = 1 + below(40);
    request.salt = below(8) == 0 ? "salt" : "";
    request.prompt_logprobs = below(8) == 0;
    request.retention = static_cast<RetentionClass>(below(4));
    request.num_system_tokens = below(2) == 0 ? below(most) : 0;
    request.period = below(2) == 0 ? 1 + below(6) : 0;
    if (can_ever_run(request)) requests_.push_back(harness_.submit(request));
  }

  void cancel() {
    if (requests_.empty()) return;
    const RequestId request_id =
        requests_[static_cast<std::size_t>(below(static_cast<std::int32_t>(requests_.size())))];
    harness_.abort(request_id);
  }

  std::mt19937 random_;
  const SchedulerOptions options_;
  Harness harness_;
  std::vector<RequestId> requests_;
};

TEST(SchedulerProperty, EveryRuleHoldsUnderRandomTraffic) {
  const unsigned first_seed = test_seed();
  KvTotals met;
  std::int64_t num_out_of_memory = 0;
  std::size_t num_outputs = 0;
  std::int32_t num_draft_tokens = 0, num_accepted_tokens = 0;
  for (unsigned seed = first_seed; seed < first_seed + 300; ++seed) {
    SCOPED_TRACE("--gtest_random_seed=" + std::to_string(seed));
    Traffic traffic(seed);
    traffic.run();
    if (HasFailure()) return;
    const KvTotals& totals = traffic.harness().scheduler.totals();
    met.preempted_recompute += totals.preempted_recompute;
    met.preempted_swap += totals.preempted_swap;
    met.swapped_out_blocks += totals.swapped_out_blocks;
    met.swapped_in_blocks += totals.swapped_in_blocks;
    met.cow_copies += totals.cow_copies;
    met.partial_copies += totals.partial_copies;
    met.evicted_cached_blocks += totals.evicted_cached_blocks;
    met.prefix_hit_tokens += totals.prefix_hit_tokens;
    num_out_of_memory += traffic.harness().num_out_of_memory;
    num_outputs += traffic.harness().outputs.size();
    num_draft_tokens += traffic.harness().num_draft_tokens;
    num_accepted_tokens += traffic.harness().num_accepted_tokens;
  }
  // The traffic must have met what it is here to try.
  EXPECT_GT(met.preempted_recompute, 100);
  EXPECT_GT(met.preempted_swap, 20);
  EXPECT_GT(met.swapped_in_blocks, 100);
  EXPECT_LT(met.swapped_in_blocks, met.swapped_out_blocks);
  EXPECT_GT(met.cow_copies, 100);
  EXPECT_GT(met.partial_copies, 100);
  EXPECT_GT(met.evicted_cached_blocks, 100);
  EXPECT_GT(met.prefix_hit_tokens, 100);
  EXPECT_GT(num_out_of_memory, 10);
  EXPECT_GT(num_outputs, 1000u);
  EXPECT_GT(num_accepted_tokens, 1000);
  EXPECT_GT(num_draft_tokens, num_accepted_tokens + 300);
}

}  // namespace
}  // namespace octavo::scheduler
