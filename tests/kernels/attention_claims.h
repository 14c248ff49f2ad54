// What paged attention promises on every backend, with and without windows and soft caps, stated once: the
// claims of attention_claims.cc compare a subject with the oracle, kernels/reference, or with itself. A
// program lists its subjects:
//
//   INSTANTIATE_TEST_SUITE_P(EveryInstructionSet, AttentionClaims, ::testing::ValuesIn(subjects()),
//   name_of_attention);
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "tests/kernels/paged_problem.h"

namespace octavo::kernels::testing {

// Attention of the problem's rows in `layer` into `out`, [num_rows, output_width or more]; gives the pool's
// bytes afterwards.
using Attention = std::function<std::vector<std::byte>(const PagedProblem& problem, std::int32_t layer,
                                                       const std::vector<float>& q, std::vector<float>& out)>;

// Of the largest difference over the largest expected number. The first row of a table that fits is the one
// that counts; what is left open fits all.
struct AttentionBound {
  double most;
  std::optional<KvType> type = {};
  // Of the step's longest chunk, its tokens times the query heads of a KV head.
  std::int32_t least_queries = 0;
};

// Whose rows, `pieces` of them (first, number of rows) by themselves, give the bits that they give in one
// chunk of `num_rows` from position `history` and beside other sequences.
struct AttentionChunk {
  Shape shape;
  KvType type;
  std::int32_t history, num_rows;
  std::vector<std::pair<std::int32_t, std::int32_t>> pieces;
};

struct AttentionSubject {
  std::string name;
  Attention attention;
  std::vector<AttentionBound> bounds;
  // Of the emulated device, which is slow: it takes every n-th case of a long sweep, from this one on, unless
  // OCTAVO_FULL_SWEEP=1.
  std::optional<std::size_t> first_case = {};
  std::vector<KvType> exact_types =
      {};  // whose values are kept whole: attention to one of them gives its bits
  std::vector<AttentionChunk> chunks = {};
};

inline void PrintTo(const AttentionSubject& subject, std::ostream* out) { *out << subject.name; }
inline std::string name_of_attention(const ::testing::TestParamInfo<AttentionSubject>& info) {
  return info.param.name;
}

class AttentionClaims : public ::testing::TestWithParam<AttentionSubject> {};

// Checks too that nothing is written into the pool or between the rows.
std::vector<float> attend(const Attention& attention, const PagedProblem& problem, std::int32_t layer = 1);

// Wholly rotated.
Shape heads_of(std::int32_t heads, std::int32_t kv_heads, std::int32_t head_dim);
Shape with_window(Shape shape, std::int32_t window, float soft_cap = 0.0f);
std::string describe(const PagedProblem& problem);

}  // namespace octavo::kernels::testing
