// The row that a guess of next tokens begins with, on every instruction set.
#include <gtest/gtest.h>

#include <numeric>
#include <string>
#include <vector>

#include "kernels/backends.h"
#include "kernels/step_memory.h"
#include "tests/kernels/operation_runs.h"

namespace octavo::kernels::testing {
namespace {

constexpr std::int64_t kWidth = 256;
constexpr std::int64_t kHiddenRows = 30;

class JoinNextTokens : public ::testing::TestWithParam<cpu::InstructionSet> {};

INSTANTIATE_TEST_SUITE_P(EveryInstructionSet, JoinNextTokens,
                         ::testing::ValuesIn(cpu::usable_instruction_sets()),
                         [](const auto& info) { return std::string(cpu::instruction_set_name(info.param)); });

// Token first_token + i behind hidden row rows[i].
std::vector<float> run(Backend& backend, TensorType type, std::int64_t first_token,
                       const std::vector<std::int32_t>& rows) {
  const auto matrix = backend.prepare_matrix(random_matrix(type, kWidth, 2 * kWidth, 30).source).value();
  const std::vector<float> token_norm = norm_weight(31, kWidth), output_norm = norm_weight(32, kWidth),
                           hidden_norm = norm_weight(33, kWidth);
  const std::vector<float> tokens = some_rows(34, std::ssize(rows), kWidth, 2.0f, 0.0f, first_token);
  const std::vector<float> x = some_rows(35, kHiddenRows, kWidth, 3.0f);
  std::vector<float> out(tokens.size());
  backend.join_next_tokens({.token_norm = {.weight = token_norm, .epsilon = 1e-6f},
                            .output_norm = {.weight = output_norm, .epsilon = 1e-5f},
                            .hidden_norm = {.weight = hidden_norm, .epsilon = 0.25f},
                            .matrix = matrix.get()},
                           view(tokens, kWidth), view(x, kWidth), rows, view(out, kWidth));
  return out;
}

TEST_P(JoinNextTokens, IsThatOfTheReferenceForEveryTypeAndActivation) {
  for (const TensorType type : kEveryTensorType) {
    for (const Activation activation : {Activation::kF32, Activation::kInt8, Activation::kInt16}) {
      const bool is_rounded = traits_of(type).quantised && activation != Activation::kF32;
      const double bound = !is_rounded ? 2e-5 : activation == Activation::kInt8 ? 1e-2 : 5e-5;
      for (const std::vector<std::int32_t>& rows :
           {std::vector<std::int32_t>{7}, std::vector<std::int32_t>{0, 5, 6, 29, 3, 3}}) {
        SCOPED_TRACE(std::string(traits_of(type).name) + ", " + std::to_string(rows.size()) + " rows");
        const std::vector<float> got = run(*cpu_backend(GetParam(), 2, activation), type, 4, rows);
        EXPECT_LE(relative_difference(got, run(*reference_backend(activation), type, 4, rows)), bound);
        const std::vector<float> twin =
            run(*cpu_backend(cpu::InstructionSet::kPortable, 1, activation), type, 4, rows);
        EXPECT_TRUE(same_bits(got.data(), twin.data(), static_cast<std::int64_t>(got.size())));
      }
    }
  }
}

TEST_P(JoinNextTokens, ARowIsTheSameBitsInAnyBatchOnAnyNumberOfThreads) {
  std::vector<std::int32_t> rows(kHiddenRows);
  std::iota(rows.rbegin(), rows.rend(), 0);
  for (const TensorType type : {TensorType::kQ4_K, TensorType::kF16}) {
    const std::vector<float> all = run(*cpu_backend(GetParam(), 1, Activation::kInt16), type, 0, rows);
    for (const std::int32_t threads : {1, 2, 3}) {
      for (std::int32_t first = 0; first < kHiddenRows; first += 5) {
        const std::vector<float> some = run(*cpu_backend(GetParam(), threads, Activation::kInt16), type,
                                            first, {rows.begin() + first, rows.begin() + first + 5});
        ASSERT_TRUE(same_bits(some.data(), all.data() + first * kWidth, 5 * kWidth)) << "from " << first;
      }
    }
  }
}

TEST(JoinNextTokensMemory, IsWhatWasPlanned) {
  for (const TensorType type : {TensorType::kF32, TensorType::kQ8_0}) {
    StepShape shape;
    shape.num_rows = 50;
    shape.num_logits_rows = 1;
    shape.max_context_len = 64;
    shape.embedding_length = kWidth;
    shape.num_heads = shape.num_kv_heads = 1;
    shape.head_dim = 32;
    shape.vocabulary_size = 100;
    shape.has_quantised_weights = shape.has_unquantised_weights = true;
    const std::int64_t without = *planned_scratch_bytes(shape, Activation::kInt16, 2);
    shape.joins_next_tokens = true;
    const auto backend =
        create_backend({.device = "cpu", .threads = 2, .activation = Activation::kInt16}).value();
    ASSERT_TRUE(backend->reserve_step(shape));
    const std::int64_t planned = backend->scratch_bytes();
    EXPECT_EQ(planned, *planned_scratch_bytes(shape, Activation::kInt16, 2));
    EXPECT_GT(planned, without);
    run(*backend, type, 0, std::vector<std::int32_t>(50, 3));
    EXPECT_EQ(backend->scratch_bytes(), planned);
  }
}

}  // namespace
}  // namespace octavo::kernels::testing
