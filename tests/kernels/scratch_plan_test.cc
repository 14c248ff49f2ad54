#include "kernels/cpu/scratch_plan.h"

#include <gtest/gtest.h>

#include <random>

#include "kernels/backends.h"
#include "kernels/cpu/attention_work.h"
#include "kernels/step_memory.h"
#include "tests/kernels/paged_problem.h"

namespace octavo::kernels::testing {
namespace {

StepShape default_model_step() {
  StepShape shape;
  shape.num_rows = 96;
  shape.num_logits_rows = 64;
  shape.max_context_len = 2048;
  shape.embedding_length = 576;
  shape.feed_forward_length = 1536;
  shape.num_heads = 9;
  shape.num_kv_heads = 3;
  shape.head_dim = 64;
  shape.vocabulary_size = 49'152;
  shape.has_quantised_weights = true;
  return shape;
}

TEST(ScratchPlan, IsWhatTheBackendHoldsToTheByte) {
  for (const Activation activation : {Activation::kF32, Activation::kInt8, Activation::kInt16}) {
    for (const std::int32_t threads : {1, 2, 3}) {
      for (const bool is_mixed : {false, true}) {
        StepShape shape = default_model_step();
        shape.has_unquantised_weights = is_mixed;
        auto backend =
            create_backend({.device = "cpu", .threads = threads, .activation = activation}).value();
        EXPECT_EQ(backend->scratch_bytes(), 0);
        ASSERT_TRUE(backend->reserve_step(shape));
        EXPECT_EQ(backend->scratch_bytes(), *planned_scratch_bytes(shape, activation, threads));
      }
    }
  }
}

TEST(ScratchPlan, GrowsWithRowsContextAndThreads) {
  const StepShape shape = default_model_step();
  const auto bytes = [](const StepShape& of, std::int32_t threads) {
    return *planned_scratch_bytes(of, Activation::kInt16, threads);
  };
  StepShape taller = shape, longer = shape;
  taller.num_rows *= 2;
  longer.max_context_len *= 2;
  EXPECT_GT(bytes(taller, 2), bytes(shape, 2));
  EXPECT_GT(bytes(longer, 2), bytes(shape, 2));
  EXPECT_GT(bytes(shape, 3), bytes(shape, 2));
}

// The bound on partial results against plans of random steps: many sequences, long and short, some that start
// alike.
TEST(ScratchPlan, HoldsThePartialResultsOfAnyStep) {
  std::mt19937_64 random(20'261'122);
  const auto below = [&](std::int64_t end) {
    return static_cast<std::int32_t>(random() % static_cast<std::uint64_t>(end));
  };
  std::int64_t most_used = 0;
  for (int round = 0; round < 3'000; ++round) {
    const std::int32_t block_size = 16, num_sequences = 1 + below(12), max_context = 1 + below(6'000);
    std::vector<std::int32_t> positions, query_start = {0}, context_lens;
    const std::int32_t max_blocks = (max_context + block_size - 1) / block_size;
    std::vector<std::int32_t> tables;
    for (std::int32_t i = 0; i < num_sequences; ++i) {
      const std::int32_t context = 1 + below(max_context),
                         rows = 1 + below(std::min(context, below(3) == 0 ? 300 : 2));
      for (std::int32_t row = 0; row < rows; ++row) positions.push_back(context - rows + row);
      query_start.push_back(static_cast<std::int32_t>(positions.size()));
      context_lens.push_back(context);
      const std::int32_t num_shared = below(2) == 0 ? 0 : below(max_blocks + 1);
      for (std::int32_t block = 0; block < max_blocks; ++block)
        tables.push_back(block < num_shared ? block : 100'000 * (i + 1) + block);
    }
    const PagedBatch batch{.num_tokens = static_cast<std::int32_t>(positions.size()),
                           .num_sequences = num_sequences,
                           .positions = positions,
                           .slot_mapping = {},
                           .query_start = query_start,
                           .context_lens = context_lens,
                           .block_tables = tables,
                           .max_blocks = max_blocks,
                           .rotations = {}};
    const cpu::AttentionPlan plan{.block_size = block_size,
                                  .num_kv_heads = 1 + below(8),
                                  .group_size = 1 + below(8),
                                  .num_threads = 1 + below(8),
                                  .floats_per_row = 1 + below(500)};
    cpu::AttentionWork work;
    cpu::plan_attention(batch, plan, work);
    EXPECT_LE(work.num_partial_floats, cpu::most_partial_floats(plan, batch.num_tokens, max_context))
        << "round " << round;
    most_used = std::max(most_used, work.num_partial_floats);
  }
  EXPECT_GT(most_used, 0) << "some step has to be split";
}

}  // namespace
}  // namespace octavo::kernels::testing
