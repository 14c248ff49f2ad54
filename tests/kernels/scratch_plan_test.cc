#include "kernels/cpu/scratch_plan.h"

#include <gtest/gtest.h>

#include <random>

#include "kernels/backends.h"
#include "kernels/cpu/attention_work.h"
#include "kernels/step_memory.h"
#include "tests/kernels/paged_problem.h"
#include "tests/kernels/random_step.h"

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

// The widest matrix of a file with both kinds may be an unquantised one of any width.
TEST(ScratchPlan, RowsNeedNotBeWholeGroups) {
  StepShape shape = default_model_step();
  shape.feed_forward_length = 1537;
  shape.has_unquantised_weights = true;
  auto backend = create_backend({.device = "cpu", .threads = 2, .activation = Activation::kInt16}).value();
  ASSERT_TRUE(backend->reserve_step(shape));
  EXPECT_EQ(backend->scratch_bytes(), *planned_scratch_bytes(shape, Activation::kInt16, 2));
}

// Layers of unequal heads: each part is that of the layer which takes most of it.
TEST(ScratchPlan, IsThatOfTheLargestLayer) {
  StepShape shape = default_model_step();
  shape.num_heads = 8, shape.num_kv_heads = 4, shape.head_dim = 64;
  shape.other_heads = {{1, 128}};
  shape.layer_embedding_length = 700'000;
  StepShape window = shape, full = shape;
  window.other_heads = {}, full.other_heads = {};
  full.num_kv_heads = 1, full.head_dim = 128;
  const auto bytes = [](const StepShape& of) { return *planned_scratch_bytes(of, Activation::kInt16, 2); };
  EXPECT_GT(bytes(shape), bytes(window)) << "rows and partial results are the full layers'";
  EXPECT_GT(bytes(shape), bytes(full)) << "keys and values are those of layers with a window";
  StepShape without = shape;
  without.layer_embedding_length = 0;
  EXPECT_GT(bytes(shape), bytes(without));
  auto backend = create_backend({.device = "cpu", .threads = 2, .activation = Activation::kInt16}).value();
  ASSERT_TRUE(backend->reserve_step(shape));
  EXPECT_EQ(backend->scratch_bytes(), bytes(shape));
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

// The bound on partial results against plans of random steps.
TEST(ScratchPlan, HoldsThePartialResultsOfAnyStep) {
  std::mt19937_64 random(20'261'122);
  std::int64_t most_used = 0;
  for (int round = 0; round < 3'000; ++round) {
    const RandomStep step(random);
    cpu::AttentionWork work;
    cpu::plan_attention(step.batch(), step.plan, work);
    EXPECT_LE(work.num_partial_floats,
              cpu::most_partial_floats(step.plan, step.batch().num_tokens, step.max_context))
        << "round " << round;
    most_used = std::max(most_used, work.num_partial_floats);
  }
  EXPECT_GT(most_used, 0) << "some step has to be split";
}

}  // namespace
}  // namespace octavo::kernels::testing
