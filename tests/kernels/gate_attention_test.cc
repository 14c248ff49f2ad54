// Gates on what attention gives, on every instruction set.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "kernels/backends.h"
#include "kernels/step_memory.h"
#include "tests/kernels/operation_runs.h"

namespace octavo::kernels::testing {
namespace {

constexpr std::int64_t kWidth = 256, kColumns = 3 * 70;  // the last panel is cut

class GateAttention : public ::testing::TestWithParam<cpu::InstructionSet> {};

INSTANTIATE_TEST_SUITE_P(EveryInstructionSet, GateAttention,
                         ::testing::ValuesIn(cpu::usable_instruction_sets()),
                         [](const auto& info) { return std::string(cpu::instruction_set_name(info.param)); });

// Rows first_row and up.
std::vector<float> run(Backend& backend, TensorType type, std::int64_t first_row, std::int64_t num_rows) {
  const auto matrix = backend.prepare_matrix(random_matrix(type, kColumns, kWidth, 20).source).value();
  const std::vector<float> norm = norm_weight(21, kWidth),
                           x = some_rows(22, num_rows, kWidth, 3.0f, 0.0f, first_row);
  std::vector<float> attention = some_rows(23, num_rows, kColumns, 1.0f, 0.0f, first_row);
  backend.gate_attention({.norm = {.weight = norm, .epsilon = 1e-6f}, .matrix = matrix.get()},
                         view(x, kWidth), view(attention, kColumns));
  return attention;
}

TEST_P(GateAttention, IsThatOfTheReferenceForEveryTypeAndActivation) {
  for (const TensorType type : kEveryTensorType) {
    for (const Activation activation : {Activation::kF32, Activation::kInt8, Activation::kInt16}) {
      const bool is_rounded = traits_of(type).quantised && activation != Activation::kF32;
      const double bound = !is_rounded ? 2e-5 : activation == Activation::kInt8 ? 1e-2 : 5e-5;
      for (const std::int64_t num_rows : {1, 11}) {
        SCOPED_TRACE(std::string(traits_of(type).name) + ", " + std::to_string(num_rows) + " rows");
        const std::vector<float> got = run(*cpu_backend(GetParam(), 2, activation), type, 0, num_rows);
        EXPECT_LE(relative_difference(got, run(*reference_backend(activation), type, 0, num_rows)), bound);
        const std::vector<float> twin =
            run(*cpu_backend(cpu::InstructionSet::kPortable, 1, activation), type, 0, num_rows);
        EXPECT_TRUE(same_bits(got.data(), twin.data(), static_cast<std::int64_t>(got.size())));
      }
    }
  }
}

TEST_P(GateAttention, ARowIsTheSameBitsInAnyBatchOnAnyNumberOfThreads) {
  for (const TensorType type : {TensorType::kQ4_K, TensorType::kF16}) {
    const std::vector<float> all = run(*cpu_backend(GetParam(), 1, Activation::kInt16), type, 0, 40);
    for (const std::int32_t threads : {1, 2, 3}) {
      for (const std::int64_t together : {1, 7, 40}) {
        for (std::int64_t first = 0; first + together <= 40; first += 8) {
          const std::vector<float> some =
              run(*cpu_backend(GetParam(), threads, Activation::kInt16), type, first, together);
          ASSERT_TRUE(same_bits(some.data(), all.data() + first * kColumns, together * kColumns))
              << together << " rows from " << first << ", " << threads << " threads";
        }
      }
    }
  }
}

TEST(GateAttentionMemory, IsWhatWasPlanned) {
  StepShape shape;
  shape.num_rows = 50;
  shape.num_logits_rows = 1;
  shape.max_context_len = 64;
  shape.embedding_length = kWidth;
  shape.num_heads = shape.num_kv_heads = 1;
  shape.head_dim = 640;  // wider than everything else
  shape.vocabulary_size = 100;
  shape.has_unquantised_weights = true;
  const std::int64_t without = *planned_scratch_bytes(shape, Activation::kF32, 2);
  shape.has_attention_gates = true;
  const auto backend =
      create_backend({.device = "cpu", .threads = 2, .activation = Activation::kF32}).value();
  ASSERT_TRUE(backend->reserve_step(shape));
  const std::int64_t planned = backend->scratch_bytes();
  EXPECT_EQ(planned, *planned_scratch_bytes(shape, Activation::kF32, 2));
  EXPECT_GT(planned, without);
  run(*backend, TensorType::kF32, 0, 50);
  EXPECT_EQ(backend->scratch_bytes(), planned);
}

}  // namespace
}  // namespace octavo::kernels::testing
