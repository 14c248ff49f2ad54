// Attention and writing of keys and values on the emulated device: made-up steps
// (tests/kernels/paged_problem.h) taken there, and what the reference gives.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "kernels/cuda/attention/attention.h"
#include "tests/cuda/device_arrays.h"
#include "tests/kernels/paged_problem.h"
#include "tests/support/sweep.h"

namespace octavo::kernels::cuda {

using testing::PagedProblem;
using testing::SequenceSpec;
using testing::Shape;

inline constexpr AttentionOptions kSmallDevice{.num_multiprocessors = 1, .max_shared_bytes = 64 * 1024};
inline constexpr AttentionOptions kLargeDevice{.num_multiprocessors = 132, .max_shared_bytes = 227 * 1024};
inline constexpr AttentionOptions kDeterministic{
    .deterministic = true, .num_multiprocessors = 132, .max_shared_bytes = 227 * 1024};

inline double bound_for(KvType type, bool has_prefill) {
  const bool is_half = type == KvType::kF16 || type == KvType::kFp8E4m3 || type == KvType::kFp8E5m2;
  if (!is_half) return 1e-4;
  return has_prefill ? 2e-3 : 1e-5;
}

inline Shape shape_of(std::int32_t heads, std::int32_t kv_heads, std::int32_t head_dim) {
  const float scale = 1.0f / std::sqrt(static_cast<float>(head_dim));
  return {"made_up", {heads, kv_heads, head_dim, head_dim / 2 * 2, RopePairing::kHalves, scale}, 32, 32};
}

// A problem's arrays on the device.
class DeviceStep {
 public:
  explicit DeviceStep(const PagedProblem& problem)
      : positions_(problem.positions),
        slots_(problem.slot_mapping),
        starts_(problem.query_start),
        contexts_(problem.context_lens),
        tables_(problem.block_tables),
        rotations_(problem.rotations),
        pool_(problem.pool) {
    batch_.num_tokens = static_cast<std::int32_t>(problem.positions.size());
    batch_.num_sequences = static_cast<std::int32_t>(problem.sequences.size());
    batch_.max_blocks = problem.max_blocks;
    batch_.min_rows = std::numeric_limits<std::int32_t>::max();
    for (const SequenceSpec& sequence : problem.sequences) {
      batch_.min_rows = std::min(batch_.min_rows, sequence.new_tokens);
      batch_.max_rows = std::max(batch_.max_rows, sequence.new_tokens);
      batch_.max_context_len = std::max(batch_.max_context_len, sequence.history + sequence.new_tokens);
    }
    batch_.positions = positions_.data(), batch_.slot_mapping = slots_.data(),
    batch_.query_start = starts_.data();
    batch_.context_lens = contexts_.data(), batch_.block_tables = tables_.data(),
    batch_.rotations = rotations_.data();
  }

  DeviceBatch& batch() { return batch_; }
  std::byte* pool() const { return pool_.data(); }
  std::vector<std::byte> read_pool() const { return pool_.read(); }

 private:
  DeviceArray<std::int32_t> positions_, slots_, starts_, contexts_, tables_;
  DeviceArray<float> rotations_;
  DeviceArray<std::byte> pool_;
  DeviceBatch batch_;
};

// Rows longer than needed, to see that nothing is written between them.
inline std::vector<float> attend(const PagedProblem& problem, const AttentionOptions& options,
                                 std::int32_t layer = 1, std::int32_t max_context = 1024) {
  const std::int64_t width = problem.shape.query_width(), stride = width + 3;
  const std::vector<float> q = testing::rows_of(problem, 7, width, 3.0f);
  const std::vector<float> before(static_cast<std::size_t>(problem.num_rows() * stride), -7.0f);
  TestStream stream;
  DeviceStep step(problem);
  const DeviceArray<float> queries(q), out(before);
  const auto attention = PagedAttention::create(stream.get(), options);
  StepShape shape;
  shape.num_rows = step.batch().num_tokens;
  shape.max_context_len = max_context;
  shape.num_heads = problem.shape.attention.num_heads;
  shape.num_kv_heads = problem.shape.attention.num_kv_heads;
  shape.head_dim = problem.shape.attention.head_dim;
  EXPECT_TRUE(attention->reserve(shape));
  attention->attend(problem.shape.attention, step.batch(), problem.layout, layer, step.pool(), queries.data(),
                    width, out.data(), stride);
  stream.finish();
  EXPECT_TRUE(problem.pool == step.read_pool()) << "attention changed the pool";
  const std::vector<float> all = out.read();
  std::vector<float> rows;
  for (std::int64_t row = 0; row < problem.num_rows(); ++row) {
    const auto begin = all.begin() + row * stride;
    rows.insert(rows.end(), begin, begin + width);
    for (std::int64_t i = width; i < stride; ++i) EXPECT_EQ(begin[i], -7.0f) << "written between the rows";
  }
  return rows;
}

inline std::vector<float> expected_attention(const PagedProblem& problem, std::int32_t layer = 1) {
  const auto reference = testing::reference_backend();
  return testing::run_attention(*reference, problem, layer);
}

// With `deterministic`: the 60 rows from position 500 of a sequence, computed among others, and each of
// `alone` (first row, number of rows) without them.
inline void expect_the_same_rows_alone(const Shape& shape, KvType type,
                                       std::initializer_list<std::pair<std::int32_t, std::int32_t>> alone) {
  const std::int64_t width = shape.query_width();
  const PagedProblem together =
      testing::make_problem(shape, {{9, 20, 1}, {1, 500, 60}, {8, 100, 40}}, {.type = type});
  const std::vector<float> expected = attend(together, kDeterministic);
  for (const auto& [first, count] : alone) {
    const PagedProblem problem = testing::make_problem(shape, {{1, 500 + first, count}}, {.type = type});
    const std::vector<float> got = attend(problem, kDeterministic);
    EXPECT_TRUE(testing::same_bits(got.data(), expected.data() + (1 + first) * width, count * width))
        << testing::name_of(type) << " window " << shape.attention.window << " rows from " << first << ", "
        << count;
  }
}

inline std::string describe(const PagedProblem& problem) {
  return problem.shape.name + " " + testing::name_of(problem.layout.type) + " block size " +
         std::to_string(problem.layout.block_size);
}

}  // namespace octavo::kernels::cuda
