// Writing keys and values, and paged attention, run on the emulated device, against kernels/reference.
//
// Bounds: largest |difference| over largest |expected|. The queries are drawn so that scores spread over
// about ten powers of two, the weights of softmax over as many.
//   split tiles, float16 operands (f16, both fp8)    1e-5  queries and weights have 22 bits; sums in float
//   bfloat16 operands (bf16, int8, f32)              1e-4  queries and weights have 16 bits, f32's keys and
//   values too prefill tiles, float16 operands                  2e-3  queries and weights have 11 bits
// A wrong token, dimension or weight is of the order of 1.
#include "kernels/cuda/attention/kv_write.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "kernels/reference/reference_backend.h"
#include "tests/cuda/attention_problem.h"

namespace octavo::kernels::cuda {
namespace {

using testing::kEveryKvType;
using testing::make_problem;
using testing::name_of;
using testing::relative_difference;
using testing::rows_of;
using testing::same_bits;

// The rows that prefill tiles compute are those of sequences with more than 64 rows times query heads of a KV
// head.
const std::vector<SequenceSpec>& mixed() {
  static const std::vector<SequenceSpec> sequences = {{1, 0, 1},  {2, 0, 37}, {3, 130, 30},
                                                      {4, 31, 1}, {5, 15, 2}, {6, 200, 1}};
  return sequences;
}

TEST(CudaPagedAttention, EqualsTheReferenceForEveryTypeAndBlockSize) {
  std::vector<std::pair<KvType, std::int32_t>> cases;
  for (const KvType type : kEveryKvType) {
    for (const std::int32_t block_size : {1, 8, 16, 21, 32}) cases.emplace_back(type, block_size);
  }
  for (const auto& [type, block_size] : test::some_of(cases, 4)) {
    const PagedProblem problem =
        make_problem(testing::odd_shape(), mixed(), {.type = type, .block_size = block_size});
    EXPECT_LE(relative_difference(attend(problem, kSmallDevice), expected_attention(problem)),
              bound_for(type, true))
        << describe(problem);
  }
}

TEST(CudaPagedAttention, EqualsTheReferenceForDecodesOfEveryTypeAndBlockSize) {
  const std::vector<SequenceSpec> decodes = {{1, 0, 1}, {2, 97, 1}, {3, 130, 2}, {4, 31, 1}};
  for (const KvType type : kEveryKvType) {
    for (const std::int32_t block_size : {1, 8, 16, 21, 32, 256}) {
      for (const Shape& shape : {testing::odd_shape(), testing::one_tiny_head()}) {
        const PagedProblem problem = make_problem(shape, decodes, {.type = type, .block_size = block_size});
        EXPECT_LE(relative_difference(attend(problem, kSmallDevice), expected_attention(problem)),
                  bound_for(type, false))
            << describe(problem);
      }
    }
  }
}

TEST(CudaPagedAttention, EqualsTheReferenceForHeadsOfSmolLm2AndLlama3) {
  for (const KvType type : {KvType::kF16, KvType::kInt8}) {
    const PagedProblem small = make_problem(testing::smollm2_shape(), mixed(), {.type = type});
    EXPECT_LE(relative_difference(attend(small, kLargeDevice), expected_attention(small)),
              bound_for(type, true));
    const PagedProblem large =
        make_problem(testing::llama3_shape(), {{1, 40, 18}, {2, 130, 1}}, {.type = type});
    EXPECT_LE(relative_difference(attend(large, kLargeDevice), expected_attention(large)),
              bound_for(type, true));
  }
}

// Of the lengths at which a slice, a block, a round of the warps, a partition begins or ends; all in one
// step.
TEST(CudaPagedAttention, EqualsTheReferenceAroundEveryBorder) {
  std::vector<SequenceSpec> sequences;
  std::uint64_t id = 100;
  for (const std::int32_t history : {0,  1,  7,   8,   14,  15,  16,  17,  31,  32,  47,  62, 63,
                                     64, 65, 126, 127, 128, 191, 255, 256, 257, 511, 512, 599}) {
    sequences.push_back({id++, history, 1});
  }
  for (const AttentionOptions& options : {kSmallDevice, kLargeDevice, kDeterministic}) {
    const PagedProblem problem = make_problem(testing::odd_shape(), sequences, {});
    EXPECT_LE(relative_difference(attend(problem, options), expected_attention(problem)),
              bound_for(KvType::kF16, false));
  }
}

TEST(CudaPagedAttention, InPartitionsEqualsTheReference) {
  for (const std::int32_t history : {130, 600}) {
    for (const std::int32_t rows : {1, 5}) {
      const PagedProblem problem = make_problem(testing::smollm2_shape(), {{1, history, rows}}, {});
      const std::vector<float> expected = expected_attention(problem);
      EXPECT_LE(relative_difference(attend(problem, kLargeDevice), expected), 1e-5) << history;
      EXPECT_LE(relative_difference(attend(problem, kDeterministic), expected), 1e-5) << history;
    }
  }
}

TEST(CudaPagedAttention, EqualsTheReferenceForOddAndLargeHeads) {
  struct Case {
    std::int32_t heads, kv_heads, head_dim;
    KvType type;
  };
  for (const Case& c : {Case{2, 1, 256, KvType::kF16},
                        {2, 1, 256, KvType::kF32},
                        {1, 1, 192, KvType::kBf16},
                        {3, 1, 33, KvType::kF16},
                        {2, 2, 1, KvType::kInt8},
                        {20, 1, 16, KvType::kF16},
                        {71, 1, 64, KvType::kFp8E4m3}}) {
    const PagedProblem problem = make_problem(shape_of(c.heads, c.kv_heads, c.head_dim),
                                              {{1, 20, 1}, {2, 33, 2}, {3, 5, 70}}, {.type = c.type});
    const std::vector<float> expected = expected_attention(problem);
    for (const AttentionOptions& options : {kSmallDevice, kLargeDevice}) {
      EXPECT_LE(relative_difference(attend(problem, options), expected), bound_for(c.type, true))
          << c.heads << "/" << c.kv_heads << " heads of " << c.head_dim << ", " << name_of(c.type);
    }
  }
}

TEST(CudaPagedAttention, ReadsSharedBlocksAndTheLayerThatItIsAskedFor) {
  const std::vector<SequenceSpec> shared = {{1, 64, 1}, {2, 64, 1, 0, 48}, {3, 80, 3, 1, 32}};
  const PagedProblem problem =
      make_problem(testing::odd_shape(), shared, {.num_layers = 3, .share_blocks = true});
  for (const std::int32_t layer : {0, 1, 2}) {
    EXPECT_LE(relative_difference(attend(problem, kSmallDevice, layer), expected_attention(problem, layer)),
              1e-5);
  }
}

TEST(CudaPagedAttention, GivesARowTheSameBitsInEveryBatchAndChunkWhenDeterministic) {
  for (const KvType type : {KvType::kF16, KvType::kInt8}) {
    expect_the_same_rows_alone(testing::odd_shape(), type,
                               {{0, 1}, {1, 1}, {11, 1}, {12, 1}, {13, 1}, {59, 1}, {7, 30}, {5, 55}});
  }
}

// Scratch for few partial sums: the tiles of a step then go in several launches.
TEST(CudaPagedAttention, GivesTheSameBitsInManyLaunches) {
  AttentionOptions little = kDeterministic;
  little.num_multiprocessors = 1;
  const PagedProblem problem = make_problem(testing::odd_shape(), {{1, 520, 40}, {2, 0, 1}, {3, 600, 9}}, {});
  const std::vector<float> one = attend(problem, kDeterministic), many = attend(problem, little);
  EXPECT_TRUE(same_bits(one.data(), many.data(), static_cast<std::int64_t>(one.size())));
}

TEST(CudaPagedAttention, KeepsASequencesInfinitiesToItself) {
  for (const KvType type : {KvType::kF16, KvType::kInt8, KvType::kFp8E4m3}) {
    PagedProblem problem =
        make_problem(testing::odd_shape(), {{1, 40, 40}, {2, 30, 1}, {3, 0, 40}}, {.type = type});
    const std::vector<float> before = attend(problem, kSmallDevice);
    constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
    for (std::int32_t head = 0; head < 2; ++head) {
      if (type == KvType::kInt8) {
        std::memcpy(problem.value_scale(1, 12, 1, head), &kNan, sizeof kNan);
      } else {
        testing::write_element(type, problem.value(1, 12, 1, head, 0), kNan);
      }
    }
    const std::vector<float> after = attend(problem, kSmallDevice);
    const std::int64_t width = problem.shape.query_width();
    EXPECT_TRUE(same_bits(after.data(), before.data(), 40 * width));
    EXPECT_TRUE(same_bits(after.data() + 41 * width, before.data() + 41 * width, 40 * width));
    for (std::int32_t head = 0; head < 4; ++head) {
      EXPECT_TRUE(std::isnan(after[static_cast<std::size_t>(40 * width + head * 80)]))
          << name_of(type) << ": a NaN was lost";
    }
  }
}

// ---- keys and values into their slots

struct Written {
  std::vector<std::byte> pool;
  std::vector<float> q;
};

struct NewTokens {
  std::vector<float> q, k, v;
};

NewTokens new_tokens(const PagedProblem& problem) {
  return {rows_of(problem, 81, problem.shape.query_width(), 2.0f),
          rows_of(problem, 82, problem.shape.kv_width(), 2.0f),
          rows_of(problem, 83, problem.shape.kv_width(), 1.0f)};
}

Written written_by_device(const PagedProblem& problem, const NewTokens& tokens, std::int32_t layer) {
  TestStream stream;
  DeviceStep step(problem);
  const DeviceArray<float> q(tokens.q), k(tokens.k), v(tokens.v);
  write_kv(stream.get(), problem.shape.attention, step.batch(), problem.layout, layer, q.data(),
           problem.shape.query_width(), k.data(), v.data(), problem.shape.kv_width(), step.pool());
  stream.finish();
  return {step.read_pool(), q.read()};
}

void rotate(std::vector<float>& rows, std::int32_t heads, const PagedProblem& problem) {
  const AttentionShape& shape = problem.shape.attention;
  for (std::int64_t row = 0; row < problem.num_rows(); ++row) {
    const float* const angles = problem.rotations.data() + row * shape.rotary_dim;
    for (std::int32_t head = 0; head < heads; ++head) {
      float* const numbers = rows.data() + (row * heads + head) * shape.head_dim;
      for (std::int32_t i = 0; i < shape.rotary_dim / 2; ++i) {
        const bool neighbours = shape.pairing == RopePairing::kInterleaved;
        float& first = numbers[neighbours ? 2 * i : i];
        float& second = numbers[neighbours ? 2 * i + 1 : i + shape.rotary_dim / 2];
        const double a = first, b = second, cosine = angles[2 * i], sine = angles[2 * i + 1];
        first = static_cast<float>(a * cosine - b * sine), second = static_cast<float>(a * sine + b * cosine);
      }
    }
  }
}

// By the reference, from rotated keys.
std::vector<std::byte> written_by_reference(const PagedProblem& problem, const NewTokens& tokens,
                                            std::int32_t layer) {
  const auto reference = testing::reference_backend();
  const auto kv = testing::cache_with(*reference, problem);
  auto& cache = static_cast<reference::ReferenceKvCache&>(*kv);
  const AttentionShape& shape = problem.shape.attention;
  for (std::int64_t row = 0; row < problem.num_rows(); ++row) {
    const std::int32_t slot = problem.slot_mapping[static_cast<std::size_t>(row)],
                       block_size = problem.layout.block_size;
    for (std::int32_t head = 0; head < shape.num_kv_heads; ++head) {
      const std::int64_t at = row * problem.shape.kv_width() + head * shape.head_dim;
      cache.write({slot / block_size, layer, head, slot % block_size}, tokens.k.data() + at,
                  tokens.v.data() + at);
    }
  }
  return {cache.data(), cache.data() + problem.pool.size()};
}

TEST(CudaKvWrite, GivesTheReferencesBytesInEveryTypeAndBlockSize) {
  for (const KvType type : kEveryKvType) {
    for (const std::int32_t block_size : {1, 8, 16, 21}) {
      for (const Shape& shape :
           {testing::odd_shape(), testing::one_tiny_head(), shape_of(2, 1, 33), shape_of(1, 1, 256)}) {
        PagedProblem problem =
            make_problem(shape, {{1, 0, 9}, {2, 30, 1}, {3, 15, 4}},
                         {.type = type, .block_size = block_size, .new_tokens_stored = false});
        // Angle 0: the rotation rounds nothing, so that every byte is defined.
        for (std::size_t i = 0; i < problem.rotations.size(); ++i)
          problem.rotations[i] = i % 2 == 0 ? 1.0f : 0.0f;
        const NewTokens tokens = new_tokens(problem);
        const Written written = written_by_device(problem, tokens, 1);
        EXPECT_TRUE(written.pool == written_by_reference(problem, tokens, 1))
            << shape.name << " " << describe(problem);
        EXPECT_EQ(written.q, tokens.q);
      }
    }
  }
}

TEST(CudaKvWrite, RotatesQueriesAndKeys) {
  for (const Shape& shape : {testing::odd_shape(), testing::smollm2_shape()}) {
    const PagedProblem problem =
        make_problem(shape, {{1, 0, 5}, {2, 700, 2}}, {.type = KvType::kF32, .new_tokens_stored = false});
    NewTokens tokens = new_tokens(problem);
    const Written written = written_by_device(problem, tokens, 0);
    rotate(tokens.q, shape.attention.num_heads, problem);
    rotate(tokens.k, shape.attention.num_kv_heads, problem);
    EXPECT_LE(relative_difference(written.q, tokens.q), 3e-7) << shape.name;
    const std::vector<std::byte> expected = written_by_reference(problem, tokens, 0);
    ASSERT_EQ(written.pool.size(), expected.size());
    for (std::size_t at = 0; at < expected.size(); at += sizeof(float)) {
      float got, wanted;
      std::memcpy(&got, written.pool.data() + at, sizeof got),
          std::memcpy(&wanted, expected.data() + at, sizeof wanted);
      if (std::isnan(wanted) && std::isnan(got)) continue;  // unused slots
      ASSERT_NEAR(got, wanted, 1e-6) << shape.name << " at byte " << at;
    }
  }
}

}  // namespace
}  // namespace octavo::kernels::cuda
