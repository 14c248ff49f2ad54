// Paged attention on the emulated device: the claims of tests/kernels/attention_claims.h, and what only a
// device does. A small device, a large one, which cuts contexts, and a deterministic one share long sweeps.
#include <gtest/gtest.h>

#include <limits>
#include <utility>
#include <vector>

#include "kernels/cuda/attention/attention.h"
#include "tests/cuda/device_step.h"
#include "tests/kernels/attention_claims.h"
#include "tests/support/sweep.h"

namespace octavo::kernels::cuda {
namespace {

using testing::AttentionBound;
using testing::AttentionChunk;
using testing::AttentionClaims;
using testing::AttentionSubject;
using testing::make_problem;
using testing::odd_shape;
using testing::PagedProblem;
using testing::relative_difference;
using testing::same_bits;
using testing::with_window;

constexpr AttentionOptions kSmallDevice{.num_multiprocessors = 1, .max_shared_bytes = 64 * 1024};
constexpr AttentionOptions kLargeDevice{.num_multiprocessors = 132, .max_shared_bytes = 227 * 1024};
constexpr AttentionOptions kDeterministic{
    .deterministic = true, .num_multiprocessors = 132, .max_shared_bytes = 227 * 1024};

testing::Attention attention_with(const AttentionOptions& options) {
  return [options](const PagedProblem& problem, std::int32_t layer, const std::vector<float>& q,
                   std::vector<float>& out) {
    const AttentionShape& heads = problem.shape.attention;
    TestStream stream;
    DeviceStep step(problem);
    const DeviceArray<float> queries(q), device_out(out);
    const auto attention = PagedAttention::create(stream.get(), options);
    StepShape shape;
    shape.num_rows = step.batch().num_tokens;
    shape.max_context_len = 1024;
    shape.num_heads = heads.num_heads, shape.num_kv_heads = heads.num_kv_heads;
    shape.head_dim = heads.head_dim;
    EXPECT_TRUE(attention->reserve(shape));
    attention->attend(heads, step.batch(), problem.layout, layer, step.pool(), queries.data(),
                      problem.shape.query_width(), device_out.data(),
                      static_cast<std::int64_t>(out.size()) / problem.num_rows());
    stream.finish();
    out = device_out.read();
    return step.read_pool();
  };
}

// Split tiles with float16 operands (f16, both fp8): queries and weights have 22 bits; sums in float. Prefill
// tiles with them, of more than 64 queries of a KV head and never if deterministic: 11 bits. bfloat16
// operands (bf16, int8, f32): queries and weights have 16 bits, f32's keys and values too. A wrong token,
// dimension or weight is of the order of 1.
constexpr double kSplitHalf = 1e-5, kPrefillHalf = 2e-3, kBfloat = 1e-4;
const std::vector<AttentionBound> kSplitBounds = {
    {kBfloat, KvType::kF32}, {kBfloat, KvType::kBf16}, {kBfloat, KvType::kInt8}, {kSplitHalf}};
const std::vector<AttentionBound> kBounds = {{kBfloat, KvType::kF32},
                                             {kBfloat, KvType::kBf16},
                                             {kBfloat, KvType::kInt8},
                                             {kPrefillHalf, {}, /*least_queries=*/65},
                                             {kSplitHalf}};

// Around the border of a partition, and within tiles of 16 rows.
std::vector<AttentionChunk> chunks() {
  std::vector<AttentionChunk> cases;
  for (const KvType type : {KvType::kF16, KvType::kInt8}) {
    for (const std::int32_t window : {0, 1, 50, 300, 530}) {
      cases.push_back({with_window(odd_shape(), window, window == 0 ? 0.0f : 5.0f),
                       type,
                       500,
                       60,
                       {{0, 1}, {1, 1}, {11, 1}, {12, 1}, {13, 1}, {59, 1}, {7, 30}, {5, 55}}});
    }
  }
  return test::some_of(cases, 2);
}

std::vector<AttentionSubject> devices() {
  std::vector<AttentionSubject> subjects = {
      {.name = "small", .attention = attention_with(kSmallDevice), .bounds = kBounds},
      {.name = "large", .attention = attention_with(kLargeDevice), .bounds = kBounds},
      {.name = "deterministic",
       .attention = attention_with(kDeterministic),
       .bounds = kSplitBounds,
       .chunks = chunks()}};
  for (std::size_t i = 0; i < subjects.size(); ++i) {
    subjects[i].first_case = i;
    subjects[i].exact_types = {KvType::kF16};
  }
  return subjects;
}

INSTANTIATE_TEST_SUITE_P(Emulated, AttentionClaims, ::testing::ValuesIn(devices()),
                         testing::name_of_attention);

// Queries and weights of one bfloat16 number have 8 bits.
TEST(CudaPagedAttention, OfOnePartIsAsNearAsItsBitsSay) {
  constexpr double kOneBfloat = 1e-2;
  AttentionOptions one_part = kLargeDevice;
  one_part.half_parts = HalfParts::kOne;
  for (const KvType type : {KvType::kF32, KvType::kF16, KvType::kBf16, KvType::kInt8}) {
    const bool has_choice = type == KvType::kBf16 || type == KvType::kInt8;
    for (const std::int32_t head_dim : {64, 80, 200}) {
      const float cap = head_dim == 80 ? 5.0f : 0.0f;
      const PagedProblem problem =
          make_problem(with_window(testing::heads_of(6, 2, head_dim), 0, cap), {{1, 45, 50}}, {.type = type});
      const std::vector<float> expected = run_attention(*testing::reference_backend(), problem, 1);
      const double one = relative_difference(attend(attention_with(one_part), problem), expected),
                   two = relative_difference(attend(attention_with(kLargeDevice), problem), expected);
      EXPECT_LE(one, has_choice ? kOneBfloat : two) << describe(problem);
      EXPECT_EQ(one > 2 * two, has_choice) << describe(problem);
    }
  }
}

// Scores so far apart that what weights are relative to moves many times in a context.
TEST(CudaPagedAttention, SumsStayRightWhereScoresRiseFar) {
  constexpr float kSteeper = 40.0f;
  for (const AttentionOptions& options : {kSmallDevice, kLargeDevice, kDeterministic}) {
    for (const KvType type : {KvType::kF16, KvType::kBf16, KvType::kFp8E4m3}) {
      testing::Shape shape = odd_shape();
      shape.attention.score_scale *= kSteeper;
      for (const std::int32_t rows : {1, 50}) {
        const PagedProblem problem = make_problem(shape, {{1, 400, rows}}, {.type = type});
        const bool has_one_part = rows > 1 && type != KvType::kBf16 && !options.deterministic;
        const double bound = type == KvType::kBf16 ? kBfloat : has_one_part ? kPrefillHalf : kSplitHalf;
        EXPECT_LE(relative_difference(attend(attention_with(options), problem),
                                      run_attention(*testing::reference_backend(), problem, 1)),
                  kSteeper * bound)
            << describe(problem);
      }
    }
  }
}

// Scratch for few partial sums: the tiles of a step then go in several launches.
TEST(CudaPagedAttention, GivesTheSameBitsInManyLaunches) {
  AttentionOptions little = kDeterministic;
  little.num_multiprocessors = 1;
  const PagedProblem problem = make_problem(odd_shape(), {{1, 520, 40}, {2, 0, 1}, {3, 600, 9}}, {});
  const std::vector<float> one = attend(attention_with(kDeterministic), problem),
                           many = attend(attention_with(little), problem);
  EXPECT_TRUE(same_bits(one.data(), many.data(), static_cast<std::int64_t>(one.size())));
}

// The blocks behind the first row's window may be anywhere, even nowhere: an address that no pool has.
TEST(CudaPagedAttention, ReadsNothingBehindTheWindow) {
  constexpr std::int32_t kNowhere = std::numeric_limits<std::int32_t>::max();
  struct Case {
    std::int32_t block_size, rows, window;
    AttentionOptions options;
  };
  std::vector<Case> cases;
  for (const std::int32_t block_size : {8, 21}) {
    for (const std::int32_t rows : {1, 50}) {
      for (const std::int32_t window : {1, 20, 64, 150}) {
        for (const AttentionOptions& options : {kSmallDevice, kLargeDevice, kDeterministic})
          cases.push_back({block_size, rows, window, options});
      }
    }
  }
  for (const Case& c : test::some_of(cases, 5)) {
    const PagedProblem problem =
        make_problem(with_window(odd_shape(), c.window), {{1, 300, c.rows}}, {.block_size = c.block_size});
    PagedProblem cut = problem;
    for (std::int32_t block = 0; (block + 1) * c.block_size <= 300 - c.window + 1; ++block)
      cut.block_tables[static_cast<std::size_t>(block)] = kNowhere;
    ASSERT_NE(cut.block_tables, problem.block_tables);
    const testing::Attention attention = attention_with(c.options);
    const std::vector<float> expected = attend(attention, problem), got = attend(attention, cut);
    EXPECT_TRUE(same_bits(got.data(), expected.data(), static_cast<std::int64_t>(got.size())))
        << describe(problem);
  }
}

}  // namespace
}  // namespace octavo::kernels::cuda
