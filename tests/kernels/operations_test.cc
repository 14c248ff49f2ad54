// Every operation but attention: each instruction set against the reference, and bit for bit among
// themselves.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>

#include "engine/base/half.h"
#include "kernels/cpu/cpu_backend.h"
#include "kernels/dequantize.h"
#include "kernels/reference/reference_backend.h"
#include "tests/kernels/paged_problem.h"

namespace octavo::kernels::testing {
namespace {

// |error| relative to the largest |out|. Float activations: rounding of float sums. 8-bit activations: the
// float that is rounded may differ in its last bit from the reference's and fall on the other side of a half,
// one step of 127 in one of the columns; against sums of 32 columns and more that stays below a percent.
// 16-bit ones: the same with a step of 32639.
constexpr double kFloatTolerance = 5e-6, kInt8Tolerance = 1e-2, kInt16Tolerance = 5e-5;
constexpr Activation kEveryActivation[] = {Activation::kF32, Activation::kInt8, Activation::kInt16};
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
  switch (activation) {
    case Activation::kF32: return kFloatTolerance;
    case Activation::kInt8: return kInt8Tolerance;
    case Activation::kInt16: return kInt16Tolerance;
  }
  return 0.0;
}

struct LayerWeights {
  Shape shape;
  std::vector<float> norm, query_bias, key_bias, value_bias, gate_bias, up_bias, output_bias;
  OwnedMatrix query, key, value, output, gate, up;
};

LayerWeights layer_weights(const Shape& shape, TensorType type, bool biases) {
  const std::int64_t width = shape.embedding_length;
  LayerWeights weights{
      .shape = shape,
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

// What attention_input leaves behind.
struct AttentionInput {
  std::vector<float> q;
  std::vector<float> stored;  // K and V of every new token in every layer, read back
  std::vector<std::byte> pool;
};

std::vector<float> stored_elements(PagedProblem problem, std::int32_t layer) {
  std::vector<float> elements;
  for (std::int32_t s = 0; s < static_cast<std::int32_t>(problem.sequences.size()); ++s) {
    const SequenceSpec& sequence = problem.sequences[static_cast<std::size_t>(s)];
    for (std::int32_t i = 0; i < sequence.new_tokens; ++i) {
      for (std::int32_t head = 0; head < problem.layout.num_kv_heads; ++head) {
        for (std::int32_t d = 0; d < problem.layout.head_dim; ++d) {
          const std::int32_t position = sequence.history + i;
          elements.push_back(static_cast<float>(problem.stored_key(s, position, layer, head, d)));
          elements.push_back(static_cast<float>(problem.stored_value(s, position, layer, head, d)));
        }
      }
    }
  }
  return elements;
}

AttentionInput run_attention_input(Backend& backend, PagedProblem problem, const LayerWeights& weights) {
  constexpr std::int32_t kLayer = 1;
  const auto query = backend.prepare_matrix(weights.query.source).value();
  const auto key = backend.prepare_matrix(weights.key.source).value();
  const auto value = backend.prepare_matrix(weights.value.source).value();
  const AttentionInputWeights arguments{{weights.norm, 1e-5f}, query.get(),        key.get(),
                                        value.get(),           weights.query_bias, weights.key_bias,
                                        weights.value_bias};
  const std::vector<float> x = rows_of(problem, 8, problem.shape.embedding_length, 2.0f);
  const std::unique_ptr<KvCache> kv = cache_with(backend, problem);
  AttentionInput result;
  result.q.resize(static_cast<std::size_t>(problem.num_rows() * problem.shape.query_width()));
  backend.attention_input(arguments, problem.shape.attention, problem.batch(), kLayer,
                          view(x, problem.shape.embedding_length), *kv,
                          view(result.q, problem.shape.query_width()));
  const std::byte* bytes = pool_bytes(backend, *kv);
  result.pool.assign(bytes, bytes + problem.pool.size());
  problem.pool = result.pool;
  result.stored = stored_elements(problem, kLayer);
  return result;
}

std::vector<float> run_project_residual(Backend& backend, const LayerWeights& weights, std::int64_t first_row,
                                        std::int64_t num_rows) {
  const std::int64_t width = weights.shape.embedding_length;
  std::vector<float> input, residual;
  for (std::int64_t row = first_row; row < first_row + num_rows; ++row) {
    const std::vector<float> a = noise_row(70, static_cast<std::uint64_t>(row), weights.shape.query_width());
    const std::vector<float> b = noise_row(71, static_cast<std::uint64_t>(row), width);
    input.insert(input.end(), a.begin(), a.end());
    residual.insert(residual.end(), b.begin(), b.end());
  }
  const auto matrix = backend.prepare_matrix(weights.output.source).value();
  backend.project_residual({matrix.get(), weights.output_bias},
                           view(std::as_const(input), weights.shape.query_width()), view(residual, width));
  return residual;
}

std::vector<float> run_feed_forward_input(Backend& backend, const LayerWeights& weights,
                                          std::int64_t first_row, std::int64_t num_rows) {
  std::vector<float> x;
  for (std::int64_t row = first_row; row < first_row + num_rows; ++row) {
    const std::vector<float> a =
        noise_row(72, static_cast<std::uint64_t>(row), weights.shape.embedding_length, 3.0f);
    x.insert(x.end(), a.begin(), a.end());
  }
  std::vector<float> out(static_cast<std::size_t>(num_rows * weights.shape.feed_forward_length));
  const auto gate = backend.prepare_matrix(weights.gate.source).value();
  const auto up = backend.prepare_matrix(weights.up.source).value();
  backend.feed_forward_input(
      {{weights.norm, 1e-5f}, gate.get(), up.get(), weights.gate_bias, weights.up_bias},
      view(std::as_const(x), weights.shape.embedding_length), view(out, weights.shape.feed_forward_length));
  return out;
}

std::vector<float> run_logits(Backend& backend, const LayerWeights& weights,
                              const std::vector<std::int32_t>& rows) {
  constexpr std::int64_t kVocabulary = 500;  // no multiple of 16
  const OwnedMatrix head = random_matrix(TensorType::kQ8_0, kVocabulary, weights.shape.embedding_length, 66);
  const std::vector<float> bias = noise_row(57, 0, kVocabulary);
  std::vector<float> x;
  for (std::uint64_t row = 0; row < 9; ++row) {
    const std::vector<float> a = noise_row(73, row, weights.shape.embedding_length, 3.0f);
    x.insert(x.end(), a.begin(), a.end());
  }
  std::vector<float> out(rows.size() * kVocabulary), sums(rows.size());
  std::vector<float> maxima(rows.size() * static_cast<std::size_t>(num_logits_pieces(kVocabulary)));
  const auto matrix = backend.prepare_matrix(head.source).value();
  backend.logits({{weights.norm, 1e-5f}, matrix.get(), bias},
                 view(std::as_const(x), weights.shape.embedding_length), rows, view(out, kVocabulary),
                 {.log_sum_exp = sums, .piece_maxima = maxima});
  return out;
}

class Operations : public ::testing::TestWithParam<cpu::InstructionSet> {};

INSTANTIATE_TEST_SUITE_P(EveryInstructionSet, Operations, ::testing::ValuesIn(cpu::usable_instruction_sets()),
                         [](const auto& info) { return std::string(cpu::instruction_set_name(info.param)); });

const std::vector<SequenceSpec> kMixed = {{1, 0, 9}, {2, 15, 1}, {3, 30, 4}};

TEST_P(Operations, AttentionInputEqualsTheReference) {
  for (const Activation activation : kEveryActivation) {
    const auto cpu = cpu_backend(GetParam(), 2, activation);
    const auto reference = reference_backend(activation);
    for (const Shape& shape : {smollm2_shape(), odd_shape(), one_tiny_head()}) {
      for (const TensorType type : {TensorType::kQ4_1, TensorType::kF16}) {
        for (const KvType kv_type : kEveryKvType) {
          for (const std::int32_t block_size : {3, 16}) {
            const LayerWeights weights = layer_weights(shape, type, /*biases=*/block_size == 3);
            const PagedProblem problem = make_problem(
                shape, kMixed, {.type = kv_type, .block_size = block_size, .new_tokens_stored = false});
            const AttentionInput got = run_attention_input(*cpu, problem, weights);
            const AttentionInput expected = run_attention_input(*reference, problem, weights);
            EXPECT_LE(relative_difference(got.q, expected.q), tolerance(activation)) << shape.name;
            EXPECT_LE(relative_difference(got.stored, expected.stored),
                      kv_tolerance(kv_type) + tolerance(activation))
                << shape.name << " " << name_of(kv_type);
          }
        }
      }
    }
  }
}

TEST_P(Operations, AttentionInputWritesItsSlotsAndNothingElse) {
  const LayerWeights weights = layer_weights(odd_shape(), TensorType::kQ4_1, /*biases=*/true);
  for (const KvType type : kEveryKvType) {
    PagedProblem problem =
        make_problem(odd_shape(), kMixed, {.type = type, .block_size = 8, .new_tokens_stored = false});
    const AttentionInput result = run_attention_input(*cpu_backend(GetParam()), problem, weights);
    // Put back what the operation may have written; the rest must be as it was.
    const std::vector<std::byte> before = problem.pool;
    problem.pool = result.pool;
    const auto put_back = [&](std::byte* start, std::int64_t num_bytes) {
      const std::ptrdiff_t offset = start - problem.pool.data();
      std::copy_n(before.begin() + offset, num_bytes, problem.pool.begin() + offset);
    };
    for (std::int32_t s = 0; s < 3; ++s) {
      const SequenceSpec& sequence = kMixed[static_cast<std::size_t>(s)];
      for (std::int32_t i = sequence.history; i < sequence.history + sequence.new_tokens; ++i) {
        for (std::int32_t head = 0; head < 2; ++head) {
          for (std::int32_t d = 0; d < 80; ++d) {
            put_back(problem.key(s, i, 1, head, d), kv_element_bytes(type));
            put_back(problem.value(s, i, 1, head, d), kv_element_bytes(type));
          }
          if (!problem.layout.has_scales()) continue;
          put_back(problem.key_scale(s, i, 1, head), 4);
          put_back(problem.value_scale(s, i, 1, head), 4);
        }
      }
    }
    EXPECT_TRUE(problem.pool == before) << name_of(type);
  }
}

TEST_P(Operations, AttentionInputGivesTheSameBitsForEveryChunkThreadAndInstructionSet) {
  for (const Activation activation : kEveryActivation) {
    const Shape shape = smollm2_shape();
    const LayerWeights weights = layer_weights(shape, TensorType::kQ4_1, /*biases=*/false);
    const auto portable = cpu_backend(cpu::InstructionSet::kPortable, 1, activation);
    const auto whole = make_problem(shape, {{5, 0, 23}}, {.new_tokens_stored = false});
    const AttentionInput expected = run_attention_input(*portable, whole, weights);
    const auto elements_per_row = static_cast<std::int64_t>(expected.stored.size()) / 23;
    for (const std::int32_t threads : {1, 2, 3}) {
      const auto cpu = cpu_backend(GetParam(), threads, activation);
      for (const std::int32_t chunk : {1, 4, 5, 23}) {
        for (std::int32_t first = 0; first < 23; first += chunk) {
          const std::int32_t count = std::min(chunk, 23 - first);
          const auto part = make_problem(shape, {{4, 3, 2}, {5, first, count}},
                                         {.block_size = 8, .new_tokens_stored = false});
          const AttentionInput got = run_attention_input(*cpu, part, weights);
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

TEST_P(Operations, ProjectResidualEqualsTheReference) {
  for (const Activation activation : kEveryActivation) {
    for (const Shape& shape : {smollm2_shape(), odd_shape()}) {
      for (const TensorType type : {TensorType::kQ4_1, TensorType::kF32}) {
        const LayerWeights weights = layer_weights(shape, type, /*biases=*/type == TensorType::kF32);
        const auto got = run_project_residual(*cpu_backend(GetParam(), 2, activation), weights, 0, 14);
        const auto expected = run_project_residual(*reference_backend(activation), weights, 0, 14);
        EXPECT_LE(relative_difference(got, expected), kFloatTolerance)
            << shape.name;  // the same input, so the same rounding
      }
    }
  }
}

TEST_P(Operations, FeedForwardInputEqualsTheReference) {
  for (const Activation activation : kEveryActivation) {
    for (const Shape& shape : {smollm2_shape(), odd_shape()}) {
      const LayerWeights weights = layer_weights(shape, TensorType::kQ4_1, /*biases=*/shape.name == "odd");
      const auto got = run_feed_forward_input(*cpu_backend(GetParam(), 2, activation), weights, 0, 6);
      const auto expected = run_feed_forward_input(*reference_backend(activation), weights, 0, 6);
      EXPECT_LE(relative_difference(got, expected), 4 * tolerance(activation))
          << shape.name;  // a product of two sums
    }
  }
}

TEST_P(Operations, LogitsOfChosenRowsEqualTheReference) {
  const LayerWeights weights = layer_weights(smollm2_shape(), TensorType::kQ4_1, /*biases=*/false);
  for (const Activation activation : kEveryActivation) {
    const auto got = run_logits(*cpu_backend(GetParam(), 2, activation), weights, {8, 0, 3});
    const auto expected = run_logits(*reference_backend(activation), weights, {8, 0, 3});
    EXPECT_LE(relative_difference(got, expected), tolerance(activation));
  }
}

TEST_P(Operations, RowsGiveTheSameBitsAloneAndTogetherOnEveryThreadAndInstructionSet) {
  const LayerWeights weights = layer_weights(smollm2_shape(), TensorType::kQ4_1, /*biases=*/true);
  for (const Activation activation : kEveryActivation) {
    const auto portable = cpu_backend(cpu::InstructionSet::kPortable, 1, activation);
    const auto residual = run_project_residual(*portable, weights, 0, 15);
    const auto gated = run_feed_forward_input(*portable, weights, 0, 15);
    const auto logits = run_logits(*portable, weights, {0, 1, 2, 3, 4, 5, 6, 7, 8});
    for (const std::int32_t threads : {1, 2, 3}) {
      const auto cpu = cpu_backend(GetParam(), threads, activation);
      for (const auto& [first, count] : {std::pair{0, 15}, {0, 1}, {14, 1}, {3, 7}}) {
        const auto some_residual = run_project_residual(*cpu, weights, first, count);
        EXPECT_TRUE(same_bits(some_residual.data(), residual.data() + first * 576, count * 576));
        const auto some_gated = run_feed_forward_input(*cpu, weights, first, count);
        EXPECT_TRUE(same_bits(some_gated.data(), gated.data() + first * 1536, count * 1536));
      }
      const auto some_logits = run_logits(*cpu, weights, {7, 2});
      EXPECT_TRUE(same_bits(some_logits.data(), logits.data() + 7 * 500, 500));
      EXPECT_TRUE(same_bits(some_logits.data() + 500, logits.data() + 2 * 500, 500));
    }
  }
}

// The last panel of the table is cut, and rows of K types are longer than a head's eight groups.
TEST_P(Operations, EmbedExpandsTheRowsOfTheTable) {
  constexpr std::int64_t kRows = 39;
  const std::vector<std::int32_t> token_ids = {6, 0, 6, 1, 38, 17, 31};
  for (const TensorType type :
       {TensorType::kQ4_0, TensorType::kQ4_1, TensorType::kQ5_0, TensorType::kQ5_1, TensorType::kQ8_0,
        TensorType::kQ2_K, TensorType::kQ3_K, TensorType::kQ4_K, TensorType::kQ5_K, TensorType::kQ6_K,
        TensorType::kF16, TensorType::kBF16, TensorType::kF32}) {
    const std::int64_t width = traits_of(type).block_elements > 32 ? 768 : 96;
    const OwnedMatrix table = random_matrix(type, kRows, width, 80);
    std::vector<float> all(static_cast<std::size_t>(kRows * width)), cpu(token_ids.size() * width);
    std::vector<float> reference(cpu.size());
    dequantize(type, table.bytes.data(), kRows * width, all.data());
    const auto backend = cpu_backend(GetParam()), oracle = reference_backend();
    const auto prepared = backend->prepare_matrix(table.source).value(),
               defined = oracle->prepare_matrix(table.source).value();
    backend->embed({.tokens = prepared.get()}, token_ids, {}, view(cpu, width));
    oracle->embed({.tokens = defined.get()}, token_ids, {}, view(reference, width));
    for (std::size_t i = 0; i < token_ids.size(); ++i) {
      const auto row = static_cast<std::int64_t>(i);
      EXPECT_TRUE(same_bits(cpu.data() + row * width, all.data() + token_ids[i] * width, width))
          << traits_of(type).name << " " << token_ids[i];
      EXPECT_TRUE(same_bits(reference.data() + row * width, all.data() + token_ids[i] * width, width));
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

TEST_P(Operations, SiluIsAccurateOverTheWholeRange) {
  const cpu::KernelTable& kernels = cpu::kernel_table(GetParam());
  std::vector<float> z;
  for (float value = -80.0f; value < 80.0f; value += 0.00731f) z.push_back(value);
  for (const float value : {0.0f, -0.0f, 1e-30f, -1e-30f, 1e-6f, 90.0f, 1000.0f, -100.0f, -1000.0f})
    z.push_back(value);
  std::vector<float> got = z;
  const std::vector<float> ones(z.size(), 1.0f);
  kernels.silu_mul(got.data(), ones.data(), static_cast<std::int64_t>(got.size()));
  for (std::size_t i = 0; i < z.size(); ++i) {
    const double expected = double{z[i]} / (1.0 + std::exp(-double{z[i]}));
    EXPECT_NEAR(got[i], expected, 4e-7 * std::fabs(expected) + 1e-35) << z[i];
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

// Every number of a type, the floats between them, and what lies beyond.
std::vector<float> numbers_to_round() {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  std::vector<float> numbers = {0.0f,      -0.0f,      1e-45f,
                                -1e-38f,   3e38f,      -3e38f,
                                kInfinity, -kInfinity, std::numeric_limits<float>::quiet_NaN()};
  for (std::uint32_t code = 0; code < 0x10000; ++code) {
    const float exact = half_to_float(static_cast<std::uint16_t>(code));
    const float next = half_to_float(static_cast<std::uint16_t>(code + 1));
    const float between = exact + (next - exact) * (0.5f + 1e-4f * noise(3, code));
    for (const float value : {exact, code % 3 == 0 ? (exact + next) / 2 : between, 1.3f * exact})
      if (!std::isnan(value)) numbers.push_back(value);
  }
  return numbers;
}

TEST_P(Operations, KvWriteRoundsFloatsToEveryTypeAsTheDefinitionSays) {
  const cpu::KernelTable& kernels = cpu::kernel_table(GetParam());
  constexpr std::int32_t kHeadDim = 83, kStride = 3;  // no whole number of vectors
  std::vector<float> numbers = numbers_to_round();
  numbers.resize(numbers.size() / kHeadDim * kHeadDim);
  for (const KvType type : kEveryKvType) {
    if (type == KvType::kInt8) continue;
    const auto size = static_cast<std::size_t>(kv_element_bytes(type));
    for (std::size_t start = 0; start < numbers.size(); start += kHeadDim) {
      std::vector<std::byte> key(kHeadDim * kStride * size), value(kHeadDim * size), expected(size);
      const float* const source = numbers.data() + start;
      kernels.write_kv(source, source,
                       {.type = type,
                        .head_dim = kHeadDim,
                        .key_stride = kStride,
                        .key = key.data(),
                        .value = value.data()});
      for (std::size_t d = 0; d < kHeadDim; ++d) {
        write_element(type, expected.data(), source[d]);
        ASSERT_EQ(std::memcmp(&key[d * kStride * size], expected.data(), size), 0)
            << name_of(type) << " " << source[d];
        ASSERT_EQ(std::memcmp(&value[d * size], expected.data(), size), 0)
            << name_of(type) << " " << source[d];
      }
    }
  }
}

double squared_error(const std::vector<float>& numbers, float scale) {
  double sum = 0.0;
  for (const float number : numbers) {
    const double error = number - double{scale} * std::nearbyint(number / double{scale});
    sum += error * error;
  }
  return sum;
}

// Of the allowed scales the best, and with it the nearest integers.
void expect_rounded_to_int8(const std::vector<float>& numbers, const std::int8_t* integers, float scale,
                            std::uint64_t seed) {
  double least = std::numeric_limits<double>::infinity();
  bool is_allowed = false;
  for (int c = 0; c < 8; ++c) {
    const float candidate = int8_scale(numbers) * (1.0f + static_cast<float>(c) / 128.0f);
    least = std::min(least, squared_error(numbers, candidate));
    is_allowed |= scale == candidate;
  }
  ASSERT_TRUE(is_allowed) << "seed " << seed;
  ASSERT_LE(squared_error(numbers, scale), least * (1.0 + 1e-4)) << "seed " << seed;
  for (std::size_t d = 0; d < numbers.size(); ++d) {
    ASSERT_EQ(integers[d], std::nearbyint(numbers[d] / scale)) << "seed " << seed;
  }
}

TEST_P(Operations, KvWriteGivesEachKeyAndValueOfInt8ItsBestScale) {
  const cpu::KernelTable& kernels = cpu::kernel_table(GetParam());
  const cpu::KernelTable& portable = cpu::kernel_table(cpu::InstructionSet::kPortable);
  constexpr std::int32_t kHeadDim = 83;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    const float magnitude = std::ldexp(1.0f, static_cast<int>(seed % 60) - 30);
    const std::vector<float> key = noise_row(seed, 1, kHeadDim, magnitude);
    std::vector<float> value = noise_row(seed, 2, kHeadDim, 5.0f);
    if (seed % 4 == 0) {  // multiples of half a step, so that many lie between two integers
      value = noise_row(seed, 3, kHeadDim, 254.0f);
      for (float& number : value) number = std::nearbyint(number) / 2;
      value[seed % kHeadDim] = 127.0f;
    }
    struct Written {
      std::int8_t keys[kHeadDim], values[kHeadDim];
      float key_scale, value_scale;
    };
    const auto write_with = [&](const cpu::KernelTable& table, Written& written) {
      table.write_kv(key.data(), value.data(),
                     {.type = KvType::kInt8,
                      .head_dim = kHeadDim,
                      .key_stride = 1,
                      .key = written.keys,
                      .value = written.values,
                      .key_scale = &written.key_scale,
                      .value_scale = &written.value_scale});
    };
    Written got = {}, expected = {};
    write_with(kernels, got);
    write_with(portable, expected);
    expect_rounded_to_int8(key, got.keys, got.key_scale, seed);
    expect_rounded_to_int8(value, got.values, got.value_scale, seed);
    ASSERT_EQ(std::memcmp(&got, &expected, sizeof got), 0) << "another instruction set wrote other bytes";
  }
}

TEST_P(Operations, KvWriteOfInt8KnowsZerosInfinitiesAndNan) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const auto cpu = cpu_backend(GetParam());
  const auto reference = reference_backend();
  const cpu::KernelTable& kernels = cpu::kernel_table(GetParam());
  constexpr std::int32_t kHeadDim = 20;
  const KvLayout layout{KvType::kInt8, 1, 1, 1, kHeadDim};
  const auto expected_kv = reference->allocate_kv_cache(layout, 1).value();
  auto& expected = static_cast<reference::ReferenceKvCache&>(*expected_kv);
  for (const float odd : {0.0f, 1e-44f, 1e-37f, 1e-35f, -1e-35f, kInfinity, -kInfinity,
                          std::numeric_limits<float>::quiet_NaN()}) {
    std::vector<float> key(kHeadDim, 0.0f), value(kHeadDim, odd);
    key[17] = odd;
    std::vector<std::byte> head(static_cast<std::size_t>(layout.head_bytes()));
    kernels.write_kv(key.data(), value.data(),
                     {.type = KvType::kInt8,
                      .head_dim = kHeadDim,
                      .key_stride = 1,
                      .key = head.data(),
                      .value = head.data() + layout.half_head_bytes(),
                      .key_scale = reinterpret_cast<float*>(head.data() + layout.key_scale_offset(0)),
                      .value_scale = reinterpret_cast<float*>(head.data() + layout.value_scale_offset(0))});
    expected.write({0, 0, 0, 0}, key.data(), value.data());
    const auto scale = *reinterpret_cast<const float*>(head.data() + layout.key_scale_offset(0));
    if (!std::isfinite(odd)) {
      EXPECT_TRUE(std::isnan(scale)) << odd;
      EXPECT_TRUE(std::isnan(expected.read_key({0, 0, 0, 0}, 3))) << odd;
      continue;
    }
    EXPECT_EQ(scale, std::fabs(odd) < 1e-36f ? 0.0f : std::fabs(odd) / 127.0f);
    EXPECT_EQ(std::memcmp(head.data(), expected.data(), head.size()), 0) << odd;
  }
}

}  // namespace
}  // namespace octavo::kernels::testing
