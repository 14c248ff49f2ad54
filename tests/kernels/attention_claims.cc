#include "tests/kernels/attention_claims.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>

#include "tests/support/sweep.h"

namespace octavo::kernels::testing {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

struct AttentionCase {
  Shape shape;
  std::vector<SequenceSpec> sequences;
  ProblemOptions options = {};
  std::int32_t layer = 1;
};
using AttentionCases = std::vector<AttentionCase>;

// Decodes, chunks that end anywhere, and one long enough for the prefill tiles of a device.
const std::vector<SequenceSpec> kMixed = {{1, 0, 1},  {2, 0, 37}, {3, 235, 30},
                                          {4, 31, 1}, {5, 15, 2}, {6, 300, 1}};
const std::vector<SequenceSpec> kDecodes = {{1, 0, 1}, {2, 97, 1}, {3, 130, 2}, {4, 31, 1}};
// The same with contexts longer than windows, ranges and partitions.
const std::vector<SequenceSpec> kLong = {{1, 0, 1},    {2, 0, 37},  {3, 130, 9},  {4, 63, 1},
                                         {5, 200, 40}, {6, 600, 1}, {7, 500, 20}, {8, 1023, 1}};

std::vector<SequenceSpec> decodes_after(const std::vector<std::int32_t>& histories) {
  std::vector<SequenceSpec> sequences;
  for (const std::int32_t history : histories)
    sequences.push_back({100 + static_cast<std::uint64_t>(sequences.size()), history, 1});
  return sequences;
}

template <class Case>
std::vector<Case> some_of(const AttentionSubject& subject, const std::vector<Case>& cases, std::size_t n) {
  return subject.first_case ? test::some_of(cases, n, *subject.first_case) : cases;
}

std::vector<float> expected_attention(const PagedProblem& problem, std::int32_t layer = 1) {
  return run_attention(*reference_backend(), problem, layer);
}

double bound_of(const AttentionSubject& subject, const PagedProblem& problem) {
  const AttentionShape& shape = problem.shape.attention;
  std::int32_t queries = 0;
  for (const SequenceSpec& sequence : problem.sequences)
    queries = std::max(queries, sequence.new_tokens * (shape.num_heads / shape.num_kv_heads));
  for (const AttentionBound& bound : subject.bounds) {
    if (bound.type.value_or(problem.layout.type) == problem.layout.type && queries >= bound.least_queries)
      return bound.most;
  }
  ADD_FAILURE() << subject.name << " has no bound";
  return 0.0;
}

void expect_the_references(const AttentionSubject& subject, const AttentionCases& cases) {
  for (const AttentionCase& c : cases) {
    const PagedProblem problem = make_problem(c.shape, c.sequences, c.options);
    EXPECT_LE(relative_difference(attend(subject.attention, problem, c.layer),
                                  expected_attention(problem, c.layer)),
              bound_of(subject, problem))
        << describe(problem);
  }
}

// Of `got`, the rows first .. first + count.
void expect_same_rows(const PagedProblem& problem, const std::vector<float>& got,
                      const std::vector<float>& expected, std::int64_t first, std::int64_t count) {
  const std::int64_t width = problem.shape.output_width();
  ASSERT_EQ(got.size(), expected.size());
  EXPECT_TRUE(same_bits(got.data() + first * width, expected.data() + first * width, count * width))
      << describe(problem) << ", rows from " << first;
}

}  // namespace

std::vector<float> attend(const Attention& attention, const PagedProblem& problem, std::int32_t layer) {
  constexpr float kUntouched = -7.0f;
  const std::int64_t width = problem.shape.output_width(), stride = width + 3;
  std::vector<float> out(static_cast<std::size_t>(problem.num_rows() * stride), kUntouched), rows;
  EXPECT_TRUE(attention(problem, layer, queries_of(problem), out) == problem.pool)
      << "attention changed the pool";
  for (std::int64_t row = 0; row < problem.num_rows(); ++row) {
    const auto begin = out.begin() + row * stride;
    rows.insert(rows.end(), begin, begin + width);
    EXPECT_EQ(std::count(begin + width, begin + stride, kUntouched), 3) << "written between the rows";
  }
  return rows;
}

Shape heads_of(std::int32_t heads, std::int32_t kv_heads, std::int32_t head_dim) {
  const float scale = 1.0f / std::sqrt(static_cast<float>(head_dim));
  return {std::to_string(heads) + "/" + std::to_string(kv_heads) + " heads of " + std::to_string(head_dim),
          {heads, kv_heads, head_dim, head_dim / 2 * 2, RopePairing::kHalves, scale},
          32,
          32};
}

Shape with_window(Shape shape, std::int32_t window, float soft_cap) {
  shape.attention.window = window;
  shape.attention.score_soft_cap = soft_cap;
  return shape;
}

std::string describe(const PagedProblem& problem) {
  const AttentionShape& shape = problem.shape.attention;
  return problem.shape.name + " " + name_of(problem.layout.type) + " block size " +
         std::to_string(problem.layout.block_size) + " window " + std::to_string(shape.window) + " cap " +
         std::to_string(shape.score_soft_cap) + ", " + std::to_string(problem.num_rows()) + " rows";
}

TEST_P(AttentionClaims, EqualsTheReferenceForEveryTypeAndBlockSize) {
  AttentionCases cases, of_model;
  for (const KvType type : kEveryKvType) {
    for (const std::int32_t block_size : {1, 3, 8, 16, 21, 24, 32, 256}) {
      for (const Shape& shape : {odd_shape(), one_tiny_head()}) {
        for (const auto& sequences : {kMixed, kDecodes})
          cases.push_back({shape, sequences, {.type = type, .block_size = block_size}});
      }
    }
    for (const std::int32_t block_size : {8, 16})
      of_model.push_back({smollm2_shape(), kMixed, {.type = type, .block_size = block_size}});
  }
  expect_the_references(GetParam(), some_of(GetParam(), cases, 11));
  expect_the_references(GetParam(), some_of(GetParam(), of_model, 5));
}

TEST_P(AttentionClaims, EqualsTheReferenceForOddAndLargeHeadsAndSingleSequences) {
  const std::vector<SequenceSpec> sequences = {{1, 20, 1}, {2, 33, 2}, {3, 5, 70}};
  AttentionCases cases = {{heads_of(2, 1, 256), sequences, {.type = KvType::kF16}},
                          {heads_of(2, 1, 256), sequences, {.type = KvType::kF32}},
                          {heads_of(1, 1, 192), sequences, {.type = KvType::kBf16}},
                          {heads_of(3, 1, 33), sequences, {.type = KvType::kF16}},
                          {heads_of(2, 2, 1), sequences, {.type = KvType::kInt8}},
                          {heads_of(20, 1, 16), sequences, {.type = KvType::kF16}},
                          {heads_of(71, 1, 64), sequences, {.type = KvType::kFp8E4m3}},
                          {llama3_shape(), {{1, 40, 18}, {2, 260, 1}}, {.type = KvType::kF16}},
                          {llama3_shape(), {{1, 40, 18}, {2, 130, 1}}, {.type = KvType::kInt8}}};
  // Cut where there are many threads or multiprocessors.
  for (const std::int32_t history : {130, 600}) {
    for (const std::int32_t rows : {1, 5}) cases.push_back({smollm2_shape(), {{1, history, rows}}});
  }
  expect_the_references(GetParam(), some_of(GetParam(), cases, 2));
}

// The lengths at which lanes, blocks, chunks, ranges, slices, rounds of warps and partitions begin or end;
// all in one step.
TEST_P(AttentionClaims, EqualsTheReferenceAroundEveryBorder) {
  const auto decodes =
      decodes_after({0,  1,  6,  7,   8,   14,  15,  16,  17,  30,  31,  32,  33,  47,  62,
                     63, 64, 65, 126, 127, 128, 191, 254, 255, 256, 257, 511, 512, 599, 600});
  expect_the_references(GetParam(), {{odd_shape(), decodes}, {one_tiny_head(), decodes}});
}

TEST_P(AttentionClaims, ReadsSharedBlocksAndTheLayerThatItIsAskedFor) {
  for (const std::int32_t layer : {0, 1, 2}) {
    expect_the_references(GetParam(), {{odd_shape(),
                                        {{1, 64, 1}, {2, 64, 1, 0, 48}, {3, 80, 3, 1, 32}},
                                        {.num_layers = 3, .share_blocks = true},
                                        layer}});
  }
}

TEST_P(AttentionClaims, EqualsTheReferenceForEveryWindow) {
  AttentionCases cases;
  for (const Shape& shape : {odd_shape(), one_tiny_head()}) {
    for (const std::int32_t window : {1, 2, 16, 17, 63, 64, 65, 129, 255, 257, 511, 512, 601, 5000})
      cases.push_back({with_window(shape, window), kLong});
  }
  expect_the_references(GetParam(), some_of(GetParam(), cases, 3));
}

// Of decodes alone, whose bound is tighter on a device: windows that begin and end around the borders of
// slices, rounds and partitions.
TEST_P(AttentionClaims, EqualsTheReferenceForWindowsAroundEveryBorder) {
  const auto decodes =
      decodes_after({99, 100, 101, 127, 128, 163, 164, 165, 191, 256, 511, 512, 611, 612, 613, 700});
  for (const std::int32_t window : {100, 130, 513})
    expect_the_references(GetParam(), {{with_window(odd_shape(), window), decodes}});
}

TEST_P(AttentionClaims, EqualsTheReferenceForWindowsAndCapsOfEveryTypeAndBlockSize) {
  AttentionCases cases;
  for (const KvType type : kEveryKvType) {
    for (const std::int32_t block_size : {1, 3, 8, 16, 21, 256})
      cases.push_back({with_window(odd_shape(), 70, 4.0f), kLong, {.type = type, .block_size = block_size}});
  }
  expect_the_references(GetParam(), some_of(GetParam(), cases, 7));
}

TEST_P(AttentionClaims, EqualsTheReferenceFromCapsThatLevelEverythingToCapsThatChangeNothing) {
  AttentionCases cases;
  for (const KvType type : {KvType::kF16, KvType::kF32, KvType::kInt8}) {
    for (const float cap : {1e-3f, 0.5f, 5.0f, 50.0f, 1e6f}) {
      cases.push_back({with_window(odd_shape(), 0, cap),
                       {{1, 0, 1}, {3, 130, 40}, {6, 200, 1}, {7, 70, 3}},
                       {.type = type}});
    }
  }
  expect_the_references(GetParam(), some_of(GetParam(), cases, 4));
}

// cap * tanh(infinity / cap) would be a score like any other.
TEST_P(AttentionClaims, ASoftCapDoesNotHideWhatIsNotFinite) {
  for (const std::int32_t rows : {1, 50}) {
    PagedProblem problem = make_problem(with_window(odd_shape(), 0, 50.0f), {{1, 40, rows}}, {});
    for (std::int32_t head = 0; head < 2; ++head)
      write_element(KvType::kF16, problem.key(0, 12, 1, head, 3), std::numeric_limits<float>::infinity());
    for (const float number : attend(GetParam().attention, problem)) EXPECT_TRUE(std::isnan(number));
  }
}

TEST_P(AttentionClaims, OfOnePositionIsItsValue) {
  for (const KvType type : GetParam().exact_types) {
    PagedProblem problem =
        make_problem(with_window(odd_shape(), 1), {{1, 0, 1}, {2, 40, 1}, {3, 90, 50}}, {.type = type});
    const std::vector<float> out = attend(GetParam().attention, problem);
    for (std::size_t i = 0; i < out.size(); ++i) {
      const std::size_t row = i / 320;
      const auto sequence = static_cast<std::int32_t>(std::min<std::size_t>(row, 2)),
                 kv_head = static_cast<std::int32_t>(i / 160 % 2), d = static_cast<std::int32_t>(i % 80);
      const double value = problem.stored_value(sequence, problem.positions[row], 1, kv_head, d);
      ASSERT_EQ(out[i], static_cast<float>(value)) << name_of(type) << " row " << row;
    }
  }
}

TEST_P(AttentionClaims, ASequenceKeepsWhatIsNotFiniteToItself) {
  const std::vector<KvType> types(std::begin(kEveryKvType), std::end(kEveryKvType));
  for (const KvType type : some_of(GetParam(), types, 2)) {
    PagedProblem problem = make_problem(odd_shape(), {{1, 40, 40}, {2, 30, 1}, {3, 0, 40}}, {.type = type});
    const std::vector<float> before = attend(GetParam().attention, problem);
    problem.spoil(1, 12, 1, std::nullopt, kNan);
    const std::vector<float> after = attend(GetParam().attention, problem);
    expect_same_rows(problem, after, before, 0, 40);
    expect_same_rows(problem, after, before, 41, 40);
    EXPECT_TRUE(std::all_of(after.begin() + 40 * 320, after.begin() + 41 * 320,
                            [](float number) { return std::isnan(number); }))
        << name_of(type) << ": a NaN was lost";
  }
}

// Keys are read by eights and by ranges, those just before the window of a first row among them: NaNs there,
// in keys and values, change no bit.
TEST_P(AttentionClaims, WhatIsNotFiniteJustBeforeTheWindowReachesNoRow) {
  constexpr std::int32_t kWindow = 21, kHistory = 103;
  AttentionCases cases;
  for (const KvType type : kEveryKvType) {
    for (const std::int32_t block_size : {1, 8, 16}) {
      for (const std::int32_t rows : {1, 50}) {
        cases.push_back({with_window(odd_shape(), kWindow),
                         {{1, kHistory, rows}},
                         {.type = type, .block_size = block_size}});
      }
    }
  }
  for (const AttentionCase& c : some_of(GetParam(), cases, 7)) {
    PagedProblem problem = make_problem(c.shape, c.sequences, c.options);
    const std::vector<float> expected = attend(GetParam().attention, problem);
    for (std::int32_t position = 70; position < kHistory - kWindow + 1; ++position)
      problem.spoil(0, position, 1, kNan, kNan);
    expect_same_rows(problem, attend(GetParam().attention, problem), expected, 0, problem.num_rows());
  }
}

TEST_P(AttentionClaims, ARowAloneEqualsTheRowAmongOthersAndInAnyChunk) {
  for (const AttentionChunk& chunk : GetParam().chunks) {
    const std::int64_t width = chunk.shape.output_width();
    const auto rows_after = [&](std::vector<SequenceSpec> sequences) {
      return attend(GetParam().attention, make_problem(chunk.shape, sequences, {.type = chunk.type}));
    };
    const std::vector<float> together =
        rows_after({{9, 20, 1}, {1, chunk.history, chunk.num_rows}, {8, 300, 40}});
    for (const auto& [first, count] : chunk.pieces) {
      const std::vector<float> alone = rows_after({{1, chunk.history + first, count}});
      EXPECT_TRUE(same_bits(alone.data(), together.data() + (1 + first) * width, count * width))
          << chunk.shape.name << " " << name_of(chunk.type) << " window " << chunk.shape.attention.window
          << " rows from " << first << ", " << count;
    }
  }
}

}  // namespace octavo::kernels::testing
