// What only some architectures have: each on the emulated device against the reference, in odd sizes, with
// few rows (vector products), many (tiles) and very many (the library), and deterministic.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <set>
#include <utility>

#include "kernels/cuda/matmul/matmul.h"
#include "kernels/cuda/sampling/logits_summary.h"
#include "tests/cuda/device_arrays.h"
#include "tests/cuda/device_problem.h"

namespace octavo::kernels::cuda {
namespace {

using testing::noise_row;
using testing::OwnedMatrix;
using testing::PagedProblem;
using testing::random_matrix;
using testing::relative_difference;
using testing::Shape;

// |error| relative to the largest |out|: float32 weights meet floats (sums in float); float16 ones of tiles
// meet activations of 22 bits; the library's the same.
constexpr double kTolerance = 2e-5;

std::vector<float> some_rows(std::uint64_t seed, std::int64_t num_rows, std::int64_t columns, float scale,
                             float centre = 0.0f) {
  std::vector<float> rows;
  for (std::int64_t row = 0; row < num_rows; ++row) {
    for (const float value : noise_row(seed, static_cast<std::uint64_t>(row), columns, scale))
      rows.push_back(value + centre);
  }
  return rows;
}

std::vector<float> norm_weight(std::uint64_t seed, std::int64_t size) {
  return some_rows(seed, 1, size, 0.5f, 1.0f);
}

std::vector<float> values_of(const Rows& rows, bool is_device) {
  return is_device ? rows.read() : std::vector<float>(rows.span().begin(), rows.span().end());
}

Shape shape_of_width(std::int64_t width, std::int64_t hidden) {
  return {"made_up",
          {1, 1, 8, 8, RopePairing::kHalves, 1.0f},
          static_cast<std::int32_t>(width),
          static_cast<std::int32_t>(hidden)};
}

std::unique_ptr<Backend> backend_for(const Shape& shape, std::int32_t num_rows, bool deterministic) {
  auto backend = create_cuda_backend({.deterministic = deterministic}, testing::reference_backend()).value();
  StepShape step = step_shape(shape);
  step.num_rows = num_rows;
  EXPECT_TRUE(backend->reserve_step(step));
  return backend;
}

struct FeedForward {
  NormKind norm = NormKind::kRms;
  bool has_gate = true, has_bias = true;
  FeedForwardActivation activation = FeedForwardActivation::kSilu;
  TensorType gate_type = TensorType::kF32, up_type = TensorType::kF32;
};

std::vector<float> run_feed_forward(Backend& backend, const FeedForward& kind, std::int64_t width,
                                    std::int64_t num_rows, bool is_device) {
  const std::int64_t hidden = width + 22;
  const OwnedMatrix gate = random_matrix(kind.gate_type, hidden, width, 1),
                    up = random_matrix(kind.up_type, hidden, width, 2);
  const auto gate_matrix = backend.prepare_matrix(gate.source).value(),
             up_matrix = backend.prepare_matrix(up.source).value();
  const Rows weight(backend, norm_weight(3, width), width), bias(backend, noise_row(4, 0, width), width),
      gate_bias(backend, noise_row(5, 0, hidden), hidden), up_bias(backend, noise_row(6, 0, hidden), hidden);
  // A constant far from zero: LayerNorm has to take it away first.
  const Rows x(backend, some_rows(7, num_rows, width, 2.0f, kind.norm == NormKind::kLayer ? 10.0f : 0.0f),
               width);
  const Rows out(backend, std::vector<float>(static_cast<std::size_t>(num_rows * hidden)), hidden);
  FeedForwardInputWeights weights{
      {weight.span(), 1e-5f, kind.norm}, kind.has_gate ? gate_matrix.get() : nullptr, up_matrix.get()};
  weights.activation = kind.activation;
  if (kind.has_bias) {
    if (kind.norm == NormKind::kLayer) weights.norm.bias = bias.span();
    if (kind.has_gate) weights.gate_bias = gate_bias.span();
    weights.up_bias = up_bias.span();
  }
  backend.feed_forward_input(weights, x.view(), out.view());
  return values_of(out, is_device);
}

void expect_feed_forward(const FeedForward& kind, std::int64_t width, std::int32_t num_rows,
                         bool deterministic, double tolerance = kTolerance) {
  const auto backend = backend_for(shape_of_width(width, width + 22), num_rows, deterministic);
  const auto reference = testing::reference_backend();
  EXPECT_LE(relative_difference(run_feed_forward(*backend, kind, width, num_rows, true),
                                run_feed_forward(*reference, kind, width, num_rows, false)),
            tolerance)
      << width << " wide, " << num_rows << " rows" << (kind.norm == NormKind::kRms ? ", rms" : ", layer")
      << (kind.has_gate ? ", gated" : "") << (kind.has_bias ? ", biases" : "")
      << (kind.activation == FeedForwardActivation::kGelu ? ", gelu" : ", silu")
      << (deterministic ? ", deterministic" : "");
}

TEST(CudaModelParts, FeedForwardLayersOfEveryKindEqualTheReference) {
  for (const std::int64_t width : {5, 57, 96}) {
    for (const NormKind norm : {NormKind::kRms, NormKind::kLayer}) {
      for (const bool has_gate : {true, false}) {
        for (const auto activation : {FeedForwardActivation::kSilu, FeedForwardActivation::kGelu}) {
          for (const bool has_bias : {true, false}) {
            FeedForward kind{norm, has_gate, has_bias, activation};
            if (width != 57) kind.gate_type = kind.up_type = TensorType::kF16;
            expect_feed_forward(kind, width, width == 57 ? 3 : 19, width == 5);
          }
        }
      }
    }
  }
}

TEST(CudaModelParts, FeedForwardLayersOfTheLibraryAndOfTwoTypesEqualTheReference) {
  for (const bool has_gate : {true, false}) {
    FeedForward kind{NormKind::kLayer, has_gate, true, FeedForwardActivation::kGelu};
    kind.gate_type = kind.up_type = TensorType::kF16;
    expect_feed_forward(kind, 48, 70, false);
    kind.gate_type = TensorType::kF32;  // a launch each, then both together
    expect_feed_forward(kind, 48, 11, false);
    expect_feed_forward(kind, 48, 11, true);
  }
}

TEST(CudaModelParts, ActivationsAreAccurateOverTheWholeRange) {
  std::vector<float> z;
  for (float value = -12.0f; value < 12.0f; value += 0.0371f) z.push_back(value);
  for (const float value : {0.0f, 1e-30f, -1e-30f, 90.0f, -100.0f, 1e20f, -1e20f}) z.push_back(value);
  const auto columns = static_cast<std::int64_t>(z.size());
  // A column of zeros times anything, plus a bias of z.
  const OwnedMatrix zeros{{TensorType::kF32, columns, 8, {}}, std::vector<std::byte>(z.size() * 8 * 4)};
  OwnedMatrix weights = zeros;
  weights.source.bytes = weights.bytes;
  for (const auto activation : {FeedForwardActivation::kSilu, FeedForwardActivation::kGelu}) {
    TestStream stream;
    const auto products = MatrixProducts::create(stream.get(), {}).value();
    ASSERT_TRUE(products->reserve(step_shape(shape_of_width(8, columns))));
    const auto matrix = prepare_device_matrix(weights.source).value();
    const DeviceArray<float> bias(z), input(std::vector<float>(8, 1.0f)),
        out(std::vector<float>(z.size(), -1.0f));
    const Product product{matrix.get(), bias.data(), out.data(), columns, epilogue_of(activation)};
    products->multiply({input.data(), 8, 1}, {&product, 1});
    stream.finish();
    const std::vector<float> got = out.read();
    for (std::size_t i = 0; i < z.size(); ++i) {
      const double value = z[i], inner = std::sqrt(2.0 / 3.14159265358979323846) *
                                         (value + 0.044715 * value * value * value);
      const double expected = activation == FeedForwardActivation::kSilu
                                  ? value / (1.0 + std::exp(-value))
                                  : 0.5 * value * (1.0 + std::tanh(inner));
      EXPECT_NEAR(got[i], expected, 3e-6 * std::fabs(expected) + 1e-9) << value;
    }
  }
}

TEST(CudaModelParts, LayerNormTakesAwayAConstantThatDwarfsTheRest) {
  constexpr std::int64_t kWidth = 600;
  const auto backend = backend_for(shape_of_width(kWidth, kWidth), 4, false);
  const auto reference = testing::reference_backend();
  const OwnedMatrix matrix = random_matrix(TensorType::kF32, kWidth, kWidth, 1);
  const auto run = [&](Backend& on, bool is_device) {
    const auto prepared = on.prepare_matrix(matrix.source).value();
    const Rows weight(on, norm_weight(3, kWidth), kWidth),
        x(on, some_rows(7, 4, kWidth, 1.0f, 1000.0f), kWidth);
    const Rows out(on, std::vector<float>(4 * kWidth), kWidth);
    on.feed_forward_input({{weight.span(), 1e-5f, NormKind::kLayer}, nullptr, prepared.get()}, x.view(),
                          out.view());
    return values_of(out, is_device);
  };
  // 1000 + a number is rounded to 1 / 16,384; the mean of 600 of them to about as much.
  EXPECT_LE(relative_difference(run(*backend, true), run(*reference, false)), 5e-4);
}

TEST(CudaModelParts, PostNormsEqualTheReference) {
  const auto reference = testing::reference_backend();
  for (const std::int64_t width : {5, 57, 96, 600}) {
    for (const std::int32_t num_rows : {3, 19, 70}) {
      const TensorType type = num_rows == 3 ? TensorType::kF32 : TensorType::kF16;
      const auto backend = backend_for(shape_of_width(width, width), num_rows, num_rows == 19);
      const OwnedMatrix matrix = random_matrix(type, width, 40, 1);
      const auto run = [&](Backend& on, bool is_device) {
        const auto prepared = on.prepare_matrix(matrix.source).value();
        const Rows weight(on, norm_weight(3, width), width), bias(on, noise_row(5, 0, width), width),
            input(on, some_rows(7, num_rows, 40, 2.0f), 40),
            residual(on, some_rows(8, num_rows, width, 2.0f), width);
        on.project_residual({prepared.get(), bias.span(), {weight.span(), 1e-6f}}, input.view(),
                            residual.view());
        return values_of(residual, is_device);
      };
      EXPECT_LE(relative_difference(run(*backend, true), run(*reference, false)), kTolerance)
          << width << " wide, " << num_rows << " rows";
    }
  }
}

TEST(CudaModelParts, EmbeddingsAreScaledAndPositionsAdded) {
  const std::vector<std::int32_t> token_ids = {3, 0, 36, 3}, positions = {0, 7, 18, 1}, starts = {0, 4},
                                  contexts = {19};
  const auto reference = testing::reference_backend();
  for (const std::int64_t width : {1, 31, 32, 90}) {
    const auto backend = backend_for(shape_of_width(width, width), 4, false);
    for (const TensorType table_type : {TensorType::kF32, TensorType::kBF16}) {
      const OwnedMatrix tokens = random_matrix(TensorType::kF16, 37, width, 1),
                        table = random_matrix(table_type, 19, width, 2);
      for (const bool is_learned : {true, false}) {
        for (const float scale : {1.0f, 7.5f}) {
          const auto run = [&](Backend& on, bool is_device) {
            const auto token_matrix = on.prepare_matrix(tokens.source).value(),
                       position_matrix = on.prepare_matrix(table.source).value();
            const Rows out(on, std::vector<float>(static_cast<std::size_t>(4 * width)), width);
            PagedBatch batch;
            batch.num_tokens = 4, batch.num_sequences = 1;
            batch.positions = positions, batch.query_start = starts, batch.context_lens = contexts;
            on.begin_step(batch, token_ids);
            on.embed({token_matrix.get(), scale, is_learned ? position_matrix.get() : nullptr}, token_ids,
                     positions, out.view());
            return values_of(out, is_device);
          };
          EXPECT_LE(relative_difference(run(*backend, true), run(*reference, false)), 1e-6) << width;
        }
      }
    }
  }
}

struct Written {
  std::vector<float> q, stored;
};

// Queries, and keys and values as stored.
Written run_attention_input(Backend& backend, const PagedProblem& problem, const std::vector<float>& local,
                            bool has_norms, bool is_device) {
  const Shape& shape = problem.shape;
  const std::int64_t width = shape.embedding_length, head_dim = shape.attention.head_dim;
  const OwnedMatrix query = random_matrix(TensorType::kF32, shape.query_width(), width, 1),
                    key = random_matrix(TensorType::kF32, shape.kv_width(), width, 2),
                    value = random_matrix(TensorType::kF32, shape.kv_width(), width, 3);
  const auto q_matrix = backend.prepare_matrix(query.source).value(),
             k_matrix = backend.prepare_matrix(key.source).value(),
             v_matrix = backend.prepare_matrix(value.source).value();
  const Rows weight(backend, norm_weight(4, width), width),
      query_norm(backend, norm_weight(5, head_dim), head_dim),
      key_norm(backend, norm_weight(6, head_dim), head_dim),
      x(backend, testing::rows_of(problem, 8, width, 2.0f), width),
      q(backend, std::vector<float>(static_cast<std::size_t>(problem.num_rows() * shape.query_width())),
        shape.query_width());
  AttentionInputWeights weights{{weight.span(), 1e-6f}, q_matrix.get(), k_matrix.get(), v_matrix.get()};
  if (has_norms) weights.query_norm = query_norm.span(), weights.key_norm = key_norm.span();
  PagedBatch batch = problem.batch();
  batch.local_rotations = local;
  const std::unique_ptr<KvCache> kv =
      is_device ? device_pool(backend, problem) : testing::cache_with(backend, problem);
  backend.begin_step(batch, {});
  backend.attention_input(weights, shape.attention, batch, 1, x.view(), *kv, q.view());
  PagedProblem after = problem;
  if (is_device) {
    after.pool = read_pool(*kv);
  } else {
    std::memcpy(after.pool.data(), testing::pool_bytes(backend, *kv), after.pool.size());
  }
  Written written{values_of(q, is_device), {}};
  for (std::int32_t s = 0; s < static_cast<std::int32_t>(problem.sequences.size()); ++s) {
    const testing::SequenceSpec& sequence = problem.sequences[static_cast<std::size_t>(s)];
    for (std::int32_t i = sequence.history; i < sequence.history + sequence.new_tokens; ++i) {
      for (std::int32_t head = 0; head < shape.attention.num_kv_heads; ++head) {
        for (std::int32_t d = 0; d < shape.attention.head_dim; ++d) {
          written.stored.push_back(static_cast<float>(after.stored_key(s, i, 1, head, d)));
          written.stored.push_back(static_cast<float>(after.stored_value(s, i, 1, head, d)));
        }
      }
    }
  }
  return written;
}

TEST(CudaModelParts, HeadNormsAndLocalRotationsEqualTheReference) {
  const auto reference = testing::reference_backend();
  Shape unrotated = testing::odd_shape();
  unrotated.attention.rotary_dim = 0;
  for (Shape shape : {testing::odd_shape(), testing::one_tiny_head(), unrotated}) {
    for (const RopePairing pairing : {RopePairing::kInterleaved, RopePairing::kHalves}) {
      for (const Rotations rotations : {Rotations::kGlobal, Rotations::kLocal}) {
        for (const bool has_norms : {true, false}) {
          shape.attention.rotations = rotations;
          shape.attention.pairing = pairing;
          const PagedProblem problem = make_problem(shape, {{1, 0, 9}, {2, 15, 1}, {3, 30, 4}},
                                                    {.type = KvType::kF32, .new_tokens_stored = false});
          std::vector<float> local = problem.rotations;
          for (float& number : local) number *= 0.5f;
          const auto backend = emulated_backend(shape);
          const Written got = run_attention_input(*backend, problem, local, has_norms, true),
                        expected = run_attention_input(*reference, problem, local, has_norms, false);
          EXPECT_LE(relative_difference(got.q, expected.q), kTolerance) << shape.name;
          EXPECT_LE(relative_difference(got.stored, expected.stored), kTolerance) << shape.name;
        }
      }
    }
  }
}

TEST(CudaModelParts, LogitsAreCapped) {
  constexpr std::int64_t kVocabulary = 333, kWidth = 40, kRows = 5;
  const OwnedMatrix matrix = random_matrix(TensorType::kF32, kVocabulary, kWidth, 1);
  const std::vector<std::int32_t> rows = {4, 0, 2};
  const auto backend = backend_for(shape_of_width(kWidth, kWidth), kRows, false);
  const auto reference = testing::reference_backend();
  for (const float cap : {1e-3f, 10.0f, 1e6f}) {
    const auto run = [&](Backend& on) {
      const auto prepared = on.prepare_matrix(matrix.source).value();
      const Rows weight(on, norm_weight(3, kWidth), kWidth), norm_bias(on, noise_row(4, 0, kWidth), kWidth),
          bias(on, noise_row(5, 0, kVocabulary, 30.0f), kVocabulary),
          x(on, some_rows(7, kRows, kWidth, 2.0f), kWidth);
      std::vector<float> out(rows.size() * kVocabulary), sums(rows.size()),
          maxima(rows.size() * static_cast<std::size_t>(num_logits_pieces(kVocabulary)));
      on.logits(
          {{weight.span(), 1e-6f, NormKind::kLayer, norm_bias.span()}, prepared.get(), bias.span(), cap},
          x.view(), rows, testing::view(out, kVocabulary), {.log_sum_exp = sums, .piece_maxima = maxima});
      for (const float logit : out) EXPECT_LE(std::fabs(logit), cap);
      for (const float sum : sums) out.push_back(sum * cap / 100.0f);  // as large as the others
      out.insert(out.end(), maxima.begin(), maxima.end());
      return out;
    };
    EXPECT_LE(relative_difference(run(*backend), run(*reference)), kTolerance) << cap;
  }
}

TEST(CudaModelParts, CappedLogitsAreAccurateAndHideNothing) {
  constexpr std::int64_t kVocabulary = 1500;
  constexpr float kCap = 30.0f, kInfinity = std::numeric_limits<float>::infinity();
  std::vector<float> logits;
  while (logits.size() < kVocabulary) logits.push_back(-360.0f + 0.48f * static_cast<float>(logits.size()));
  logits[3] = 0.0f, logits[4] = 1e-30f, logits[5] = -1e30f;
  std::vector<float> broken = logits, other = logits;
  broken[700] = kInfinity, other[700] = -kInfinity;  // capped, both would be like any other
  std::vector<float> rows = logits;
  for (const auto& row : {broken, other}) rows.insert(rows.end(), row.begin(), row.end());
  TestStream stream;
  const DeviceArray<float> device(rows), sums(std::vector<float>(3)), maxima(std::vector<float>(3 * 24)),
      scratch(std::vector<float>(3 * 24));
  summarise_logits(stream.get(), device.data(), 3, kVocabulary, kCap, sums.data(), maxima.data(),
                   scratch.data());
  stream.finish();
  const std::vector<float> got = device.read(), log_sums = sums.read();
  for (std::size_t i = 0; i < kVocabulary; ++i) {
    const double expected = double{kCap} * std::tanh(double{logits[i]} / double{kCap});
    EXPECT_NEAR(got[i], expected, 4e-7 * std::fabs(expected) + 1e-37) << logits[i];
  }
  EXPECT_TRUE(std::isfinite(log_sums[0]));
  EXPECT_TRUE(std::isnan(got[kVocabulary + 700]) && std::isnan(got[2 * kVocabulary + 700]));
  EXPECT_FALSE(std::isfinite(log_sums[1]));
  EXPECT_FALSE(std::isfinite(log_sums[2]));
}

}  // namespace
}  // namespace octavo::kernels::cuda
