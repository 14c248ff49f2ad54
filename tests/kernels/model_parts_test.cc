// What only some architectures have: each on every instruction set against the reference, bit
// for bit among the instruction sets, in odd sizes.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "kernels/cpu/simd/kernel_table.h"
#include "tests/kernels/paged_problem.h"

namespace octavo::kernels::testing {
namespace {

constexpr double kTolerance = 5e-6;

class ModelParts : public ::testing::TestWithParam<cpu::InstructionSet> {};

INSTANTIATE_TEST_SUITE_P(EveryInstructionSet, ModelParts, ::testing::ValuesIn(cpu::usable_instruction_sets()),
                         [](const auto& info) { return std::string(cpu::instruction_set_name(info.param)); });

// Calls run(backend) on the CPU, on the reference and on the portable CPU.
template <class Run>
void expect_equal(cpu::InstructionSet isa, const Run& run, double tolerance = kTolerance) {
  const std::vector<float> got = run(*cpu_backend(isa, 2)), expected = run(*reference_backend()),
                           portable = run(*cpu_backend(cpu::InstructionSet::kPortable, 1));
  EXPECT_LE(relative_difference(got, expected), tolerance);
  ASSERT_EQ(got.size(), portable.size());
  EXPECT_TRUE(same_bits(got.data(), portable.data(), static_cast<std::int64_t>(got.size())));
}

std::vector<float> some_rows(std::uint64_t seed, std::int64_t num_rows, std::int64_t width, float scale) {
  std::vector<float> rows;
  for (std::int64_t row = 0; row < num_rows; ++row) {
    const std::vector<float> values = noise_row(seed, static_cast<std::uint64_t>(row), width, scale);
    rows.insert(rows.end(), values.begin(), values.end());
  }
  return rows;
}

std::vector<float> norm_weight(std::uint64_t seed, std::int64_t size) {
  std::vector<float> weight = noise_row(seed, 0, size, 0.5f);
  for (float& value : weight) value += 1.0f;
  return weight;
}

constexpr std::int64_t kWidths[] = {1, 5, 16, 57, 64, 80, 129};
constexpr std::int64_t kRows = 5;

TEST_P(ModelParts, FeedForwardLayersOfEveryKindEqualTheReference) {
  for (const std::int64_t width : kWidths) {
    const std::int64_t hidden = width + 22;
    const OwnedMatrix gate = random_matrix(TensorType::kF32, hidden, width, 1),
                      up = random_matrix(TensorType::kF32, hidden, width, 2);
    const std::vector<float> weight = norm_weight(3, width), bias = noise_row(4, 0, width),
                             gate_bias = noise_row(5, 0, hidden), up_bias = noise_row(6, 0, hidden);
    // A constant far from zero: LayerNorm has to take it away first.
    std::vector<float> x = some_rows(7, kRows, width, 2.0f);
    for (float& value : x) value += 100.0f;
    for (const NormKind kind : {NormKind::kRms, NormKind::kLayer}) {
      for (const bool has_gate : {true, false}) {
        for (const FeedForwardActivation activation :
             {FeedForwardActivation::kSilu, FeedForwardActivation::kGelu}) {
          for (const bool has_bias : {true, false}) {
            if (kind == NormKind::kLayer && width == 1) continue;  // no variance
            SCOPED_TRACE(std::to_string(width) + (kind == NormKind::kRms ? " rms" : " layer") +
                         (has_gate ? " gated" : "") +
                         (activation == FeedForwardActivation::kGelu ? " gelu" : " silu"));
            expect_equal(
                GetParam(),
                [&](Backend& backend) {
                  const auto gate_matrix = backend.prepare_matrix(gate.source).value(),
                             up_matrix = backend.prepare_matrix(up.source).value();
                  FeedForwardInputWeights weights{
                      {weight, 1e-5f, kind}, has_gate ? gate_matrix.get() : nullptr, up_matrix.get()};
                  weights.activation = activation;
                  if (has_bias) {
                    if (kind == NormKind::kLayer) weights.norm.bias = bias;
                    if (has_gate) weights.gate_bias = gate_bias;
                    weights.up_bias = up_bias;
                  }
                  std::vector<float> out(static_cast<std::size_t>(kRows * hidden));
                  backend.feed_forward_input(weights, view(std::as_const(x), width), view(out, hidden));
                  return out;
                },
                5e-5);  // what is left of numbers around 100
          }
        }
      }
    }
  }
}

TEST_P(ModelParts, PostNormsEqualTheReference) {
  for (const std::int64_t width : kWidths) {
    const OwnedMatrix matrix = random_matrix(TensorType::kF32, width, 33, 1);
    const std::vector<float> weight = norm_weight(3, width), bias = noise_row(5, 0, width),
                             input = some_rows(7, kRows, 33, 2.0f), before = some_rows(8, kRows, width, 2.0f);
    expect_equal(GetParam(), [&](Backend& backend) {
      const auto prepared = backend.prepare_matrix(matrix.source).value();
      std::vector<float> residual = before;
      backend.project_residual({prepared.get(), bias, {weight, 1e-6f}}, view(input, 33),
                               view(residual, width));
      return residual;
    });
  }
}

TEST_P(ModelParts, EmbeddingsAreScaledAndPositionsAdded) {
  const std::vector<std::int32_t> token_ids = {3, 0, 36, 3}, positions = {0, 7, 18, 1};
  for (const std::int64_t width : kWidths) {
    const OwnedMatrix tokens = random_matrix(TensorType::kF16, 37, width, 1),
                      table = random_matrix(TensorType::kF32, 19, width, 2);
    for (const bool is_learned : {true, false}) {
      for (const float scale : {1.0f, 7.5f}) {
        expect_equal(GetParam(), [&](Backend& backend) {
          const auto token_matrix = backend.prepare_matrix(tokens.source).value(),
                     position_matrix = backend.prepare_matrix(table.source).value();
          std::vector<float> out(token_ids.size() * static_cast<std::size_t>(width));
          backend.embed({token_matrix.get(), scale, is_learned ? position_matrix.get() : nullptr}, token_ids,
                        positions, view(out, width));
          return out;
        });
      }
    }
  }
}

TEST_P(ModelParts, HeadNormsAndLocalRotationsEqualTheReference) {
  for (Shape shape : {odd_shape(), one_tiny_head(), smollm2_shape()}) {
    for (const Rotations rotations : {Rotations::kGlobal, Rotations::kLocal}) {
      shape.attention.rotations = rotations;
      const PagedProblem problem = make_problem(shape, {{1, 0, 9}, {2, 15, 1}, {3, 30, 4}},
                                                {.type = KvType::kF32, .new_tokens_stored = false});
      const std::int64_t width = shape.embedding_length, head_dim = shape.attention.head_dim;
      const OwnedMatrix query = random_matrix(TensorType::kF32, shape.query_width(), width, 1),
                        key = random_matrix(TensorType::kF32, shape.kv_width(), width, 2),
                        value = random_matrix(TensorType::kF32, shape.kv_width(), width, 3);
      const std::vector<float> weight = norm_weight(4, width), query_norm = norm_weight(5, head_dim),
                               key_norm = norm_weight(6, head_dim), x = rows_of(problem, 8, width, 2.0f);
      std::vector<float> local = problem.rotations;
      for (float& number : local) number *= 0.5f;
      expect_equal(GetParam(), [&](Backend& backend) {
        const auto q_matrix = backend.prepare_matrix(query.source).value(),
                   k_matrix = backend.prepare_matrix(key.source).value(),
                   v_matrix = backend.prepare_matrix(value.source).value();
        AttentionInputWeights weights{{weight, 1e-6f}, q_matrix.get(), k_matrix.get(), v_matrix.get()};
        weights.query_norm = query_norm;
        weights.key_norm = key_norm;
        PagedBatch batch = problem.batch();
        batch.local_rotations = local;
        const std::unique_ptr<KvCache> kv = cache_with(backend, problem);
        std::vector<float> q(static_cast<std::size_t>(problem.num_rows() * shape.query_width()));
        backend.attention_input(weights, shape.attention, batch, 1, view(x, width), *kv,
                                view(q, shape.query_width()));
        PagedProblem after = problem;  // keys and values as stored, behind the queries
        std::memcpy(after.pool.data(), pool_bytes(backend, *kv), after.pool.size());
        for (std::int32_t head = 0; head < shape.attention.num_kv_heads; ++head) {
          for (std::int32_t d = 0; d < shape.attention.head_dim; ++d) {
            q.push_back(static_cast<float>(after.stored_key(2, 32, 1, head, d)));
            q.push_back(static_cast<float>(after.stored_value(2, 32, 1, head, d)));
          }
        }
        return q;
      });
    }
  }
}

TEST_P(ModelParts, LogitsAreCapped) {
  constexpr std::int64_t kVocabulary = 333, kWidth = 40;
  const OwnedMatrix matrix = random_matrix(TensorType::kF32, kVocabulary, kWidth, 1);
  const std::vector<float> weight = norm_weight(3, kWidth), bias = noise_row(5, 0, kVocabulary, 30.0f),
                           x = some_rows(7, kRows, kWidth, 2.0f);
  const std::vector<std::int32_t> rows = {4, 0, 2};
  expect_equal(GetParam(), [&](Backend& backend) {
    const auto prepared = backend.prepare_matrix(matrix.source).value();
    std::vector<float> out(rows.size() * kVocabulary), sums(rows.size()),
        maxima(rows.size() * static_cast<std::size_t>(num_logits_pieces(kVocabulary)));
    backend.logits({{weight, 1e-6f}, prepared.get(), bias, 10.0f}, view(x, kWidth), rows,
                   view(out, kVocabulary), {.log_sum_exp = sums, .piece_maxima = maxima});
    for (const float logit : out) EXPECT_LE(std::fabs(logit), 10.0f);
    out.insert(out.end(), sums.begin(), sums.end());
    out.insert(out.end(), maxima.begin(), maxima.end());
    return out;
  });
}

TEST_P(ModelParts, SoftCapsAreAccurateOverTheWholeRange) {
  const cpu::KernelTable& kernels = cpu::kernel_table(GetParam());
  for (const float cap : {0.5f, 30.0f, 50.0f}) {
    std::vector<float> x;
    for (float value = -12.0f; value < 12.0f; value += 0.0013f) x.push_back(value * cap);
    for (const float value : {0.0f, 1e-30f, -1e-30f, 1e-6f, 0.624999f, 0.625f, 1e10f, -1e30f})
      x.push_back(value * cap);
    std::vector<float> got = x;
    kernels.soft_cap(got.data(), cap, static_cast<std::int64_t>(got.size()));
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double expected = double{cap} * std::tanh(double{x[i]} / double{cap});
      EXPECT_NEAR(got[i], expected, 4e-7 * std::fabs(expected) + 1e-37) << x[i];
    }
  }
  std::vector<float> broken = {std::numeric_limits<float>::infinity(),
                               -std::numeric_limits<float>::infinity(),
                               std::numeric_limits<float>::quiet_NaN()};
  kernels.soft_cap(broken.data(), 30.0f, 3);
  for (const float value : broken)
    EXPECT_TRUE(std::isnan(value)) << "what is not finite must not look like an answer";
}

TEST_P(ModelParts, GeluIsAccurateOverTheWholeRange) {
  const cpu::KernelTable& kernels = cpu::kernel_table(GetParam());
  std::vector<float> z;
  for (float value = -12.0f; value < 12.0f; value += 0.00131f) z.push_back(value);
  for (const float value : {0.0f, 1e-30f, -1e-30f, 90.0f, 1e20f, -100.0f, -1e20f}) z.push_back(value);
  std::vector<float> alone = z, gated = z;
  const std::vector<float> ones(z.size(), 1.0f);
  kernels.gelu(alone.data(), static_cast<std::int64_t>(alone.size()));
  kernels.gelu_mul(gated.data(), ones.data(), static_cast<std::int64_t>(gated.size()));
  EXPECT_TRUE(same_bits(alone.data(), gated.data(), static_cast<std::int64_t>(z.size())));
  for (std::size_t i = 0; i < z.size(); ++i) {
    const double value = z[i],
                 inner = std::sqrt(2.0 / 3.14159265358979323846) * (value + 0.044715 * value * value * value);
    const double expected = 0.5 * value * (1.0 + std::tanh(inner));
    EXPECT_NEAR(alone[i], expected, 3e-6 * std::fabs(expected) + 1e-9) << value;
  }
}

TEST_P(ModelParts, SiluAloneIsThatOfAGateOfOnes) {
  const cpu::KernelTable& kernels = cpu::kernel_table(GetParam());
  for (const std::int64_t size : {1, 15, 16, 17, 100}) {
    std::vector<float> alone = noise_row(1, 0, size, 20.0f), gated = alone;
    const std::vector<float> ones(static_cast<std::size_t>(size), 1.0f);
    kernels.silu(alone.data(), size);
    kernels.silu_mul(gated.data(), ones.data(), size);
    EXPECT_TRUE(same_bits(alone.data(), gated.data(), size));
  }
}

}  // namespace
}  // namespace octavo::kernels::testing
