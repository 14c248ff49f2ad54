// Writing keys and values, run on the emulated device, against kernels/reference.
#include "kernels/cuda/attention/kv_write.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <vector>

#include "kernels/reference/reference_backend.h"
#include "tests/cuda/device_step.h"
#include "tests/kernels/attention_claims.h"

namespace octavo::kernels::cuda {
namespace {

using testing::make_problem;
using testing::PagedProblem;
using testing::relative_difference;
using testing::rows_of;
using testing::Shape;

struct Written {
  std::vector<std::byte> pool;
  std::vector<float> q;
};

// As a step of decodes goes, whatever its rows, or as the longest chunk says.
enum class Way : std::uint8_t { kUsual, kRowByRow };

struct NewTokens {
  std::vector<float> q, k, v;
};

NewTokens new_tokens(const PagedProblem& problem) {
  return {rows_of(problem, 81, problem.shape.query_width(), 2.0f),
          rows_of(problem, 82, problem.shape.kv_width(), 2.0f),
          rows_of(problem, 83, problem.shape.kv_width(), 1.0f)};
}

Written written_by_device(const PagedProblem& problem, const NewTokens& tokens, std::int32_t layer,
                          Way way = Way::kUsual) {
  TestStream stream;
  DeviceStep step(problem);
  if (way == Way::kRowByRow) step.batch().max_rows = 1;
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
  for (const KvType type : testing::kEveryKvType) {
    for (const std::int32_t block_size : {1, 8, 16, 21}) {
      for (const Shape& shape : {testing::odd_shape(), testing::one_tiny_head(), testing::heads_of(2, 1, 33),
                                 testing::heads_of(1, 1, 256)}) {
        PagedProblem problem =
            make_problem(shape, {{1, 0, 9}, {2, 30, 1}, {3, 15, 4}},
                         {.type = type, .block_size = block_size, .new_tokens_stored = false});
        // Angle 0: the rotation rounds nothing, so that every byte is defined.
        for (std::size_t i = 0; i < problem.rotations.size(); ++i)
          problem.rotations[i] = i % 2 == 0 ? 1.0f : 0.0f;
        const NewTokens tokens = new_tokens(problem);
        const Written written = written_by_device(problem, tokens, 1);
        EXPECT_TRUE(written.pool == written_by_reference(problem, tokens, 1)) << testing::describe(problem);
        EXPECT_EQ(written.q, tokens.q);
      }
    }
  }
}

TEST(CudaKvWrite, WritesChunksWithTheBitsOfSingleRows) {
  for (const KvType type : testing::kEveryKvType) {
    for (const std::int32_t block_size : {1, 4, 8, 16, 32}) {
      for (const Shape& shape : {testing::odd_shape(), testing::heads_of(3, 2, 128)}) {
        // Chunks of the device begin anywhere in sequences, and sequences anywhere in blocks.
        const PagedProblem problem =
            make_problem(shape, {{1, 3, 37}, {2, 30, 1}, {3, 0, 5}, {4, 17, 16}},
                         {.type = type, .block_size = block_size, .new_tokens_stored = false});
        const NewTokens tokens = new_tokens(problem);
        const Written chunks = written_by_device(problem, tokens, 1),
                      rows = written_by_device(problem, tokens, 1, Way::kRowByRow);
        EXPECT_TRUE(chunks.pool == rows.pool) << testing::describe(problem);
        EXPECT_EQ(chunks.q, rows.q) << testing::describe(problem);
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
