// Random traffic on random pools: whatever happens, every rule holds after every step (harness.h), every
// output has the tokens that it has alone, and in the end the pool is whole.
#include <gtest/gtest.h>

#include <random>

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
    }
    harness_.run_until_idle(100'000);
    EXPECT_EQ(harness_.scheduler.figures().used_blocks, 0);
    EXPECT_EQ(harness_.scheduler.figures().free_blocks + harness_.scheduler.figures().cached_blocks,
              options_.num_blocks);
  }

  const Harness& harness() const { return harness_; }

 private:
  std::int32_t below(std::int32_t bound) {
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
    return options;
  }

  // What can ever run; refusals have tests of their own. Prompts share starts.
  void submit() {
    SimulatedRequest request;
    request.n = below(3) == 0 ? 1 + below(std::min(options_.max_num_seqs, 6)) : 1;
    const std::int32_t slots = options_.num_blocks * options_.block_size;
    const std::int32_t most = std::min(options_.max_model_len - 1, std::max(1, slots / 2));
    request.prompt = random_like_tokens(static_cast<std::uint64_t>(below(3)), 1 + below(most));
    if (below(2) == 0) request.prompt.back() = below(1000);
    request.max_tokens = 1 + below(40);
    request.salt = below(8) == 0 ? "salt" : "";
    request.prompt_logprobs = below(8) == 0;
    const auto num_shared = static_cast<std::int32_t>(request.prompt.size()) / options_.block_size;
    if (num_shared + request.n > options_.num_blocks) return;
    requests_.push_back(harness_.submit(request));
  }

  void cancel() {
    if (requests_.empty()) return;
    const RequestId request_id =
        requests_[static_cast<std::size_t>(below(static_cast<std::int32_t>(requests_.size())))];
    if (below(2) == 0) {
      harness_.abort(request_id);
      return;
    }
    std::vector<SequenceId> open;
    for (const SequenceSnapshot& sequence : harness_.scheduler.snapshot().sequences) {
      if (sequence.request_id == request_id) open.push_back(sequence.sequence_id);
    }
    if (!open.empty())
      harness_.finish_early(open[static_cast<std::size_t>(below(static_cast<std::int32_t>(open.size())))]);
  }

  std::mt19937 random_;
  const SchedulerOptions options_;
  Harness harness_;
  std::vector<RequestId> requests_;
};

TEST(SchedulerProperty, EveryRuleHoldsUnderRandomTraffic) {
  const unsigned first_seed = test_seed();
  std::int64_t num_preempted = 0, num_copies = 0, num_evicted = 0, num_hits = 0, num_out_of_memory = 0;
  std::size_t num_outputs = 0;
  for (unsigned seed = first_seed; seed < first_seed + 300; ++seed) {
    SCOPED_TRACE("--gtest_random_seed=" + std::to_string(seed));
    Traffic traffic(seed);
    traffic.run();
    if (HasFailure()) return;
    const KvTotals& totals = traffic.harness().scheduler.totals();
    num_preempted += totals.preempted_recompute;
    num_copies += totals.cow_copies;
    num_evicted += totals.evicted_cached_blocks;
    num_hits += totals.prefix_hit_tokens;
    num_out_of_memory += traffic.harness().num_out_of_memory;
    num_outputs += traffic.harness().outputs.size();
  }
  // The traffic must have met what it is here to try.
  EXPECT_GT(num_preempted, 100);
  EXPECT_GT(num_copies, 100);
  EXPECT_GT(num_evicted, 100);
  EXPECT_GT(num_hits, 100);
  EXPECT_GT(num_out_of_memory, 10);
  EXPECT_GT(num_outputs, 1000u);
}

}  // namespace
}  // namespace octavo::scheduler
