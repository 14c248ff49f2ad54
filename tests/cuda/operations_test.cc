// The operations of the CUDA backend on the emulated device: the claims of operation_claims.h against the
// reference, and what only this backend has: products by the library, and kernels that are looked at alone.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "kernels/cuda/matmul/matmul.h"
#include "kernels/cuda/matmul/matmul_kernels.h"
#include "kernels/cuda/sampling/logits_summary.h"
#include "kernels/dequantize.h"
#include "tests/cuda/device_arrays.h"
#include "tests/cuda/device_problem.h"
#include "tests/kernels/operation_claims.h"
#include "tests/support/sweep.h"

namespace octavo::kernels::cuda {
namespace {

using testing::AttentionInputCase;
using testing::BackendNeeds;
using testing::Bound;
using testing::Claim;
using testing::FeedForward;
using testing::OperationClaims;
using testing::OwnedMatrix;
using testing::PartCase;
using testing::ProductCase;
using testing::relative_difference;
using testing::Shape;
using testing::Subject;
using testing::TestBackend;

// On tensor cores an expanded weight is one float16 number, off by 2^-12 of itself, and an activation one or
// two; sums of random signs over a few dozen columns (the smallest shape has 32) keep most of that. Quantised
// weights with few rows meet 16-bit integers, 1/65278 of the largest of 32. bfloat16 numbers have 8 bits, two
// of them 16. Feed-forward layers: a product of two sums. Float weights meet floats, and float16 ones of
// tiles and of the library activations of 22 bits.
constexpr double kOneHalf = 1e-3, kTwoHalves = 5e-4, kFloat = 2e-5;
const std::vector<Bound> kBounds = {
    {Claim::kAttentionInput, kTwoHalves, Activation::kF32},
    {Claim::kAttentionInput, kOneHalf, Activation::kInt16},
    {Claim::kProjectResidual, 1e-4, Activation::kF32, TensorType::kBF16},
    {Claim::kProjectResidual, 4e-3, Activation::kInt16, TensorType::kBF16},
    {Claim::kProjectResidual, kTwoHalves, Activation::kF32},
    {Claim::kProjectResidual, kOneHalf, Activation::kInt16},
    {Claim::kFeedForwardInput, 4e-4, Activation::kF32, TensorType::kBF16},
    {Claim::kFeedForwardInput, 1.6e-2, Activation::kInt16, TensorType::kBF16},
    {Claim::kFeedForwardInput, 4 * kTwoHalves, Activation::kF32},
    {Claim::kFeedForwardInput, 4 * kOneHalf, Activation::kInt16},
    {Claim::kLogits, kOneHalf},
    {Claim::kEmbedding, 1e-6},
    {Claim::kHeadParts, kFloat},
    {Claim::kPostNorm, kFloat},
    {Claim::kFeedForwardKinds, kFloat},
    {Claim::kCappedLogits, kFloat},
};

const std::vector<testing::SequenceSpec> kMixed = {{1, 0, 9}, {2, 15, 1}, {3, 30, 4}};
const std::vector<testing::SequenceSpec> kDecodes = {{1, 8, 1}, {2, 15, 1}, {3, 30, 1}};

std::vector<AttentionInputCase> attention_inputs() {
  std::vector<AttentionInputCase> cases;
  for (const Activation activation : {Activation::kF32, Activation::kInt16}) {
    for (const Shape& shape : {testing::odd_shape(), testing::one_tiny_head()}) {
      for (const TensorType type : {TensorType::kQ4_1, TensorType::kF16}) {
        for (const KvType kv_type : testing::kEveryKvType) {
          const std::int32_t block_size = type == TensorType::kF16 ? 3 : 16;
          for (const auto& sequences : {kMixed, kDecodes})
            cases.push_back({shape, activation, type, kv_type, block_size, block_size == 3, sequences});
        }
      }
    }
  }
  std::vector<AttentionInputCase> some = test::some_of(cases, 5);
  for (const auto& sequences : {kMixed, kDecodes}) {
    some.push_back({testing::smollm2_shape(), Activation::kInt16, TensorType::kQ4_1, KvType::kF16, 16, false,
                    sequences});
  }
  return some;
}

std::vector<ProductCase> layer_products() {
  std::vector<ProductCase> cases;
  for (const Activation activation : {Activation::kF32, Activation::kInt16}) {
    for (const TensorType type : {TensorType::kQ4_1, TensorType::kBF16, TensorType::kF32}) {
      for (const std::int64_t num_rows : {1, 14})
        cases.push_back({testing::odd_shape(), activation, type, type == TensorType::kF32, num_rows});
    }
  }
  return cases;
}

std::vector<PartCase> post_norms() {
  std::vector<PartCase> cases;
  for (const std::int64_t width : {5, 57, 96, 600}) {
    for (const std::int32_t num_rows : {3, 19, 70}) {
      cases.push_back({width, num_rows, num_rows == 3 ? TensorType::kF32 : TensorType::kF16, num_rows == 19});
    }
  }
  return test::some_of(cases, 5);
}

Subject emulated() {
  Shape unrotated = testing::odd_shape();
  unrotated.attention.rotary_dim = 0;
  return {.name = "cuda",
          .create = [](const BackendNeeds& needs) { return std::make_unique<EmulatedBackend>(needs); },
          .twin = nullptr,
          .bounds = kBounds,
          .stored_factor = 2.0,
          .layer_centre = 10.0f,
          .attention_inputs = attention_inputs(),
          .products = layer_products(),
          .logits_activations = {Activation::kInt16},
          .embedding_widths = {1, 31, 32, 90},
          .head_shapes = {testing::odd_shape(), testing::one_tiny_head(), unrotated},
          .post_norms = post_norms(),
          .feed_forwards = {{5, 19, TensorType::kF16, true}, {57, 3}, {96, 19, TensorType::kF16}}};
}

INSTANTIATE_TEST_SUITE_P(Emulated, OperationClaims, ::testing::Values(emulated()), testing::name_of_subject);

TEST(CudaOperations, FeedForwardLayersOfTheLibraryAndOfTwoTypesEqualTheReference) {
  const auto expect = [](const FeedForward& kind, std::int32_t num_rows, bool deterministic) {
    EmulatedBackend backend(
        {.shape = testing::shape_of_width(48, 70), .num_rows = num_rows, .deterministic = deterministic});
    TestBackend reference(testing::reference_backend());
    EXPECT_LE(relative_difference(run_feed_forward_input(backend, kind, 48, num_rows),
                                  run_feed_forward_input(reference, kind, 48, num_rows)),
              kFloat)
        << describe(kind) << ", " << num_rows << " rows";
  };
  for (const bool has_gate : {true, false}) {
    FeedForward kind{.norm = NormKind::kLayer,
                     .has_gate = has_gate,
                     .activation = FeedForwardActivation::kGelu,
                     .gate_type = TensorType::kF16,
                     .up_type = TensorType::kF16,
                     .centre = 10.0f};
    expect(kind, 70, false);
    kind.gate_type = TensorType::kF32;  // a launch each, then both together
    expect(kind, 11, false);
    expect(kind, 11, true);
  }
}

TEST(CudaOperations, ActivationsAreAccurateOverTheWholeRange) {
  std::vector<float> z;
  for (float value = -12.0f; value < 12.0f; value += 0.0371f) z.push_back(value);
  for (const float value : {0.0f, 1e-30f, -1e-30f, 90.0f, -100.0f, 1e20f, -1e20f}) z.push_back(value);
  const auto columns = static_cast<std::int64_t>(z.size());
  // A column of zeros times anything, plus a bias of z.
  const OwnedMatrix zeros{{TensorType::kF32, columns, 8, {}}, std::vector<std::byte>(z.size() * 8 * 4)};
  OwnedMatrix weights = zeros;
  weights.source.bytes = weights.bytes;
  for (const auto activation : {FeedForwardActivation::kSilu, FeedForwardActivation::kGelu}) {
    TestStream stream;
    const auto products = MatrixProducts::create(stream.get(), {}).value();
    ASSERT_TRUE(products->reserve(step_shape(testing::shape_of_width(8, columns))));
    const auto matrix = load_matrix(weights.source);
    const DeviceArray<float> bias(z), input(std::vector<float>(8, 1.0f)),
        out(std::vector<float>(z.size(), -1.0f));
    const Product product{matrix.get(), bias.data(), out.data(), columns, epilogue_of(activation)};
    products->multiply({input.data(), 8, 1}, {&product, 1});
    stream.finish();
    const std::vector<float> got = out.read();
    for (std::size_t i = 0; i < z.size(); ++i) {
      const double value = z[i], inner = std::sqrt(2.0 / 3.14159265358979323846) *
                                         (value + 0.044715 * value * value * value);
      const double expected = activation == FeedForwardActivation::kSilu
                                  ? value / (1.0 + std::exp(-value))
                                  : 0.5 * value * (1.0 + std::tanh(inner));
      EXPECT_NEAR(got[i], expected, 3e-6 * std::fabs(expected) + 1e-9) << value;
    }
  }
}

// 65,535 blocks are the most that y and z of a grid can hold.
TEST(CudaOperations, AStepMayHaveMoreTokensThanAGridIsHigh) {
  constexpr std::int32_t kTokens = 65'536 + 7, kColumns = 8, kTableRows = 5;
  EmulatedBackend backend({.shape = testing::shape_of_width(kColumns, kColumns), .num_rows = kTokens});
  const OwnedMatrix table = testing::random_matrix(TensorType::kF32, kTableRows, kColumns, 3);
  std::vector<float> rows(kTableRows * kColumns);
  dequantize(TensorType::kF32, table.bytes.data(), kTableRows * kColumns, rows.data());
  std::vector<std::int32_t> token_ids(kTokens);
  std::vector<float> expected, product(kTokens * 2), factors(kTokens), finished(kTokens * 2);
  for (std::size_t i = 0; i < kTokens; ++i) {
    token_ids[i] = static_cast<std::int32_t>(i * 7 % kTableRows);
    expected.insert(expected.end(), rows.begin() + token_ids[i] * kColumns,
                    rows.begin() + (token_ids[i] + 1) * kColumns);
    product[2 * i] = static_cast<float>(i), product[2 * i + 1] = 2.0f;
    factors[i] = static_cast<float>(i % 4);
    finished[2 * i] = product[2 * i] * factors[i], finished[2 * i + 1] = 2.0f * factors[i];
  }
  const auto tokens = backend->prepare_matrix(table.source).value();
  EXPECT_EQ(run_embed(backend, {.tokens = tokens.get()}, token_ids, std::vector<std::int32_t>(kTokens)),
            expected);

  TestStream stream;
  const DeviceArray<float> sums(product), scales(factors), out(std::vector<float>(kTokens * 2, -1.0f));
  FinishTargets targets;
  targets.targets[targets.count++] = {.sums = sums.data(),
                                      .factors = scales.data(),
                                      .out = out.data(),
                                      .sums_stride = 2,
                                      .out_stride = 2,
                                      .outputs = 2};
  launch_finish(stream.get(), targets, kTokens);
  stream.finish();
  EXPECT_EQ(out.read(), finished);
}

TEST(CudaOperations, ASummaryIsFiniteExactlyIfARowCanBeDrawnFrom) {
  constexpr std::int64_t kVocabulary = 150, kPieces = 3;
  constexpr float kInfinity = std::numeric_limits<float>::infinity(),
                  kNan = std::numeric_limits<float>::quiet_NaN();
  struct Row {
    float everywhere, at_100;
    bool is_finite;
  };
  const std::vector<Row> rows = {{1.0f, 2.0f, true},
                                 {-kInfinity, 5.0f, true},
                                 {-kInfinity, -kInfinity, false},
                                 {1.0f, kNan, false},
                                 {-kInfinity, kNan, false},
                                 {0.0f, kInfinity, false},
                                 {-kInfinity, kInfinity, false},
                                 {300.0f, -kInfinity, true}};
  std::vector<float> logits;
  for (const Row& row : rows) {
    std::vector<float> values(kVocabulary, row.everywhere);
    values[100] = row.at_100;
    logits.insert(logits.end(), values.begin(), values.end());
  }
  DeviceStatus status;
  Stream stream = Stream::create(status).value();
  const auto num_rows = static_cast<std::int32_t>(rows.size());
  const DeviceMemory device = DeviceMemory::allocate(num_rows * kVocabulary * 4, "test").value();
  const DeviceMemory sums = DeviceMemory::allocate(num_rows * 4, "test").value();
  const DeviceMemory maxima = DeviceMemory::allocate(num_rows * kPieces * 4, "test").value();
  const DeviceMemory scratch = DeviceMemory::allocate(num_rows * kPieces * 4, "test").value();
  ASSERT_EQ(cudaMemcpy(device.data(), logits.data(), logits.size() * 4, cudaMemcpyDefault), cudaSuccess);
  summarise_logits(stream, device.as<float>(), num_rows, kVocabulary, /*soft_cap=*/0.0f, sums.as<float>(),
                   maxima.as<float>(), scratch.as<float>());
  stream.synchronize();
  std::vector<float> got(rows.size());
  ASSERT_EQ(cudaMemcpy(got.data(), sums.data(), got.size() * 4, cudaMemcpyDefault), cudaSuccess);
  for (std::size_t i = 0; i < rows.size(); ++i)
    EXPECT_EQ(std::isfinite(got[i]), rows[i].is_finite) << i << ": " << got[i];
  EXPECT_NEAR(got[0], std::log(149 * std::exp(1.0) + std::exp(2.0)), 1e-5);
  EXPECT_NEAR(got[1], 5.0, 1e-5);
  EXPECT_NEAR(got[7], 300.0 + std::log(149.0), 1e-4);
}

TEST(CudaOperations, CappedLogitsAreAccurateAndHideNothing) {
  constexpr std::int64_t kVocabulary = 1500;
  constexpr float kCap = 30.0f, kInfinity = std::numeric_limits<float>::infinity();
  std::vector<float> logits;
  while (logits.size() < kVocabulary) logits.push_back(-360.0f + 0.48f * static_cast<float>(logits.size()));
  logits[3] = 0.0f, logits[4] = 1e-30f, logits[5] = -1e30f;
  std::vector<float> broken = logits, other = logits;
  broken[700] = kInfinity, other[700] = -kInfinity;  // capped, both would be like any other
  std::vector<float> rows = logits;
  for (const auto& row : {broken, other}) rows.insert(rows.end(), row.begin(), row.end());
  TestStream stream;
  const DeviceArray<float> device(rows), sums(std::vector<float>(3)), maxima(std::vector<float>(3 * 24)),
      scratch(std::vector<float>(3 * 24));
  summarise_logits(stream.get(), device.data(), 3, kVocabulary, kCap, sums.data(), maxima.data(),
                   scratch.data());
  stream.finish();
  const std::vector<float> got = device.read(), log_sums = sums.read();
  for (std::size_t i = 0; i < kVocabulary; ++i) {
    const double expected = double{kCap} * std::tanh(double{logits[i]} / double{kCap});
    EXPECT_NEAR(got[i], expected, 4e-7 * std::fabs(expected) + 1e-37) << logits[i];
  }
  EXPECT_TRUE(std::isfinite(log_sums[0]));
  EXPECT_TRUE(std::isnan(got[kVocabulary + 700]) && std::isnan(got[2 * kVocabulary + 700]));
  EXPECT_FALSE(std::isfinite(log_sums[1]));
  EXPECT_FALSE(std::isfinite(log_sums[2]));
}

}  // namespace
}  // namespace octavo::kernels::cuda
