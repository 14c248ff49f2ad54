// Sliding windows and soft caps of paged attention on the emulated device, against the reference. Bounds:
// paged_attention_test.cc.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "tests/cuda/attention_problem.h"

namespace octavo::kernels::cuda {
namespace {

using testing::kEveryKvType;
using testing::make_problem;
using testing::name_of;
using testing::relative_difference;
using testing::same_bits;

Shape with_window(Shape shape, std::int32_t window, float soft_cap = 0.0f) {
  shape.attention.window = window;
  shape.attention.score_soft_cap = soft_cap;
  return shape;
}

// Decodes, chunks that split tiles compute, and one for prefill tiles.
const std::vector<SequenceSpec> kMixed = {{1, 0, 1},    {3, 130, 9}, {4, 63, 1},
                                          {5, 200, 40}, {6, 600, 1}, {7, 511, 3}};

TEST(CudaAttentionWindow, EqualsTheReferenceForEveryWindow) {
  std::vector<std::pair<std::int32_t, AttentionOptions>> cases;
  for (const std::int32_t window : {1, 2, 16, 17, 63, 64, 65, 129, 512, 601, 5000}) {
    for (const AttentionOptions& options : {kSmallDevice, kLargeDevice, kDeterministic})
      cases.emplace_back(window, options);
  }
  for (const auto& [window, options] : test::some_of(cases, 2)) {
    const PagedProblem problem = make_problem(with_window(testing::odd_shape(), window), kMixed, {});
    EXPECT_LE(relative_difference(attend(problem, options), expected_attention(problem)),
              bound_for(KvType::kF16, true))
        << "window " << window << ", " << options.num_multiprocessors << " multiprocessors";
  }
}

// Windows that begin and end around the borders of slices, rounds and partitions, in tiles of 16 rows.
TEST(CudaAttentionWindow, OfDecodesEqualsTheReferenceAroundEveryBorder) {
  std::vector<SequenceSpec> sequences;
  std::uint64_t id = 100;
  for (const std::int32_t history :
       {99, 100, 101, 127, 128, 163, 164, 165, 191, 256, 511, 512, 611, 612, 613, 700}) {
    sequences.push_back({id++, history, 1});
  }
  for (const std::int32_t window : {100, 130, 513}) {
    const PagedProblem problem = make_problem(with_window(testing::odd_shape(), window), sequences, {});
    const std::vector<float> expected = expected_attention(problem);
    for (const AttentionOptions& options : {kSmallDevice, kLargeDevice, kDeterministic}) {
      EXPECT_LE(relative_difference(attend(problem, options), expected), bound_for(KvType::kF16, false))
          << window;
    }
  }
}

TEST(CudaAttentionWindow, EqualsTheReferenceForEveryTypeAndBlockSize) {
  const std::vector<SequenceSpec> sequences = {{1, 0, 1}, {3, 130, 36}, {6, 200, 1}};
  for (const KvType type : kEveryKvType) {
    for (const std::int32_t block_size : {1, 8, 21, 256}) {
      const PagedProblem problem = make_problem(with_window(testing::odd_shape(), 70, 4.0f), sequences,
                                                {.type = type, .block_size = block_size});
      EXPECT_LE(relative_difference(attend(problem, kLargeDevice), expected_attention(problem)),
                bound_for(type, true))
          << describe(problem);
    }
  }
}

TEST(CudaAttentionWindow, OfOnePositionIsThatPositionsValue) {
  PagedProblem problem = make_problem(with_window(testing::odd_shape(), 1), {{1, 40, 1}, {2, 90, 50}}, {});
  for (const AttentionOptions& options : {kSmallDevice, kDeterministic}) {
    const std::vector<float> out = attend(problem, options);
    for (std::int64_t row = 0; row < problem.num_rows(); ++row) {
      const std::int32_t sequence = row == 0 ? 0 : 1;
      const std::int32_t position = problem.positions[static_cast<std::size_t>(row)];
      for (std::int32_t head = 0; head < 4; ++head) {
        for (std::int32_t d = 0; d < 80; ++d) {
          EXPECT_EQ(out[static_cast<std::size_t>(row * 320 + head * 80 + d)],
                    static_cast<float>(problem.stored_value(sequence, position, 1, head / 2, d)));
        }
      }
    }
  }
}

// The blocks behind the first row's window may be anywhere, even nowhere: an address that no pool has.
TEST(CudaAttentionWindow, ReadsNothingBehindTheWindow) {
  constexpr std::int32_t kNowhere = std::numeric_limits<std::int32_t>::max();
  for (const std::int32_t block_size : {8, 21}) {
    for (const std::int32_t rows : {1, 50}) {
      for (const std::int32_t window : {1, 20, 64, 150}) {
        const Shape shape = with_window(testing::odd_shape(), window);
        PagedProblem problem = make_problem(shape, {{1, 300, rows}}, {.block_size = block_size});
        for (const AttentionOptions& options : {kSmallDevice, kLargeDevice, kDeterministic}) {
          const std::vector<float> expected = attend(problem, options);
          PagedProblem cut = problem;
          for (std::int32_t block = 0; (block + 1) * block_size <= 300 - window + 1; ++block) {
            cut.block_tables[static_cast<std::size_t>(block)] = kNowhere;
          }
          ASSERT_NE(cut.block_tables, problem.block_tables);
          const std::vector<float> got = attend(cut, options);
          EXPECT_TRUE(same_bits(got.data(), expected.data(), static_cast<std::int64_t>(got.size())))
              << rows << " rows, window " << window << ", block size " << block_size;
        }
      }
    }
  }
}

// Keys are read by eights, those just before the window of a tile's first row among them: NaNs there, in keys
// and values, change no bit.
TEST(CudaAttentionWindow, WhatIsNotFiniteJustBeforeTheWindowReachesNoRow) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  struct Case {
    KvType type;
    std::int32_t block_size, rows;
  };
  std::vector<Case> cases;
  for (const KvType type : kEveryKvType) {
    for (const std::int32_t block_size : {1, 8, 16}) {
      for (const std::int32_t rows : {1, 50}) cases.push_back({type, block_size, rows});
    }
  }
  for (const Case& c : test::some_of(cases, 5)) {
    PagedProblem problem = make_problem(with_window(testing::odd_shape(), 21), {{1, 103, c.rows}},
                                        {.type = c.type, .block_size = c.block_size});
    std::vector<std::vector<float>> expected;
    for (const AttentionOptions& options : {kSmallDevice, kLargeDevice, kDeterministic})
      expected.push_back(attend(problem, options));
    for (std::int32_t position = 70; position < 103 - 21 + 1; ++position) {
      for (std::int32_t head = 0; head < 2; ++head) {
        if (c.type == KvType::kInt8) {
          std::memcpy(problem.key_scale(0, position, 1, head), &kNan, sizeof kNan);
          std::memcpy(problem.value_scale(0, position, 1, head), &kNan, sizeof kNan);
          continue;
        }
        for (std::int32_t d = 0; d < problem.shape.attention.head_dim; ++d) {
          testing::write_element(c.type, problem.key(0, position, 1, head, d), kNan);
          testing::write_element(c.type, problem.value(0, position, 1, head, d), kNan);
        }
      }
    }
    std::size_t i = 0;
    for (const AttentionOptions& options : {kSmallDevice, kLargeDevice, kDeterministic}) {
      const std::vector<float> got = attend(problem, options);
      EXPECT_TRUE(same_bits(got.data(), expected[i++].data(), static_cast<std::int64_t>(got.size())))
          << describe(problem) << ", " << c.rows << " rows, " << options.num_multiprocessors
          << " multiprocessors";
    }
  }
}

TEST(CudaAttentionWindow, GivesARowTheSameBitsInEveryBatchAndChunkWhenDeterministic) {
  for (const std::int32_t window : {1, 50, 300, 530}) {
    for (const KvType type : {KvType::kF16, KvType::kInt8}) {
      expect_the_same_rows_alone(with_window(testing::odd_shape(), window, 5.0f), type,
                                 {{0, 1}, {11, 1}, {12, 1}, {13, 1}, {59, 1}, {7, 30}});
    }
  }
}

TEST(CudaScoreSoftCap, EqualsTheReferenceFromCapsThatLevelEverythingToCapsThatChangeNothing) {
  const std::vector<SequenceSpec> sequences = {{1, 0, 1}, {3, 130, 40}, {6, 200, 1}, {7, 70, 3}};
  for (const float cap : {1e-3f, 0.5f, 5.0f, 50.0f, 1e6f}) {
    for (const KvType type : {KvType::kF16, KvType::kF32, KvType::kInt8}) {
      const PagedProblem problem =
          make_problem(with_window(testing::odd_shape(), 0, cap), sequences, {.type = type});
      const std::vector<float> expected = expected_attention(problem);
      for (const AttentionOptions& options : {kSmallDevice, kDeterministic}) {
        EXPECT_LE(relative_difference(attend(problem, options), expected), bound_for(type, true))
            << name_of(type) << " cap " << cap;
      }
    }
  }
}

// cap * tanh(infinity / cap) would be a score like any other.
TEST(CudaScoreSoftCap, DoesNotHideWhatIsNotFinite) {
  for (const std::int32_t rows : {1, 50}) {
    PagedProblem problem = make_problem(with_window(testing::odd_shape(), 0, 50.0f), {{1, 40, rows}}, {});
    for (std::int32_t head = 0; head < 2; ++head) {
      testing::write_element(KvType::kF16, problem.key(0, 12, 1, head, 3),
                             std::numeric_limits<float>::infinity());
    }
    for (const float number : attend(problem, kSmallDevice)) EXPECT_TRUE(std::isnan(number));
  }
}

}  // namespace
}  // namespace octavo::kernels::cuda
