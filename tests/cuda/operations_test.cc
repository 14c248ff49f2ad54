// The CUDA backend's operations on the emulated device against the reference.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "kernels/cuda/sampling/logits_summary.h"
#include "kernels/dequantize.h"
#include "tests/cuda/device_problem.h"

namespace octavo::kernels::cuda {
namespace {

using testing::noise_row;
using testing::OwnedMatrix;
using testing::PagedProblem;
using testing::random_matrix;
using testing::relative_difference;
using testing::Shape;

// |error| relative to the largest |out|. On tensor cores an expanded weight is one float16 number, off by
// 2^-12 of itself, and an activation one or two; sums of random signs over a few dozen columns (the smallest
// shape has 32) keep most of that. Quantised weights with few rows meet 16-bit integers, 1/65278 of the
// largest of 32.
constexpr double kOneHalfTolerance = 1e-3, kTwoHalvesTolerance = 5e-4;
// One step of the largest number stored, should rounding to the KV type go the other way.
double kv_tolerance(KvType type) {
  switch (type) {
    case KvType::kF32: return 0.0;
    case KvType::kF16: return 0x1p-10;
    case KvType::kBf16: return 0x1p-7;
    case KvType::kInt8: return 1.06 / 127.0;  // the other scale may have been chosen
    case KvType::kFp8E4m3: return 0x1p-3;
    case KvType::kFp8E5m2: return 0x1p-2;
  }
  return 0.0;
}

double tolerance(Activation activation) {
  return activation == Activation::kF32 ? kTwoHalvesTolerance : kOneHalfTolerance;
}

constexpr TensorType kEveryType[] = {
    TensorType::kF32,  TensorType::kF16,  TensorType::kBF16, TensorType::kQ4_0, TensorType::kQ4_1,
    TensorType::kQ5_0, TensorType::kQ5_1, TensorType::kQ8_0, TensorType::kQ2_K, TensorType::kQ3_K,
    TensorType::kQ4_K, TensorType::kQ5_K, TensorType::kQ6_K};

// A batch of rows that nothing but their number is known of.
struct PlainBatch {
  explicit PlainBatch(std::int32_t num_rows)
      : positions(static_cast<std::size_t>(num_rows)), query_start{0, num_rows}, context_lens{num_rows} {}
  PagedBatch batch() const {
    PagedBatch batch;
    batch.num_tokens = query_start[1];
    batch.num_sequences = 1;
    batch.positions = positions;
    batch.query_start = query_start;
    batch.context_lens = context_lens;
    return batch;
  }
  std::vector<std::int32_t> positions, query_start, context_lens;
};

TEST(CudaOperations, EmbeddingsAreTheRowsOfTheFile) {
  const auto backend = emulated_backend(testing::smollm2_shape());
  const std::vector<std::int32_t> token_ids = {7, 0, 39, 7};
  const PlainBatch rows(4);
  for (const TensorType type : kEveryType) {
    const std::int64_t columns = traits_of(type).block_elements == 256 ? 512
                                 : type == TensorType::kF16            ? 90
                                                                       : 96;
    const OwnedMatrix table = random_matrix(type, 40, columns, 5);
    const auto matrix = backend->prepare_matrix(table.source).value();
    const Rows out(*backend, std::vector<float>(static_cast<std::size_t>(4 * columns), -1.0f), columns);
    backend->begin_step(rows.batch(), token_ids);
    backend->embed({.tokens = matrix.get()}, token_ids, rows.positions, out.view());
    std::vector<float> expected(static_cast<std::size_t>(4 * columns));
    const std::size_t row_bytes = table.bytes.size() / 40;
    for (std::size_t i = 0; i < 4; ++i) {
      dequantize(type, table.bytes.data() + static_cast<std::size_t>(token_ids[i]) * row_bytes, columns,
                 expected.data() + static_cast<std::int64_t>(i) * columns);
    }
    EXPECT_EQ(out.read(), expected) << traits_of(type).name;
  }
}

struct LayerWeights {
  std::vector<float> norm, query_bias, key_bias, value_bias, gate_bias, up_bias, output_bias;
  OwnedMatrix query, key, value, output, gate, up;
};

LayerWeights layer_weights(const Shape& shape, TensorType type, bool biases) {
  const std::int64_t width = shape.embedding_length;
  LayerWeights weights{
      .norm = noise_row(50, 0, width),
      .query_bias = noise_row(51, 0, biases ? shape.query_width() : 0),
      .key_bias = noise_row(52, 0, biases ? shape.kv_width() : 0),
      .value_bias = noise_row(53, 0, biases ? shape.kv_width() : 0),
      .gate_bias = noise_row(54, 0, biases ? shape.feed_forward_length : 0),
      .up_bias = noise_row(55, 0, biases ? shape.feed_forward_length : 0),
      .output_bias = noise_row(56, 0, biases ? width : 0),
      .query = random_matrix(type, shape.query_width(), width, 60),
      .key = random_matrix(type, shape.kv_width(), width, 61),
      .value = random_matrix(type, shape.kv_width(), width, 62),
      .output = random_matrix(type, width, shape.query_width(), 63),
      .gate = random_matrix(type, shape.feed_forward_length, width, 64),
      .up = random_matrix(type, shape.feed_forward_length, width, 65),
  };
  for (float& value : weights.norm) value += 1.5f;
  return weights;
}

struct AttentionInput {
  std::vector<float> q, stored;
  std::vector<std::byte> pool;
};

std::vector<float> stored_elements(PagedProblem problem, const std::vector<std::byte>& pool,
                                   std::int32_t layer) {
  problem.pool = pool;
  std::vector<float> elements;
  for (std::int32_t s = 0; s < static_cast<std::int32_t>(problem.sequences.size()); ++s) {
    const testing::SequenceSpec& sequence = problem.sequences[static_cast<std::size_t>(s)];
    for (std::int32_t i = sequence.history; i < sequence.history + sequence.new_tokens; ++i) {
      for (std::int32_t head = 0; head < problem.layout.num_kv_heads; ++head) {
        for (std::int32_t d = 0; d < problem.layout.head_dim; ++d) {
          elements.push_back(static_cast<float>(problem.stored_key(s, i, layer, head, d)));
          elements.push_back(static_cast<float>(problem.stored_value(s, i, layer, head, d)));
        }
      }
    }
  }
  return elements;
}

// On either backend: its vectors and rows are where it wants them.
AttentionInput run_attention_input(Backend& backend, const PagedProblem& problem, const LayerWeights& weights,
                                   bool is_device) {
  constexpr std::int32_t kLayer = 1;
  const auto query = backend.prepare_matrix(weights.query.source).value();
  const auto key = backend.prepare_matrix(weights.key.source).value();
  const auto value = backend.prepare_matrix(weights.value.source).value();
  const auto vector = [&](const std::vector<float>& values) {
    return Rows(backend, values, std::max<std::int64_t>(1, static_cast<std::int64_t>(values.size())));
  };
  const Rows norm = vector(weights.norm), query_bias = vector(weights.query_bias),
             key_bias = vector(weights.key_bias), value_bias = vector(weights.value_bias);
  const std::int64_t width = problem.shape.query_width();
  const Rows x(backend, testing::rows_of(problem, 8, problem.shape.embedding_length, 2.0f),
               problem.shape.embedding_length);
  const Rows q(backend, std::vector<float>(static_cast<std::size_t>(problem.num_rows() * width)), width);
  const std::unique_ptr<KvCache> kv =
      is_device ? device_pool(backend, problem) : testing::cache_with(backend, problem);
  const PagedBatch batch = problem.batch();
  backend.begin_step(batch, {});
  backend.attention_input({{norm.span(), 1e-5f},
                           query.get(),
                           key.get(),
                           value.get(),
                           query_bias.span(),
                           key_bias.span(),
                           value_bias.span()},
                          problem.shape.attention, batch, kLayer, x.view(), *kv, q.view());
  AttentionInput result;
  if (is_device) {
    result.q = q.read();
    result.pool = read_pool(*kv);
  } else {
    result.q.assign(q.span().begin(), q.span().end());
    const std::byte* bytes = testing::pool_bytes(backend, *kv);
    result.pool.assign(bytes, bytes + problem.pool.size());
  }
  result.stored = stored_elements(problem, result.pool, kLayer);
  return result;
}

const std::vector<testing::SequenceSpec> kMixed = {{1, 0, 9}, {2, 15, 1}, {3, 30, 4}};
const std::vector<testing::SequenceSpec> kDecodes = {{1, 8, 1}, {2, 15, 1}, {3, 30, 1}};

TEST(CudaOperations, AttentionInputEqualsTheReference) {
  const auto reference = testing::reference_backend();
  for (const Activation activation : {Activation::kF32, Activation::kInt16}) {
    for (const Shape& shape : {testing::odd_shape(), testing::one_tiny_head()}) {
      const auto backend = emulated_backend(shape, {.activation = activation});
      for (const TensorType type : {TensorType::kQ4_1, TensorType::kF16}) {
        for (const KvType kv_type : testing::kEveryKvType) {
          const std::int32_t block_size = type == TensorType::kF16 ? 3 : 16;
          const LayerWeights weights = layer_weights(shape, type, /*biases=*/block_size == 3);
          for (const auto& sequences : {kMixed, kDecodes}) {
            const PagedProblem problem = make_problem(
                shape, sequences, {.type = kv_type, .block_size = block_size, .new_tokens_stored = false});
            const AttentionInput got = run_attention_input(*backend, problem, weights, true);
            const AttentionInput expected = run_attention_input(*reference, problem, weights, false);
            EXPECT_LE(relative_difference(got.q, expected.q), tolerance(activation)) << shape.name;
            EXPECT_LE(relative_difference(got.stored, expected.stored),
                      kv_tolerance(kv_type) + 2 * tolerance(activation))
                << shape.name << " " << testing::name_of(kv_type);
          }
        }
      }
    }
  }
}

TEST(CudaOperations, AttentionInputOfTheDefaultModelsShapeEqualsTheReference) {
  const Shape shape = testing::smollm2_shape();
  const auto backend = emulated_backend(shape);
  const LayerWeights weights = layer_weights(shape, TensorType::kQ4_1, /*biases=*/false);
  for (const auto& sequences : {kMixed, kDecodes}) {
    const PagedProblem problem = make_problem(shape, sequences, {.new_tokens_stored = false});
    const AttentionInput got = run_attention_input(*backend, problem, weights, true);
    const AttentionInput expected =
        run_attention_input(*testing::reference_backend(), problem, weights, false);
    EXPECT_LE(relative_difference(got.q, expected.q), kOneHalfTolerance);
    EXPECT_LE(relative_difference(got.stored, expected.stored),
              kv_tolerance(KvType::kF16) + 2 * kOneHalfTolerance);
  }
}

std::vector<float> some_rows(std::uint64_t seed, std::int64_t num_rows, std::int64_t columns, float scale) {
  std::vector<float> rows;
  for (std::int64_t row = 0; row < num_rows; ++row) {
    const std::vector<float> values = noise_row(seed, static_cast<std::uint64_t>(row), columns, scale);
    rows.insert(rows.end(), values.begin(), values.end());
  }
  return rows;
}

std::vector<float> values_of(const Rows& rows, bool is_device) {
  return is_device ? rows.read() : std::vector<float>(rows.span().begin(), rows.span().end());
}

std::vector<float> run_project_residual(Backend& backend, const Shape& shape, const LayerWeights& weights,
                                        std::int64_t num_rows, bool is_device) {
  const Rows input(backend, some_rows(70, num_rows, shape.query_width(), 1.0f), shape.query_width());
  const Rows residual(backend, some_rows(71, num_rows, shape.embedding_length, 1.0f), shape.embedding_length);
  const Rows bias(backend, weights.output_bias, 1);
  const auto matrix = backend.prepare_matrix(weights.output.source).value();
  backend.project_residual({matrix.get(), bias.span()}, input.view(), residual.view());
  return values_of(residual, is_device);
}

std::vector<float> run_feed_forward_input(Backend& backend, const Shape& shape, const LayerWeights& weights,
                                          std::int64_t num_rows, bool is_device) {
  const Rows x(backend, some_rows(72, num_rows, shape.embedding_length, 3.0f), shape.embedding_length);
  const Rows out(backend, std::vector<float>(static_cast<std::size_t>(num_rows * shape.feed_forward_length)),
                 shape.feed_forward_length);
  const Rows norm(backend, weights.norm, shape.embedding_length), gate_bias(backend, weights.gate_bias, 1),
      up_bias(backend, weights.up_bias, 1);
  const auto gate = backend.prepare_matrix(weights.gate.source).value();
  const auto up = backend.prepare_matrix(weights.up.source).value();
  backend.feed_forward_input({{norm.span(), 1e-5f}, gate.get(), up.get(), gate_bias.span(), up_bias.span()},
                             x.view(), out.view());
  return values_of(out, is_device);
}

TEST(CudaOperations, ProductsOfALayerEqualTheReference) {
  const auto reference = testing::reference_backend();
  const Shape shape = testing::odd_shape();
  for (const Activation activation : {Activation::kF32, Activation::kInt16}) {
    const auto backend = emulated_backend(shape, {.activation = activation});
    for (const TensorType type : {TensorType::kQ4_1, TensorType::kBF16, TensorType::kF32}) {
      const LayerWeights weights = layer_weights(shape, type, /*biases=*/type == TensorType::kF32);
      for (const std::int64_t num_rows : {1, 14}) {
        // bfloat16 numbers have 8 bits, two of them 16.
        const double most = type == TensorType::kBF16 ? (activation == Activation::kF32 ? 1e-4 : 4e-3)
                                                      : tolerance(activation);
        EXPECT_LE(relative_difference(run_project_residual(*backend, shape, weights, num_rows, true),
                                      run_project_residual(*reference, shape, weights, num_rows, false)),
                  most)
            << traits_of(type).name;
        EXPECT_LE(relative_difference(run_feed_forward_input(*backend, shape, weights, num_rows, true),
                                      run_feed_forward_input(*reference, shape, weights, num_rows, false)),
                  4 * most)  // a product of two sums
            << traits_of(type).name;
      }
    }
  }
}

struct Logits {
  std::vector<float> rows, sums, maxima;
};

Logits run_logits(Backend& backend, const std::vector<std::int32_t>& rows) {
  constexpr std::int64_t kVocabulary = 500, kWidth = 576;  // no multiple of 64
  const OwnedMatrix head = random_matrix(TensorType::kQ8_0, kVocabulary, kWidth, 66);
  const Rows bias(backend, noise_row(57, 0, kVocabulary), kVocabulary),
      norm(backend, noise_row(50, 0, kWidth), kWidth);
  const Rows x(backend, some_rows(73, 9, kWidth, 3.0f), kWidth);
  const auto matrix = backend.prepare_matrix(head.source).value();
  Logits result{std::vector<float>(rows.size() * kVocabulary), std::vector<float>(rows.size()),
                std::vector<float>(rows.size() * static_cast<std::size_t>(num_logits_pieces(kVocabulary)))};
  backend.logits({{norm.span(), 1e-5f}, matrix.get(), bias.span()}, x.view(), rows,
                 testing::view(result.rows, kVocabulary),
                 {.log_sum_exp = result.sums, .piece_maxima = result.maxima});
  return result;
}

TEST(CudaOperations, LogitsOfChosenRowsEqualTheReference) {
  const auto backend = emulated_backend(testing::smollm2_shape());
  for (const std::vector<std::int32_t>& rows :
       {std::vector<std::int32_t>{8, 0, 3}, std::vector<std::int32_t>{4}}) {
    const Logits got = run_logits(*backend, rows), expected = run_logits(*testing::reference_backend(), rows);
    EXPECT_LE(relative_difference(got.rows, expected.rows), kOneHalfTolerance);
    EXPECT_LE(relative_difference(got.sums, expected.sums), kOneHalfTolerance);
    EXPECT_LE(relative_difference(got.maxima, expected.maxima), kOneHalfTolerance);
    for (std::size_t i = 0; i < rows.size(); ++i) {  // exactly those of the logits themselves
      for (std::size_t piece = 0; piece < 8; ++piece) {
        const auto first = got.rows.begin() + static_cast<std::ptrdiff_t>(i * 500 + piece * 64);
        EXPECT_EQ(got.maxima[i * 8 + piece], *std::max_element(first, first + (piece == 7 ? 52 : 64)));
      }
    }
  }
}

TEST(CudaOperations, ASummaryIsFiniteExactlyIfARowCanBeDrawnFrom) {
  constexpr std::int64_t kVocabulary = 150, kPieces = 3;
  constexpr float kInfinity = std::numeric_limits<float>::infinity(),
                  kNan = std::numeric_limits<float>::quiet_NaN();
  struct Row {
    float everywhere, at_100;
    bool is_finite;
  };
  const std::vector<Row> rows = {{1.0f, 2.0f, true},
                                 {-kInfinity, 5.0f, true},
                                 {-kInfinity, -kInfinity, false},
                                 {1.0f, kNan, false},
                                 {-kInfinity, kNan, false},
                                 {0.0f, kInfinity, false},
                                 {-kInfinity, kInfinity, false},
                                 {300.0f, -kInfinity, true}};
  std::vector<float> logits;
  for (const Row& row : rows) {
    std::vector<float> values(kVocabulary, row.everywhere);
    values[100] = row.at_100;
    logits.insert(logits.end(), values.begin(), values.end());
  }
  DeviceStatus status;
  Stream stream = Stream::create(status).value();
  const auto num_rows = static_cast<std::int32_t>(rows.size());
  const DeviceMemory device = DeviceMemory::allocate(num_rows * kVocabulary * 4, "test").value();
  const DeviceMemory sums = DeviceMemory::allocate(num_rows * 4, "test").value();
  const DeviceMemory maxima = DeviceMemory::allocate(num_rows * kPieces * 4, "test").value();
  const DeviceMemory scratch = DeviceMemory::allocate(num_rows * kPieces * 4, "test").value();
  ASSERT_EQ(cudaMemcpy(device.data(), logits.data(), logits.size() * 4, cudaMemcpyDefault), cudaSuccess);
  summarise_logits(stream, device.as<float>(), num_rows, kVocabulary, /*soft_cap=*/0.0f, sums.as<float>(),
                   maxima.as<float>(), scratch.as<float>());
  stream.synchronize();
  std::vector<float> got(rows.size());
  ASSERT_EQ(cudaMemcpy(got.data(), sums.data(), got.size() * 4, cudaMemcpyDefault), cudaSuccess);
  for (std::size_t i = 0; i < rows.size(); ++i)
    EXPECT_EQ(std::isfinite(got[i]), rows[i].is_finite) << i << ": " << got[i];
  EXPECT_NEAR(got[0], std::log(149 * std::exp(1.0) + std::exp(2.0)), 1e-5);
  EXPECT_NEAR(got[1], 5.0, 1e-5);
  EXPECT_NEAR(got[7], 300.0 + std::log(149.0), 1e-4);
}

}  // namespace
}  // namespace octavo::kernels::cuda
