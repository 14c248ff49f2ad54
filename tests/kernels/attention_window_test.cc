// Attention through sliding windows and soft caps: against the reference, the same bits on every instruction
// set, for every chunk, block size and number of threads, and beside other sequences with shared blocks.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "kernels/cpu/attention_work.h"
#include "tests/kernels/paged_problem.h"

#define OCTAVO_ISA attention_window_test
#include "kernels/cpu/simd/attention_visits.h"

namespace octavo::kernels::testing {
namespace {

namespace visits = cpu::attention_window_test;

constexpr double kTolerance = 5e-6;  // as in paged_attention_test.cc

class AttentionWindow : public ::testing::TestWithParam<cpu::InstructionSet> {};

INSTANTIATE_TEST_SUITE_P(EveryInstructionSet, AttentionWindow,
                         ::testing::ValuesIn(cpu::usable_instruction_sets()),
                         [](const auto& info) { return std::string(cpu::instruction_set_name(info.param)); });

Shape with_window(Shape shape, std::int32_t window, float soft_cap = 0.0f) {
  shape.attention.window = window;
  shape.attention.score_soft_cap = soft_cap;
  return shape;
}

const std::vector<SequenceSpec> kMixed = {{1, 0, 1},  {2, 0, 37},  {3, 250, 20}, {4, 31, 1},
                                          {5, 15, 2}, {6, 300, 1}, {7, 512, 70}, {8, 1023, 1}};

TEST_P(AttentionWindow, EqualsTheReferenceForEveryWindow) {
  const auto cpu = cpu_backend(GetParam());
  const auto reference = reference_backend();
  for (const Shape& shape : {one_tiny_head(), odd_shape()}) {
    for (const std::int32_t window : {1, 2, 16, 17, 64, 255, 257, 511, 5000}) {
      const PagedProblem problem = make_problem(with_window(shape, window), kMixed, {});
      EXPECT_LE(relative_difference(run_attention(*cpu, problem), run_attention(*reference, problem)),
                kTolerance)
          << shape.name << " window " << window;
    }
  }
}

TEST_P(AttentionWindow, EqualsTheReferenceForEveryTypeAndBlockSize) {
  const auto cpu = cpu_backend(GetParam());
  const auto reference = reference_backend();
  for (const KvType type : kEveryKvType) {
    for (const std::int32_t block_size : {3, 8, 16, 256}) {
      const PagedProblem problem =
          make_problem(with_window(odd_shape(), 70, 4.0f), kMixed, {.type = type, .block_size = block_size});
      EXPECT_LE(relative_difference(run_attention(*cpu, problem), run_attention(*reference, problem)),
                kTolerance)
          << name_of(type) << " block size " << block_size;
    }
  }
}

TEST(ReferenceAttentionWindow, AWindowHoldsAsManyPositionsAsItSays) {
  const auto reference = reference_backend();
  const PagedProblem one =
      make_problem(with_window(one_tiny_head(), 1), {{1, 40, 1}}, {.type = KvType::kF32});
  const std::vector<float> out = run_attention(*reference, one);
  PagedProblem copy = one;
  for (std::int32_t d = 0; d < 8; ++d)
    EXPECT_EQ(out[static_cast<std::size_t>(d)], static_cast<float>(copy.stored_value(0, 40, 1, 0, d)));
  const auto with = [&](std::int32_t window) {
    return run_attention(*reference, make_problem(with_window(one_tiny_head(), window), {{1, 40, 1}}, {}));
  };
  EXPECT_EQ(with(41), with(0)) << "41 positions are all";
  EXPECT_NE(with(40), with(0));
}

TEST_P(AttentionWindow, GivesTheSameBitsForEveryBlockSizeThreadAndInstructionSet) {
  for (const std::int32_t window : {40, 300}) {
    const Shape shape = with_window(smollm2_shape(), window, 20.0f);
    for (const KvType type : {KvType::kF16, KvType::kInt8}) {
      const auto portable = cpu_backend(cpu::InstructionSet::kPortable, 1);
      const std::vector<float> expected =
          run_attention(*portable, make_problem(shape, kMixed, {.type = type}));
      for (const std::int32_t block_size : {3, 8, 16, 24, 256}) {
        const std::int32_t threads = 1 + block_size % 3;
        const PagedProblem problem = make_problem(shape, kMixed, {.type = type, .block_size = block_size});
        const std::vector<float> got = run_attention(*cpu_backend(GetParam(), threads), problem);
        EXPECT_TRUE(same_bits(got.data(), expected.data(), problem.num_rows() * shape.query_width()))
            << name_of(type) << " window " << window << " block size " << block_size << ", " << threads
            << " threads";
      }
    }
  }
}

TEST_P(AttentionWindow, ARowAloneEqualsTheRowAmongOthersAndInAnyChunk) {
  const auto cpu = cpu_backend(GetParam());
  for (const std::int32_t window : {1, 50, 256, 290}) {
    const Shape shape = with_window(odd_shape(), window, 5.0f);
    const std::int64_t width = shape.query_width();
    const std::vector<float> expected =
        run_attention(*cpu, make_problem(shape, {{9, 20, 1}, {1, 0, 530}, {8, 300, 40}}, {}));
    const auto check = [&](std::int32_t first, std::int32_t count) {
      const std::vector<float> got = run_attention(*cpu, make_problem(shape, {{1, first, count}}, {}));
      EXPECT_TRUE(same_bits(got.data(), expected.data() + (1 + first) * width, count * width))
          << "window " << window << " rows from " << first << ", " << count;
    };
    for (const std::int32_t position : {0, 1, 15, 49, 50, 51, 255, 256, 257, 290, 305, 306, 511, 529})
      check(position, 1);
    for (const std::int32_t chunk : {7, 16, 100, 256}) {
      for (std::int32_t first = 0; first < 530; first += chunk) check(first, std::min(chunk, 530 - first));
    }
  }
}

TEST_P(AttentionWindow, SharedBlocksGiveTheBitsOfCopies) {
  std::vector<SequenceSpec> sequences = {
      {1, 700, 1}, {2, 600, 30, 0, 590}, {3, 320, 1, 1, 320}, {4, 690, 12, 0, 688}};
  for (const std::int32_t window : {30, 200, 400}) {
    const Shape shape = with_window(smollm2_shape(), window);
    const PagedProblem apart = make_problem(shape, sequences, {}),
                       shared = make_problem(shape, sequences, {.share_blocks = true});
    for (const std::int32_t threads : {1, 2, 3}) {
      const auto cpu = cpu_backend(GetParam(), threads);
      const std::vector<float> a = run_attention(*cpu, apart), b = run_attention(*cpu, shared);
      EXPECT_TRUE(same_bits(a.data(), b.data(), apart.num_rows() * shape.query_width())) << window;
    }
  }
}

// What a window has left behind is never touched: not even a NaN in it can show.
TEST_P(AttentionWindow, NothingBehindTheWindowReachesARow) {
  constexpr std::int32_t kWindow = 20, kBroken = 33;
  const Shape shape = with_window(smollm2_shape(), kWindow);
  const auto cpu = cpu_backend(GetParam());
  for (const KvType type : kEveryKvType) {
    PagedProblem problem = make_problem(shape, {{1, 0, 100}}, {.type = type});
    const std::vector<float> expected = run_attention(*cpu, problem);
    for (std::int32_t head = 0; head < shape.attention.num_kv_heads; ++head) {
      constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
      if (type == KvType::kInt8) {
        std::memcpy(problem.key_scale(0, kBroken, 1, head), &kNan, sizeof kNan);
        std::memcpy(problem.value_scale(0, kBroken, 1, head), &kNan, sizeof kNan);
        continue;
      }
      for (std::int32_t d = 0; d < shape.attention.head_dim; ++d) {
        write_element(type, problem.key(0, kBroken, 1, head, d), kNan);
        write_element(type, problem.value(0, kBroken, 1, head, d), kNan);
      }
    }
    const std::vector<float> got = run_attention(*cpu, problem);
    const std::int64_t width = shape.query_width();
    EXPECT_TRUE(same_bits(got.data(), expected.data(), kBroken * width)) << name_of(type);
    EXPECT_TRUE(std::isnan(got[static_cast<std::size_t>(kBroken * width)])) << name_of(type);
    const std::int64_t behind = kBroken + kWindow;
    EXPECT_TRUE(std::isnan(got[static_cast<std::size_t>((behind - 1) * width)])) << name_of(type);
    EXPECT_TRUE(
        same_bits(got.data() + behind * width, expected.data() + behind * width, (100 - behind) * width))
        << name_of(type);
  }
}

// Every row meets every position of its window exactly once, in ascending order, and no whole visit holds
// others.
TEST(AttentionWindowVisits, LeadEveryRowThroughItsWindowInOrder) {
  std::mt19937_64 random(12);
  const auto below = [&](std::int32_t end) {
    return static_cast<std::int32_t>(random() % static_cast<std::uint64_t>(end));
  };
  for (int round = 0; round < 60; ++round) {
    std::vector<SequenceSpec> sequences;
    for (std::int32_t i = 0; i < 8; ++i) {
      const std::int32_t shared = i > 0 && below(2) == 0 ? below(sequences[0].history) : 0;
      sequences.push_back({static_cast<std::uint64_t>(100 * round + i), shared + 1 + below(600),
                           1 + below(40), shared > 0 ? 0 : -1, shared});
    }
    const std::int32_t window = 1 + below(500);
    const PagedProblem problem = make_problem(
        one_tiny_head(), sequences, {.num_layers = 1, .new_tokens_stored = false, .share_blocks = true});
    cpu::AttentionWork work;
    cpu::plan_attention(problem.batch(),
                        {.block_size = 16,
                         .num_kv_heads = 1,
                         .group_size = 1,
                         .num_threads = 2,
                         .floats_per_row = 1,
                         .window = window},
                        work);
    for (const cpu::AttentionWork::Tile& tile : work.tiles) {
      cpu::AttentionTile kernel_tile = {};
      kernel_tile.block_size = 16;
      kernel_tile.group_size = 1;
      kernel_tile.num_rows = tile.num_rows;
      kernel_tile.rows = work.rows.data() + tile.first_row;
      std::vector<std::int32_t> next;
      for (std::int32_t row = 0; row < tile.num_rows; ++row) next.push_back(kernel_tile.rows[row].first);
      std::vector<visits::Visit> target(static_cast<std::size_t>(tile.num_rows * visits::kMostVisitsPerRow));
      for (std::int32_t range = tile.first_range; range < tile.first_range + tile.num_ranges; ++range) {
        const visits::Visits list = visits::plan_visits(kernel_tile, range, target.data());
        ASSERT_LE(list.size, static_cast<int>(target.size()));
        for (int i = 0; i < list.size; ++i) {
          const visits::Visit& visit = list.start[i];
          ASSERT_EQ(visit.first_position % visits::kLanes, 0);
          for (std::int32_t row = visit.first_query; row < visit.end_query; ++row) {
            const cpu::AttentionRow& reader = kernel_tile.rows[row];
            const std::int32_t end = visit.first_position + visit.count;
            if (visit.is_whole) {
              EXPECT_GE(visit.first_position, reader.first);
              EXPECT_LE(end, reader.position + 1);
            }
            std::int32_t& reached = next[static_cast<std::size_t>(row)];
            if (end <= reader.first || visit.first_position > reader.position) continue;
            EXPECT_LE(visit.first_position, reached);
            reached = std::min(end, reader.position + 1);
          }
        }
      }
      for (std::int32_t row = 0; row < tile.num_rows; ++row)
        EXPECT_EQ(next[static_cast<std::size_t>(row)], kernel_tile.rows[row].position + 1)
            << "round " << round;
    }
  }
}

}  // namespace
}  // namespace octavo::kernels::testing
