// Paged attention of each instruction set: the claims of attention_claims.h against the reference, and what
// only this backend promises; and the reference itself.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <map>

#include "kernels/cpu/attention_work.h"
#include "tests/kernels/attention_claims.h"
#include "tests/support/sweep.h"

namespace octavo::kernels::testing {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// Chunks of every length over the borders of ranges and windows.
std::vector<AttentionChunk> chunks() {
  constexpr std::int32_t kRows = 530;
  std::vector<std::pair<std::int32_t, std::int32_t>> pieces;
  for (const std::int32_t row :
       {0, 1, 15, 16, 17, 31, 32, 49, 50, 51, 255, 256, 257, 290, 305, 306, 511, 512, 529})
    pieces.emplace_back(row, 1);
  for (const std::int32_t length : {7, 16, 100, 256}) {
    for (std::int32_t first = 0; first < kRows; first += length)
      pieces.emplace_back(first, std::min(length, kRows - first));
  }
  std::vector<AttentionChunk> cases = {{smollm2_shape(), KvType::kF16, 0, kRows, pieces},
                                       {odd_shape(), KvType::kInt8, 0, kRows, pieces},
                                       {latent_shape(), KvType::kF16, 0, kRows, pieces},
                                       {odd_latent_shape(), KvType::kInt8, 0, kRows, pieces}};
  for (const std::int32_t window : {1, 50, 256, 290})
    cases.push_back({with_window(odd_shape(), window, 5.0f), KvType::kF16, 0, kRows, pieces});
  return cases;
}

std::vector<AttentionSubject> every_instruction_set() {
  std::vector<AttentionSubject> subjects;
  for (const cpu::InstructionSet isa : cpu::usable_instruction_sets()) {
    const auto attention = [isa](const PagedProblem& problem, std::int32_t layer, const std::vector<float>& q,
                                 std::vector<float>& out) {
      const auto cpu = cpu_backend(isa);
      const auto kv = cache_with(*cpu, problem);
      const std::int64_t rows = problem.num_rows(), stride = static_cast<std::int64_t>(out.size()) / rows;
      cpu->begin_step(problem.batch(), {});
      cpu->paged_attention(problem.shape.attention, problem.batch(), layer, *kv,
                           view(q, problem.shape.query_width()),
                           {out.data(), rows, problem.shape.output_width(), stride});
      const std::byte* const pool = pool_bytes(*cpu, *kv);
      return std::vector<std::byte>(pool, pool + problem.pool.size());
    };
    // Rounding of up to 1,000 float terms stays far below. Sets that are not the best take some of the cases,
    // each other ones.
    const std::size_t num_better = subjects.size();
    const bool is_best = num_better == 0;
    subjects.push_back({.name = std::string(cpu::instruction_set_name(isa)),
                        .attention = attention,
                        .bounds = {{5e-6}},
                        .first_case = is_best ? std::nullopt : std::optional(num_better),
                        .exact_types = {std::begin(kEveryKvType), std::end(kEveryKvType)},
                        .chunks = is_best ? chunks() : test::some_of(chunks(), 3, num_better - 1)});
  }
  return subjects;
}

INSTANTIATE_TEST_SUITE_P(EveryInstructionSet, AttentionClaims, ::testing::ValuesIn(every_instruction_set()),
                         name_of_attention);

class PagedAttention : public ::testing::TestWithParam<cpu::InstructionSet> {};

INSTANTIATE_TEST_SUITE_P(EveryInstructionSet, PagedAttention,
                         ::testing::ValuesIn(cpu::usable_instruction_sets()),
                         [](const auto& info) { return std::string(cpu::instruction_set_name(info.param)); });

// Softmax and sums in double, over what the bytes mean.
std::vector<float> plain_attention(PagedProblem problem, std::int32_t layer) {
  const AttentionShape& shape = problem.shape.attention;
  const std::vector<float> q = queries_of(problem);
  std::vector<float> out;
  for (std::int32_t s = 0, row = 0; s < static_cast<std::int32_t>(problem.sequences.size()); ++s) {
    for (; row < problem.query_start[static_cast<std::size_t>(s) + 1]; ++row) {
      const std::int32_t last = problem.positions[static_cast<std::size_t>(row)];
      for (std::int32_t head = 0; head < shape.num_heads; ++head) {
        const std::int32_t kv_head = head / (shape.num_heads / shape.num_kv_heads);
        std::vector<double> sums(static_cast<std::size_t>(shape.value_dim()));
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
          for (std::int32_t d = 0; d < shape.value_dim(); ++d)
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
  for (const Shape& shape :
       {smollm2_shape(), odd_shape(), one_tiny_head(), latent_shape(), odd_latent_shape()}) {
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

// A sink is a position that scores as it says and has the value zero: with two equal scores, half is left.
TEST(ReferencePagedAttention, ASinkIsAScoreWithoutAValue) {
  PagedProblem problem = make_problem(one_tiny_head(), {{1, 0, 1}}, {});
  const std::vector<float> q = queries_of(problem);
  double score = 0.0;
  for (std::int32_t d = 0; d < 8; ++d)
    score += double{q[static_cast<std::size_t>(d)]} * problem.stored_key(0, 0, 1, 0, d);
  const std::vector<float> sink = {static_cast<float>(score * double{problem.shape.attention.score_scale})};
  problem.shape.attention.sinks = sink;
  const std::vector<float> out = run_attention(*reference_backend(), problem);
  for (std::int32_t d = 0; d < 8; ++d)
    EXPECT_NEAR(out[static_cast<std::size_t>(d)], problem.stored_value(0, 0, 1, 0, d) / 2.0, 1e-6);
}

TEST(ReferencePagedAttention, AWindowHoldsAsManyPositionsAsItSays) {
  const auto reference = reference_backend();
  const auto with = [&](std::int32_t window) {
    return run_attention(*reference, make_problem(with_window(one_tiny_head(), window), {{1, 40, 1}}, {}));
  };
  PagedProblem one = make_problem(with_window(one_tiny_head(), 1), {{1, 40, 1}}, {});
  const std::vector<float> out = run_attention(*reference, one);
  for (std::int32_t d = 0; d < 8; ++d)
    EXPECT_EQ(out[static_cast<std::size_t>(d)], static_cast<float>(one.stored_value(0, 40, 1, 0, d)));
  EXPECT_EQ(with(41), with(0)) << "41 positions are all";
  EXPECT_NE(with(40), with(0));
}

TEST_P(PagedAttention, GivesTheSameBitsForEveryBlockSizeThreadAndInstructionSet) {
  std::vector<std::pair<Shape, KvType>> cases;
  for (const KvType type : kEveryKvType) {
    for (const Shape& shape :
         {smollm2_shape(), odd_shape(), one_tiny_head(), latent_shape(), odd_latent_shape()})
      cases.emplace_back(shape, type);
  }
  for (const std::int32_t window : {40, 300}) {
    for (const KvType type : {KvType::kF16, KvType::kInt8})
      cases.emplace_back(with_window(smollm2_shape(), window, 20.0f), type);
  }
  const std::vector<SequenceSpec> sequences = {{1, 0, 90}, {2, 1100, 1}, {3, 500, 30}};
  const auto portable = cpu_backend(cpu::InstructionSet::kPortable, 1);
  for (const auto& [shape, type] : cases) {
    const std::vector<float> expected =
        run_attention(*portable, make_problem(shape, sequences, {.type = type}));
    const std::vector<std::int32_t> every_path = {1, 3, 8, 16, 24, 32, 48, 100, 256},
                                    some = {3, 8, 16, 24, 256};
    for (const std::int32_t block_size : type == KvType::kF16 ? every_path : some) {
      const PagedProblem problem = make_problem(shape, sequences, {.type = type, .block_size = block_size});
      const std::int32_t threads = 1 + block_size % 5;
      const std::vector<float> got = run_attention(*cpu_backend(GetParam(), threads), problem);
      EXPECT_TRUE(same_bits(got.data(), expected.data(), problem.num_rows() * shape.output_width()))
          << describe(problem) << ", " << threads << " threads";
    }
  }
}

// Sinks of both signs, from those that nothing is left for to those that take nothing. The step has rows that
// one thread computes, and rows whose ranges are merged.
TEST_P(PagedAttention, SinksTakeTheirPartAsTheReferenceSays) {
  const std::vector<SequenceSpec> sequences = {{1, 0, 20}, {2, 2000, 1}, {3, 740, 60}};
  const Shape shape = smollm2_shape();
  const auto with = [&](const std::vector<float>& sinks, std::int32_t window) {
    PagedProblem problem = make_problem(shape, sequences, {});
    problem.shape.attention.sinks = sinks;
    problem.shape.attention.window = window;
    return problem;
  };
  const std::vector<float> sinks = {0.5f, -3.0f, 4.0f, -100.0f, 9.0f, 30.0f, 1.0f, -0.0f, 2.5f};
  const std::vector<float> low(9, -1e30f), high(9, 1e30f);
  const auto portable = cpu_backend(cpu::InstructionSet::kPortable, 1);
  for (const std::int32_t window : {0, 50, 300}) {
    const PagedProblem problem = with(sinks, window);
    const std::vector<float> expected = run_attention(*reference_backend(), problem);
    const std::vector<float> twin = run_attention(*portable, problem);
    for (const std::int32_t threads : {1, 2, 8}) {
      const auto backend = cpu_backend(GetParam(), threads);
      const std::vector<float> got = run_attention(*backend, problem);
      EXPECT_LE(relative_difference(got, expected), 5e-6) << window << ", " << threads << " threads";
      EXPECT_TRUE(same_bits(got.data(), twin.data(), static_cast<std::int64_t>(got.size())))
          << window << ", " << threads << " threads";
      const std::vector<float> without = run_attention(*backend, with({}, window));
      EXPECT_GT(relative_difference(got, without), 0.1);
      const std::vector<float> nothing_taken = run_attention(*backend, with(low, window));
      EXPECT_TRUE(same_bits(nothing_taken.data(), without.data(), static_cast<std::int64_t>(without.size())));
      for (const float left : run_attention(*backend, with(high, window))) ASSERT_EQ(left, 0.0f);
    }
  }
}

// Heads that no thread can take whole: their ranges become items, and what these leave is merged by rows.
TEST_P(PagedAttention, WhatThreadsShareHasTheSameBits) {
  const std::vector<SequenceSpec> sequences = {{1, 740, 60}, {2, 2000, 1}};
  const auto portable = cpu_backend(cpu::InstructionSet::kPortable, 1);
  for (const std::int32_t window : {0, 300}) {
    for (const KvType type : {KvType::kF16, KvType::kInt8}) {
      const Shape shape = window > 0 ? with_window(smollm2_shape(), window) : smollm2_shape();
      const PagedProblem problem = make_problem(shape, sequences, {.type = type});
      const std::vector<float> expected = run_attention(*portable, problem);
      for (const std::int32_t threads : {2, 8}) {
        cpu::AttentionWork work;
        cpu::plan_attention(problem.batch(),
                            {.block_size = problem.layout.block_size,
                             .num_kv_heads = shape.attention.num_kv_heads,
                             .group_size = shape.attention.num_heads / shape.attention.num_kv_heads,
                             .num_threads = threads,
                             .floats_per_row = 240,
                             .window = window},
                            work);
        ASSERT_FALSE(work.splits.empty());
        const std::vector<float> got = run_attention(*cpu_backend(GetParam(), threads), problem);
        EXPECT_TRUE(same_bits(got.data(), expected.data(), problem.num_rows() * shape.query_width()))
            << describe(problem) << ", " << threads << " threads";
      }
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
    problem.spoil(0, kPosition, 1, kNan, std::numeric_limits<float>::infinity());
    const std::vector<float> got = run_attention(*cpu, problem);
    EXPECT_TRUE(same_bits(got.data(), expected.data(), kPosition * shape.query_width())) << name_of(type);
    for (std::int64_t i = kPosition * shape.query_width(); i < static_cast<std::int64_t>(got.size()); ++i)
      ASSERT_TRUE(std::isnan(got[static_cast<std::size_t>(i)])) << name_of(type) << ": a NaN was lost";
  }
}

// A chunk is a window that grows until the next one begins: the bits of windows that hold as many positions.
TEST_P(PagedAttention, AChunkBeginsAtItsLastMultiple) {
  const auto cpu = cpu_backend(GetParam());
  for (const std::int32_t chunk : {1, 7, 16, 40, 255, 256, 300}) {
    Shape shape = with_window(odd_shape(), chunk);
    shape.attention.window_form = WindowForm::kChunk;
    const std::vector<SequenceSpec> sequences = {{1, 0, 90}, {2, 600, 1}, {3, 250, 60}};
    const PagedProblem problem = make_problem(shape, sequences, {});
    const std::vector<float> got = run_attention(*cpu, problem);
    EXPECT_LE(relative_difference(got, run_attention(*reference_backend(), problem)), 5e-6) << chunk;
    const std::int64_t width = shape.query_width();
    std::map<std::int32_t, std::vector<float>> by_window;
    for (std::int64_t row = 0; row < problem.num_rows(); ++row) {
      const std::int32_t position = problem.positions[static_cast<std::size_t>(row)];
      if (row % 7 != 0 && position % chunk > 1) continue;  // and the first two of every chunk
      const std::int32_t window = position % chunk + 1;
      std::vector<float>& all = by_window[window];
      if (all.empty())
        all = run_attention(*cpu, make_problem(with_window(odd_shape(), window), sequences, {}));
      EXPECT_TRUE(same_bits(got.data() + row * width, all.data() + row * width, width))
          << "row " << row << " at position " << position << " in chunks of " << chunk;
    }
  }
}

// What a window has left behind is never touched: not even a NaN in it can show.
TEST_P(PagedAttention, NothingBehindTheWindowReachesARow) {
  constexpr std::int32_t kWindow = 20, kBroken = 33;
  const Shape shape = with_window(smollm2_shape(), kWindow);
  const auto cpu = cpu_backend(GetParam());
  for (const KvType type : kEveryKvType) {
    PagedProblem problem = make_problem(shape, {{1, 0, 100}}, {.type = type});
    const std::vector<float> expected = run_attention(*cpu, problem);
    problem.spoil(0, kBroken, 1, kNan, kNan);
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

}  // namespace
}  // namespace octavo::kernels::testing
