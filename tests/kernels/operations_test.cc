// The operations of each instruction set: the claims of operation_claims.h against the reference, and bit for
// bit among the instruction sets; and what only this backend promises.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "kernels/cpu/isa.h"
#include "tests/kernels/operation_claims.h"
#include "tests/support/sweep.h"

namespace octavo::kernels::testing {
namespace {

constexpr Activation kEveryActivation[] = {Activation::kF32, Activation::kInt8, Activation::kInt16};

// Float activations: rounding of float sums. 8-bit activations: the float that is rounded may differ in its
// last bit from the reference's and fall on the other side of a half, one step of 127 in one of the columns;
// against sums of 32 columns and more that stays below a percent. 16-bit ones: the same with a step of 32639.
// Feed-forward layers: a product of two sums. Projections: the same input, so the same rounding.
const std::vector<Bound> kBounds = {
    {Claim::kAttentionInput, 5e-6, {}, TensorType::kF16},
    {Claim::kAttentionInput, 5e-6, Activation::kF32},
    {Claim::kAttentionInput, 1e-2, Activation::kInt8},
    {Claim::kAttentionInput, 5e-5, Activation::kInt16},
    {Claim::kProjectResidual, 5e-6},
    {Claim::kFeedForwardInput, 2e-5, {}, TensorType::kF32},
    {Claim::kFeedForwardInput, 2e-5, {}, TensorType::kBF16},
    {Claim::kFeedForwardInput, 2e-5, Activation::kF32},
    {Claim::kFeedForwardInput, 4e-2, Activation::kInt8},
    {Claim::kFeedForwardInput, 2e-4, Activation::kInt16},
    {Claim::kLogits, 5e-6, Activation::kF32},
    {Claim::kLogits, 1e-2, Activation::kInt8},
    {Claim::kLogits, 5e-5, Activation::kInt16},
    {Claim::kEmbedding, 5e-6},
    {Claim::kHeadParts, 5e-6},
    {Claim::kPostNorm, 5e-6},
    {Claim::kFeedForwardKinds, 5e-5},  // what is left of numbers around 100
    {Claim::kCappedLogits, 5e-6},
};

std::vector<AttentionInputCase> attention_inputs() {
  std::vector<AttentionInputCase> cases;
  for (const Activation activation : kEveryActivation) {
    for (const Shape& shape : {smollm2_shape(), odd_shape(), one_tiny_head()}) {
      for (const TensorType type : {TensorType::kQ4_1, TensorType::kF16}) {
        for (const KvType kv_type : kEveryKvType) {
          for (const std::int32_t block_size : {3, 16}) {
            cases.push_back({shape,
                             activation,
                             type,
                             kv_type,
                             block_size,
                             /*biases=*/block_size == 3,
                             {{1, 0, 9}, {2, 15, 1}, {3, 30, 4}}});
          }
        }
      }
    }
  }
  return test::some_of(cases, 5);
}

std::vector<ProductCase> products() {
  std::vector<ProductCase> cases;
  for (const Activation activation : kEveryActivation) {
    for (const Shape& shape : {smollm2_shape(), odd_shape()}) {
      for (const TensorType type : {TensorType::kQ4_1, TensorType::kBF16, TensorType::kF32}) {
        const bool biases = type == TensorType::kF32 || shape.name == "odd";
        for (const std::int64_t num_rows : {1, 6, 14})
          cases.push_back({shape, activation, type, biases, num_rows});
      }
    }
  }
  return cases;
}

std::vector<Subject> every_instruction_set() {
  Shape unrotated = odd_shape();
  unrotated.attention.rotary_dim = 0;
  std::vector<PartCase> sizes;
  for (const std::int64_t width : {1, 5, 16, 57, 64, 80, 129}) sizes.push_back({width, 5});
  const auto created = [](cpu::InstructionSet isa, std::int32_t threads) {
    return [isa, threads](const BackendNeeds& needs) {
      return std::make_unique<TestBackend>(cpu_backend(isa, threads, needs.activation));
    };
  };
  std::vector<Subject> subjects;
  for (const cpu::InstructionSet isa : cpu::usable_instruction_sets()) {
    subjects.push_back({.name = std::string(cpu::instruction_set_name(isa)),
                        .create = created(isa, 2),
                        .twin = created(cpu::InstructionSet::kPortable, 1),
                        .oracle_rounds_activations = true,
                        .bounds = kBounds,
                        .rms_centre = 100.0f,
                        .layer_centre = 100.0f,
                        .attention_inputs = attention_inputs(),
                        .products = products(),
                        .logits_activations = {std::begin(kEveryActivation), std::end(kEveryActivation)},
                        .embedding_widths = {1, 5, 16, 31, 32, 57, 64, 80, 90, 129},
                        .head_shapes = {odd_shape(), one_tiny_head(), smollm2_shape(), unrotated},
                        .post_norms = sizes,
                        .feed_forwards = sizes});
  }
  return subjects;
}

INSTANTIATE_TEST_SUITE_P(EveryInstructionSet, OperationClaims, ::testing::ValuesIn(every_instruction_set()),
                         name_of_subject);

class Operations : public ::testing::TestWithParam<cpu::InstructionSet> {};

INSTANTIATE_TEST_SUITE_P(EveryInstructionSet, Operations, ::testing::ValuesIn(cpu::usable_instruction_sets()),
                         [](const auto& info) { return std::string(cpu::instruction_set_name(info.param)); });

TEST_P(Operations, AttentionInputGivesTheSameBitsForEveryChunkThreadAndInstructionSet) {
  for (const Activation activation : kEveryActivation) {
    const Shape shape = smollm2_shape();
    const LayerWeights weights = layer_weights(shape, TensorType::kQ4_1, /*biases=*/false);
    TestBackend portable(cpu_backend(cpu::InstructionSet::kPortable, 1, activation));
    const auto whole = make_problem(shape, {{5, 0, 23}}, {.new_tokens_stored = false});
    const AttentionInput expected = run_attention_input(portable, whole, weights);
    const auto elements_per_row = static_cast<std::int64_t>(expected.stored.size()) / 23;
    for (const std::int32_t threads : {1, 2, 3}) {
      TestBackend cpu(cpu_backend(GetParam(), threads, activation));
      for (const std::int32_t chunk : {1, 4, 5, 23}) {
        for (std::int32_t first = 0; first < 23; first += chunk) {
          const std::int32_t count = std::min(chunk, 23 - first);
          const auto part = make_problem(shape, {{4, 3, 2}, {5, first, count}},
                                         {.block_size = 8, .new_tokens_stored = false});
          const AttentionInput got = run_attention_input(cpu, part, weights);
          EXPECT_TRUE(same_bits(got.q.data() + 2 * shape.query_width(),
                                expected.q.data() + first * shape.query_width(),
                                count * shape.query_width()));
          EXPECT_TRUE(same_bits(got.stored.data() + 2 * elements_per_row,
                                expected.stored.data() + first * elements_per_row, count * elements_per_row));
        }
      }
    }
  }
}

TEST_P(Operations, RowsGiveTheSameBitsAloneAndTogetherOnEveryThreadAndInstructionSet) {
  const LayerWeights weights = layer_weights(smollm2_shape(), TensorType::kQ4_1, /*biases=*/true);
  for (const Activation activation : kEveryActivation) {
    TestBackend portable(cpu_backend(cpu::InstructionSet::kPortable, 1, activation));
    const auto residual = run_project_residual(portable, weights, 0, 15);
    const auto gated = run_feed_forward_input(portable, weights, 0, 15);
    const auto logits = run_logits(portable, {0, 1, 2, 3, 4, 5, 6, 7, 8}).rows;
    for (const std::int32_t threads : {1, 2, 3}) {
      TestBackend cpu(cpu_backend(GetParam(), threads, activation));
      for (const auto& [first, count] : {std::pair{0, 15}, {0, 1}, {14, 1}, {3, 7}}) {
        const auto some_residual = run_project_residual(cpu, weights, first, count);
        EXPECT_TRUE(same_bits(some_residual.data(), residual.data() + first * 576, count * 576));
        const auto some_gated = run_feed_forward_input(cpu, weights, first, count);
        EXPECT_TRUE(same_bits(some_gated.data(), gated.data() + first * 1536, count * 1536));
      }
      const auto some_logits = run_logits(cpu, {7, 2}).rows;
      EXPECT_TRUE(same_bits(some_logits.data(), logits.data() + 7 * 500, 500));
      EXPECT_TRUE(same_bits(some_logits.data() + 500, logits.data() + 2 * 500, 500));
    }
  }
}

struct Summarised {
  std::vector<float> logits, log_sum_exp, piece_maxima;
};

// Logits of chosen rows through an output head whose columns hold them: row r of x picks column r.
Summarised summarised(Backend& backend, const std::vector<std::vector<float>>& columns,
                      const std::vector<std::int32_t>& rows) {
  const std::size_t size = columns.front().size();
  std::vector<float> head, x(columns.size() * columns.size(), 0.0f);
  for (std::size_t i = 0; i < size; ++i) {
    for (const std::vector<float>& column : columns) head.push_back(column[i]);
  }
  for (std::size_t r = 0; r < columns.size(); ++r) x[r * columns.size() + r] = 1.0f;
  const auto width = static_cast<std::int64_t>(columns.size()), vocabulary = static_cast<std::int64_t>(size);
  const auto matrix = backend
                          .prepare_matrix({.type = TensorType::kF32,
                                           .rows = vocabulary,
                                           .columns = width,
                                           .bytes = std::as_bytes(std::span(head))})
                          .value();
  const std::vector<float> norm(columns.size(), 1.0f);
  Summarised result;
  result.logits.resize(rows.size() * size);
  result.log_sum_exp.resize(rows.size());
  result.piece_maxima.resize(rows.size() * static_cast<std::size_t>(num_logits_pieces(vocabulary)));
  backend.logits({{norm, 0.0f}, matrix.get()}, view(std::as_const(x), width), rows,
                 view(result.logits, vocabulary),
                 {.log_sum_exp = result.log_sum_exp, .piece_maxima = result.piece_maxima});
  return result;
}

TEST_P(Operations, TheSummaryOfLogitsIsThatOfThePlainRow) {
  for (const std::int64_t vocabulary : {1, 15, 16, 17, 63, 64, 65, 255, 256, 257, 4097, 49152, 50001}) {
    const auto size = static_cast<std::uint64_t>(vocabulary);
    const std::vector<std::vector<float>> columns = {noise_row(90, size, vocabulary, 20.0f),
                                                     noise_row(91, size, vocabulary, 1.0f)};
    const Summarised got = summarised(*cpu_backend(GetParam()), columns, {0, 1});
    const Summarised reference = summarised(*reference_backend(), columns, {0, 1});
    const auto num_pieces = static_cast<std::size_t>(num_logits_pieces(vocabulary));
    for (std::size_t row = 0; row < 2; ++row) {
      EXPECT_NEAR(got.log_sum_exp[row], reference.log_sum_exp[row],
                  4e-6 * (1 + std::fabs(reference.log_sum_exp[row])));
      const auto logits = std::span(got.logits).subspan(row * size, size);
      for (std::size_t piece = 0; piece < num_pieces; ++piece) {
        const auto entries = logits.subspan(piece * 64, std::min<std::size_t>(64, size - piece * 64));
        EXPECT_EQ(got.piece_maxima[row * num_pieces + piece],
                  *std::max_element(entries.begin(), entries.end()))
            << vocabulary << " piece " << piece;
      }
    }
    const Summarised portable = summarised(*cpu_backend(cpu::InstructionSet::kPortable, 3), columns, {0, 1});
    const Summarised alone = summarised(*cpu_backend(GetParam(), 1), columns, {1});
    EXPECT_TRUE(same_bits(got.log_sum_exp.data(), portable.log_sum_exp.data(), 2)) << vocabulary;
    EXPECT_EQ(alone.log_sum_exp[0], got.log_sum_exp[1]) << vocabulary;
  }
}

TEST_P(Operations, TheSummaryOfLogitsKnowsImpossibleTokensAndWhatIsNotFinite) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity(),
                  kNan = std::numeric_limits<float>::quiet_NaN();
  const auto cpu = cpu_backend(GetParam());
  const auto sum_of = [&](const std::vector<float>& logits) {
    return summarised(*cpu, {logits}, {0}).log_sum_exp[0];
  };
  std::vector<float> logits(10000, -kInfinity);
  EXPECT_EQ(sum_of(logits), -kInfinity);
  logits[9000] = logits[9001] = 3.0f;
  EXPECT_FLOAT_EQ(sum_of(logits), 3.0f + std::log(2.0f));
  for (const std::size_t at : {0u, 5u, 9000u, 9999u}) {
    for (const float value : {kNan, kInfinity}) {
      std::vector<float> broken = logits;
      broken[at] = value;
      EXPECT_TRUE(std::isnan(sum_of(broken))) << value << " at " << at;
    }
  }
  EXPECT_TRUE(std::isnan(sum_of(std::vector<float>(10000, kNan))));
}

TEST_P(Operations, SoftmaxWeightsAreExponentialsToTheLastPlacesAndTheSameBitsEverywhere) {
  for (const std::size_t size : {1u, 7u, 8u, 9u, 63u, 64u, 65u, 6144u, 6145u, 49152u}) {
    std::vector<double> scores;
    for (const float score : noise_row(92, size, static_cast<std::int64_t>(size), 30.0f))
      scores.push_back(score);
    if (size > 8) scores[3] = -std::numeric_limits<double>::infinity();
    const double best = *std::max_element(scores.begin(), scores.end());
    const auto weigh = [&](Backend& backend, double inverse_temperature) {
      std::vector<double> all(size), sums((size + 63) / 64);
      backend.softmax_weights(scores, best, inverse_temperature, all, sums);
      all.insert(all.end(), sums.begin(), sums.end());
      return all;
    };
    for (const double inverse_temperature : {0.01, 1.0, 1.3, 50.0, 1e5}) {
      const std::vector<double> got = weigh(*cpu_backend(GetParam()), inverse_temperature);
      EXPECT_EQ(got, weigh(*cpu_backend(cpu::InstructionSet::kPortable, 1), inverse_temperature)) << size;
      const std::vector<double> expected = weigh(*reference_backend(), inverse_temperature);
      for (std::size_t i = 0; i < got.size(); ++i) {
        const double bound = i < size ? 3 * 0x1p-52 : 70 * 0x1p-52;
        EXPECT_NEAR(got[i], expected[i], bound * expected[i] + 2e-307) << size << " at " << i;
      }
      EXPECT_EQ(*std::max_element(got.begin(), got.begin() + static_cast<std::ptrdiff_t>(size)), 1.0);
    }
  }
}

TEST_P(Operations, CopyBlocksCopiesWholeBlocksAndNothingElse) {
  const PagedProblem problem = make_problem(smollm2_shape(), {{1, 100, 1}}, {.num_layers = 30});
  const std::vector<BlockCopy> copies = {{problem.block_tables[0], problem.block_tables[3]},
                                         {problem.block_tables[0], problem.block_tables[5]},
                                         {problem.block_tables[2], problem.block_tables[1]}};
  std::vector<std::byte> expected = problem.pool;
  const std::int64_t block_bytes = problem.layout.block_bytes();
  for (const BlockCopy& copy : copies) {
    std::copy_n(expected.begin() + copy.source * block_bytes, block_bytes,
                expected.begin() + copy.target * block_bytes);
  }
  for (const auto& backend : {cpu_backend(GetParam()), reference_backend()}) {
    const std::unique_ptr<KvCache> kv = cache_with(*backend, problem);
    backend->copy_blocks(*kv, copies);
    EXPECT_EQ(std::memcmp(pool_bytes(*backend, *kv), expected.data(), expected.size()), 0) << backend->name();
  }
}

}  // namespace
}  // namespace octavo::kernels::testing
