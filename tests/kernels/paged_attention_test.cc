#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "tests/kernels/paged_problem.h"

namespace octavo::kernels::testing {
namespace {

// |error| relative to the largest |out|, against sums in double. Rounding of up to 1,000 float terms stays
// far below.
constexpr double kTolerance = 5e-6;

class PagedAttention : public ::testing::TestWithParam<cpu::InstructionSet> {};

INSTANTIATE_TEST_SUITE_P(EveryInstructionSet, PagedAttention,
                         ::testing::ValuesIn(cpu::usable_instruction_sets()),
                         [](const auto& info) { return std::string(cpu::instruction_set_name(info.param)); });

// The context lengths at which something begins or ends: lanes, blocks, chunks, ranges.
std::vector<SequenceSpec> decodes_around_borders() {
  std::vector<SequenceSpec> sequences;
  std::uint64_t id = 100;
  for (const std::int32_t history :
       {0, 1, 6, 7, 8, 14, 15, 16, 30, 31, 32, 33, 47, 254, 255, 256, 257, 511, 512, 600}) {
    sequences.push_back({id++, history, 1});
  }
  return sequences;
}

// Softmax and sums in double, over what the bytes mean.
std::vector<float> plain_attention(PagedProblem problem, std::int32_t layer) {
  const AttentionShape& shape = problem.shape.attention;
  const std::vector<float> q = rows_of(problem, 7, problem.shape.query_width(), 3.0f);
  std::vector<float> out;
  for (std::int32_t s = 0, row = 0; s < static_cast<std::int32_t>(problem.sequences.size()); ++s) {
    for (; row < problem.query_start[static_cast<std::size_t>(s) + 1]; ++row) {
      const std::int32_t last = problem.positions[static_cast<std::size_t>(row)];
      for (std::int32_t head = 0; head < shape.num_heads; ++head) {
        const std::int32_t kv_head = head / (shape.num_heads / shape.num_kv_heads);
        std::vector<double> sums(static_cast<std::size_t>(shape.head_dim));
        double total = 0.0;
        for (std::int32_t p = 0; p <= last; ++p) {
          double score = 0.0;
          for (std::int32_t d = 0; d < shape.head_dim; ++d) {
            score += double{q[static_cast<std::size_t>(row * problem.shape.query_width() +
                                                       head * shape.head_dim + d)]} *
                     problem.stored_key(s, p, layer, kv_head, d);
          }
          const double weight = std::exp(score * double{shape.score_scale});
          total += weight;
          for (std::int32_t d = 0; d < shape.head_dim; ++d)
            sums[static_cast<std::size_t>(d)] += weight * problem.stored_value(s, p, layer, kv_head, d);
        }
        for (const double sum : sums) out.push_back(static_cast<float>(sum / total));
      }
    }
  }
  return out;
}

TEST(ReferencePagedAttention, IsTheSoftmaxOverWhatTheBytesMean) {
  const auto reference = reference_backend();
  for (const Shape& shape : {smollm2_shape(), odd_shape(), one_tiny_head()}) {
    for (const KvType type : kEveryKvType) {
      for (const std::int32_t block_size : {1, 8, 16, 21}) {
        const PagedProblem problem =
            make_problem(shape, {{1, 0, 3}, {2, 40, 1}}, {.type = type, .block_size = block_size});
        EXPECT_LE(relative_difference(run_attention(*reference, problem), plain_attention(problem, 1)), 2e-7)
            << shape.name << " " << name_of(type) << " block size " << block_size;
      }
    }
  }
}

TEST_P(PagedAttention, EqualsTheReferenceForEveryShapeTypeAndBlockSize) {
  const std::vector<SequenceSpec> mixed = {{1, 0, 1},  {2, 0, 37}, {3, 250, 20},
                                           {4, 31, 1}, {5, 15, 2}, {6, 300, 1}};
  const auto cpu = cpu_backend(GetParam());
  const auto reference = reference_backend();
  const std::vector<std::int32_t> every_path = {1, 3, 8, 16, 24, 32, 256}, usual = {8, 16};
  for (const Shape& shape : {smollm2_shape(), one_tiny_head(), odd_shape()}) {
    for (const KvType type : kEveryKvType) {
      for (const std::int32_t block_size : shape.name == "smollm2" ? usual : every_path) {
        const PagedProblem problem =
            make_problem(shape, mixed, {.type = type, .block_size = block_size, .num_layers = 2});
        const double difference =
            relative_difference(run_attention(*cpu, problem), run_attention(*reference, problem));
        EXPECT_LE(difference, kTolerance)
            << shape.name << " " << name_of(type) << " block size " << block_size;
      }
    }
  }
}

TEST_P(PagedAttention, EqualsTheReferenceAroundEveryBorder) {
  const auto cpu = cpu_backend(GetParam());
  const auto reference = reference_backend();
  for (const Shape& shape : {one_tiny_head(), odd_shape()}) {
    const PagedProblem problem = make_problem(shape, decodes_around_borders(), {});
    EXPECT_LE(relative_difference(run_attention(*cpu, problem), run_attention(*reference, problem)),
              kTolerance)
        << shape.name;
  }
}

TEST_P(PagedAttention, EqualsTheReferenceForHeadsOfLlama3) {
  const PagedProblem problem = make_problem(llama3_shape(), {{1, 40, 3}, {2, 260, 1}}, {.num_layers = 2});
  EXPECT_LE(relative_difference(run_attention(*cpu_backend(GetParam()), problem),
                                run_attention(*reference_backend(), problem)),
            kTolerance);
}

TEST_P(PagedAttention, GivesTheSameBitsOnEveryInstructionSet) {
  const auto portable = cpu_backend(cpu::InstructionSet::kPortable);
  const auto cpu = cpu_backend(GetParam());
  for (const Shape& shape : {smollm2_shape(), odd_shape(), one_tiny_head()}) {
    for (const KvType type : kEveryKvType) {
      for (const std::int32_t block_size : {8, 16}) {
        const PagedProblem problem = make_problem(shape, {{1, 0, 60}, {2, 700, 1}, {3, 513, 9}},
                                                  {.type = type, .block_size = block_size});
        const std::vector<float> expected = run_attention(*portable, problem),
                                 got = run_attention(*cpu, problem);
        EXPECT_TRUE(same_bits(got.data(), expected.data(), problem.num_rows() * shape.query_width()))
            << shape.name << " " << name_of(type) << " block size " << block_size;
      }
    }
  }
}

TEST_P(PagedAttention, GivesTheSameBitsForEveryBlockSizeAndNumberOfThreads) {
  const std::vector<SequenceSpec> mixed = {{1, 0, 90}, {2, 1100, 1}, {3, 513, 5}};
  for (const Shape& shape : {smollm2_shape(), odd_shape()}) {
    for (const KvType type : kEveryKvType) {
      const std::vector<float> expected =
          run_attention(*cpu_backend(GetParam(), 1), make_problem(shape, mixed, {.type = type}));
      const std::vector<std::int32_t> every_path = {1, 3, 8, 16, 24, 32, 48, 100, 256},
                                      some = {3, 8, 24, 256};
      for (const std::int32_t block_size : type == KvType::kF16 ? every_path : some) {
        const PagedProblem problem = make_problem(shape, mixed, {.type = type, .block_size = block_size});
        const std::int32_t threads = 1 + block_size % 3;
        const std::vector<float> got = run_attention(*cpu_backend(GetParam(), threads), problem);
        EXPECT_TRUE(same_bits(got.data(), expected.data(), problem.num_rows() * shape.query_width()))
            << shape.name << " " << name_of(type) << " block size " << block_size << ", " << threads
            << " threads";
      }
    }
    const std::vector<float> expected =
        run_attention(*cpu_backend(GetParam(), 1), make_problem(shape, mixed, {}));
    for (const std::int32_t threads : {2, 3, 5}) {
      const PagedProblem problem = make_problem(shape, mixed, {});
      const std::vector<float> got = run_attention(*cpu_backend(GetParam(), threads), problem);
      EXPECT_TRUE(same_bits(got.data(), expected.data(), problem.num_rows() * shape.query_width()))
          << shape.name << ", " << threads << " threads";
    }
  }
}

TEST_P(PagedAttention, ARowAloneEqualsTheRowAmongOthersAndInAnyChunk) {
  const auto cpu = cpu_backend(GetParam());
  const std::pair<Shape, KvType> cases[] = {{smollm2_shape(), KvType::kF16}, {odd_shape(), KvType::kInt8}};
  for (const auto& [shape, type] : cases) {
    const std::int64_t width = shape.query_width();
    const PagedProblem together =
        make_problem(shape, {{9, 20, 1}, {1, 0, 530}, {8, 300, 40}}, {.type = type});
    const std::vector<float> expected = run_attention(*cpu, together);
    const auto check = [&](std::int32_t first, std::int32_t count) {
      const PagedProblem alone = make_problem(shape, {{1, first, count}}, {.type = type, .seed = 1});
      const std::vector<float> got = run_attention(*cpu, alone);
      EXPECT_TRUE(same_bits(got.data(), expected.data() + (1 + first) * width, count * width))
          << alone.shape.name << " " << name_of(alone.layout.type) << " rows from " << first << ", " << count;
    };
    for (const std::int32_t position : {0, 1, 15, 16, 17, 31, 32, 255, 256, 257, 511, 512, 529})
      check(position, 1);
    for (const std::int32_t chunk : {7, 16, 100, 256}) {
      for (std::int32_t first = 0; first < 530; first += chunk) check(first, std::min(chunk, 530 - first));
    }
  }
}

TEST_P(PagedAttention, ALaterTokensInfinityNeverReachesEarlierRows) {
  const Shape shape = smollm2_shape();
  const auto cpu = cpu_backend(GetParam());
  constexpr std::int32_t kPosition = 30;
  for (const KvType type : kEveryKvType) {
    PagedProblem problem = make_problem(shape, {{1, 0, 45}}, {.type = type});
    const std::vector<float> expected = run_attention(*cpu, problem);
    for (std::int32_t head = 0; head < shape.attention.num_kv_heads; ++head) {
      if (type == KvType::kInt8) {
        constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
        std::memcpy(problem.key_scale(0, kPosition, 1, head), &kNan, sizeof kNan);
        std::memcpy(problem.value_scale(0, kPosition, 1, head), &kNan, sizeof kNan);
        continue;
      }
      for (std::int32_t d = 0; d < shape.attention.head_dim; ++d) {
        write_element(type, problem.key(0, kPosition, 1, head, d), std::numeric_limits<float>::quiet_NaN());
        write_element(type, problem.value(0, kPosition, 1, head, d), std::numeric_limits<float>::infinity());
      }
    }
    const std::vector<float> got = run_attention(*cpu, problem);
    EXPECT_TRUE(same_bits(got.data(), expected.data(), kPosition * shape.query_width())) << name_of(type);
    for (std::int64_t i = kPosition * shape.query_width(); i < static_cast<std::int64_t>(got.size()); ++i)
      ASSERT_TRUE(std::isnan(got[static_cast<std::size_t>(i)])) << name_of(type) << ": a NaN was lost";
  }
}

TEST_P(PagedAttention, ReadsTheLayerThatItIsAskedFor) {
  const PagedProblem problem = make_problem(odd_shape(), {{1, 40, 2}}, {.num_layers = 3});
  const auto cpu = cpu_backend(GetParam());
  const auto reference = reference_backend();
  for (const std::int32_t layer : {0, 1, 2}) {
    EXPECT_LE(
        relative_difference(run_attention(*cpu, problem, layer), run_attention(*reference, problem, layer)),
        kTolerance);
  }
}

TEST_P(PagedAttention, OfOnePositionIsItsValue) {
  const Shape shape = smollm2_shape();
  PagedProblem problem = make_problem(shape, {{1, 0, 1}}, {.type = KvType::kF32});
  const std::vector<float> out = run_attention(*cpu_backend(GetParam()), problem);
  for (std::int32_t head = 0; head < shape.attention.num_heads; ++head) {
    for (std::int32_t d = 0; d < shape.attention.head_dim; ++d) {
      const auto* value = reinterpret_cast<const float*>(problem.value(0, 0, 1, head / 3, d));
      EXPECT_EQ(out[static_cast<std::size_t>(head * shape.attention.head_dim + d)], *value);
    }
  }
}

}  // namespace
}  // namespace octavo::kernels::testing
