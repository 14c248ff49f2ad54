// A device that fails: whichever call it is, while a model loads or in a step, there is an error and no wrong
// number.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <optional>
#include <string>

#include "kernels/cuda/attention/attention_kernels.h"
#include "kernels/cuda/matmul/matmul_kernels.h"
#include "kernels/device_check.h"
#include "tests/cuda/device_problem.h"

namespace octavo::kernels::cuda {
namespace {

const testing::Shape kShape = testing::one_tiny_head();

// All of a step: prepared, reserved, computed.
struct Outcome {
  Result<void> status;
  std::vector<float> logits, sums;
};

class OneStep {
 public:
  static Result<OneStep> create() {
    OneStep step;
    OCTAVO_TRY(step.backend_, create_cuda_backend({}, testing::reference_backend()));
    Backend& backend = *step.backend_;
    OCTAVO_TRY(step.weights_, backend.prepare_matrix(step.source_->source));
    OCTAVO_TRY(step.norm_, backend.prepare_vector(testing::noise_row(1, 0, 32)));
    OCTAVO_TRY(step.rows_, backend.allocate_buffer(3 * 32));
    OCTAVO_TRY(step.kv_, backend.allocate_kv_cache({KvType::kF16, 4, 1, 1, 8}, 8));
    OCTAVO_TRY(step.host_, backend.allocate_host_kv_cache({KvType::kF16, 4, 1, 1, 8}, 8));
    OCTAVO_TRY_VOID(backend.reserve_step(step_shape(kShape)));
    return Result<OneStep>(std::move(step));
  }

  Outcome run() {
    const std::vector<std::int32_t> token_ids = {1, 2, 3}, positions = {0, 1, 2}, slots = {4, 5, 6},
                                    start = {0, 3}, context = {3}, tables = {1}, wanted = {2};
    const std::vector<BlockCopy> copies = {{0, 3}};
    const std::vector<float> rotations(3 * 8, 0.5f);
    const PagedBatch batch{3, 1, positions, slots, start, context, tables, 1, rotations};
    const MatrixView rows{rows_->data(), 3, 32, 32};
    const std::span<const float> norm(norm_->data(), 32);
    backend_->swap_out(*kv_, *host_, copies);
    backend_->swap_in(*host_, *kv_, copies);
    backend_->copy_blocks(*kv_, copies);
    backend_->begin_step(batch, token_ids);
    backend_->embed({.tokens = weights_.get()}, token_ids, positions, rows);
    Outcome outcome{{}, std::vector<float>(32), std::vector<float>(1)};
    std::vector<float> maxima(1);
    backend_->logits({{norm, 1e-5f}, weights_.get()}, rows, wanted, {outcome.logits.data(), 1, 32, 32},
                     {.log_sum_exp = outcome.sums, .piece_maxima = maxima});
    outcome.status = backend_->status();
    return outcome;
  }

 private:
  OneStep()
      : source_(
            std::make_unique<testing::OwnedMatrix>(testing::random_matrix(TensorType::kQ8_0, 32, 32, 3))) {}

  std::unique_ptr<testing::OwnedMatrix> source_;
  std::unique_ptr<Backend> backend_;
  std::unique_ptr<Matrix> weights_;
  std::unique_ptr<Buffer> norm_, rows_;
  std::unique_ptr<KvCache> kv_;
  std::unique_ptr<HostKvCache> host_;
};

class DeviceFaults : public ::testing::Test {
 protected:
  void SetUp() override { emulation::settings().finds_races = false; }
  void start_again() {
    emulation::heal();
    SetUp();
  }
};

TEST_F(DeviceFaults, AFailureInAnyCallOfAStepStays) {
  std::int64_t num_calls = 0;
  {
    OneStep step = OneStep::create().value();
    const std::int64_t begin = emulation::num_calls();
    const Outcome outcome = step.run();
    num_calls = emulation::num_calls() - begin;
    EXPECT_TRUE(outcome.status.has_value());
    EXPECT_TRUE(std::isfinite(outcome.sums[0]));
  }
  ASSERT_GT(num_calls, 20);
  for (std::int64_t call = 0; call < num_calls; ++call) {
    OneStep step = OneStep::create().value();
    emulation::fail_call(call, cudaErrorLaunchFailure);
    const Outcome first = step.run();
    ASSERT_FALSE(first.status.has_value()) << call;
    EXPECT_EQ(first.status.error().code, ErrorCode::kDeviceLost);
    EXPECT_TRUE(std::isnan(first.logits[0]) && std::isnan(first.logits[31]) && std::isnan(first.sums[0]))
        << call;
    const std::int64_t launches = emulation::num_launches();
    const Outcome second = step.run();
    EXPECT_EQ(second.status.error().message, first.status.error().message);
    EXPECT_EQ(emulation::num_launches(), launches) << "work was started after a failure";
    start_again();
  }
}

TEST_F(DeviceFaults, AFailureInAnyCallOfLoadingIsAnErrorAndNothingIsKept) {
  const std::int64_t allocated = emulation::allocated_bytes(), begin = emulation::num_calls();
  (void)OneStep::create().value();
  const std::int64_t num_calls = emulation::num_calls() - begin;
  ASSERT_GT(num_calls, 20);
  for (std::int64_t call = 0; call < num_calls; ++call) {
    emulation::fail_call(call, cudaErrorUnknown);
    const auto step = OneStep::create();
    start_again();
    // What follows the last call that can fail is no failure of loading.
    if (step) {
      EXPECT_GT(call, num_calls - 12) << "call " << call << " was not checked";
    } else {
      EXPECT_FALSE(step.error().message.empty());
      EXPECT_EQ(emulation::allocated_bytes(), allocated) << call;
    }
  }
}

TEST_F(DeviceFaults, TooLittleMemoryIsAnErrorWhileAModelLoads) {
  const std::int64_t before = emulation::allocated_bytes();
  std::int64_t needed = 0;
  {
    const OneStep step = OneStep::create().value();
    needed = emulation::allocated_bytes() - before;
  }
  for (const std::int64_t part : {1, 3, 6, 9}) {
    emulation::settings().total_bytes = before + needed * part / 10;
    const auto step = OneStep::create();
    ASSERT_FALSE(step) << part;
    EXPECT_EQ(step.error().code, ErrorCode::kOutOfMemory) << step.error().message;
  }
}

enum class Mistake {
  kRotatesOtherPairs,
  kOneLogitIsNaN,
  kNormsByRootMeanSquares,
  kForgetsNormBias,
  kForgetsPositions,
  kForgetsEmbeddingScale,
  kForgetsQueryBias,
  kForgetsKeyBias,
  kForgetsValueBias,
  kForgetsQueryNorm,
  kForgetsKeyNorm,
  kTakesGlobalRotations,
  kForgetsScoreCap,
  kForgetsWindow,
  kForgetsProjectionBias,
  kForgetsPostNorm,
  kTakesSilu,
  kForgetsGateBias,
  kForgetsUpBias,
  kForgetsHeadBias,
  kForgetsLogitCap,
  kNumMistakes
};

// The reference, but for one mistake.
class WrongBackend final : public Backend {
 public:
  WrongBackend(std::unique_ptr<Backend> right, Mistake mistake)
      : right_(std::move(right)), mistake_(mistake) {}
  std::string_view name() const override { return "wrong"; }
  std::string_view isa() const override { return ""; }
  std::int32_t num_threads() const override { return 1; }
  Result<std::unique_ptr<Matrix>> prepare_matrix(const MatrixSource& source) override {
    return right_->prepare_matrix(source);
  }
  Result<std::unique_ptr<KvCache>> allocate_kv_cache(const KvLayout& layout, std::int32_t blocks) override {
    return right_->allocate_kv_cache(layout, blocks);
  }
  Result<std::unique_ptr<HostKvCache>> allocate_host_kv_cache(const KvLayout& layout,
                                                              std::int32_t blocks) override {
    return right_->allocate_host_kv_cache(layout, blocks);
  }
  Result<std::unique_ptr<Buffer>> allocate_buffer(std::int64_t floats) override {
    return right_->allocate_buffer(floats);
  }
  Result<void> reserve_step(const StepShape& shape) override { return right_->reserve_step(shape); }
  std::int64_t scratch_bytes() const override { return 0; }
  void embed(const EmbeddingWeights& weights, std::span<const std::int32_t> ids,
             std::span<const std::int32_t> positions, MatrixView out) override {
    EmbeddingWeights other = weights;
    if (mistake_ == Mistake::kForgetsPositions) other.positions = nullptr;
    if (mistake_ == Mistake::kForgetsEmbeddingScale) other.scale = 1.0f;
    right_->embed(other, ids, positions, out);
  }
  void attention_input(const AttentionInputWeights& weights, const AttentionShape& shape,
                       const PagedBatch& batch, std::int32_t layer, ConstMatrixView x, KvCache& kv,
                       MatrixView q) override {
    AttentionShape other = shape;
    if (mistake_ == Mistake::kRotatesOtherPairs) other.pairing = RopePairing::kHalves;
    if (mistake_ == Mistake::kTakesGlobalRotations) other.rotations = Rotations::kGlobal;
    AttentionInputWeights changed = weights;
    changed.norm = norm(weights.norm);
    if (mistake_ == Mistake::kForgetsQueryBias) changed.query_bias = {};
    if (mistake_ == Mistake::kForgetsKeyBias) changed.key_bias = {};
    if (mistake_ == Mistake::kForgetsValueBias) changed.value_bias = {};
    if (mistake_ == Mistake::kForgetsQueryNorm) changed.query_norm = {};
    if (mistake_ == Mistake::kForgetsKeyNorm) changed.key_norm = {};
    right_->attention_input(changed, other, batch, layer, x, kv, q);
  }
  void paged_attention(const AttentionShape& shape, const PagedBatch& batch, std::int32_t layer,
                       const KvCache& kv, ConstMatrixView q, MatrixView out) override {
    AttentionShape other = shape;
    if (mistake_ == Mistake::kForgetsScoreCap) other.score_soft_cap = 0.0f;
    if (mistake_ == Mistake::kForgetsWindow) other.window = 0;
    right_->paged_attention(other, batch, layer, kv, q, out);
  }
  void project_residual(const ProjectionWeights& weights, ConstMatrixView input,
                        MatrixView residual) override {
    ProjectionWeights other = weights;
    if (mistake_ == Mistake::kForgetsProjectionBias) other.bias = {};
    if (mistake_ == Mistake::kForgetsPostNorm) other.post_norm = {};
    right_->project_residual(other, input, residual);
  }
  void feed_forward_input(const FeedForwardInputWeights& weights, ConstMatrixView x,
                          MatrixView out) override {
    FeedForwardInputWeights other = weights;
    other.norm = norm(weights.norm);
    if (mistake_ == Mistake::kTakesSilu) other.activation = FeedForwardActivation::kSilu;
    if (mistake_ == Mistake::kForgetsGateBias) other.gate_bias = {};
    if (mistake_ == Mistake::kForgetsUpBias) other.up_bias = {};
    right_->feed_forward_input(other, x, out);
  }
  void logits(const OutputHead& head, ConstMatrixView x, std::span<const std::int32_t> rows, MatrixView out,
              LogitsSummary summary) override {
    OutputHead other = head;
    other.norm = norm(head.norm);
    if (mistake_ == Mistake::kForgetsHeadBias) other.bias = {};
    if (mistake_ == Mistake::kForgetsLogitCap) other.soft_cap = 0.0f;
    right_->logits(other, x, rows, out, summary);
    if (mistake_ == Mistake::kOneLogitIsNaN) out.row(0)[3] = std::nanf("");
  }
  void hidden_states(const NormWeights& weights, ConstMatrixView x, std::span<const std::int32_t> rows,
                     MatrixView out) override {
    right_->hidden_states(weights, x, rows, out);
  }
  void softmax_weights(std::span<const double>, double, double, std::span<double>,
                       std::span<double>) override {}
  void copy_blocks(KvCache&, std::span<const BlockCopy>) override {}
  void swap_out(const KvCache&, HostKvCache&, std::span<const BlockCopy>) override {}
  void swap_in(const HostKvCache&, KvCache&, std::span<const BlockCopy>) override {}

 private:
  NormWeights norm(NormWeights right) const {
    if (mistake_ == Mistake::kNormsByRootMeanSquares) right.kind = NormKind::kRms, right.bias = {};
    if (mistake_ == Mistake::kForgetsNormBias) right.bias = {};
    return right;
  }
  std::unique_ptr<Backend> right_;
  Mistake mistake_;
};

TEST_F(DeviceFaults, TheCheckFindsADeviceThatComputesSomethingElse) {
  const auto reference = testing::reference_backend();
  for (const Activation activation : {Activation::kInt8, Activation::kInt16, Activation::kF32}) {
    for (const bool deterministic : {false, true}) {
      const CudaOptions options{.activation = activation, .deterministic = deterministic};
      const auto device = create_cuda_backend(options, testing::reference_backend()).value();
      const auto passed = check_device(*device, *reference);
      EXPECT_TRUE(passed.has_value()) << passed.error().message;
    }
  }
  for (int i = 0; i < static_cast<int>(Mistake::kNumMistakes); ++i) {
    WrongBackend wrong(testing::reference_backend(), static_cast<Mistake>(i));
    const auto refused = check_device(wrong, *reference);
    ASSERT_FALSE(refused.has_value()) << "mistake " << i;
    EXPECT_EQ(refused.error().code, ErrorCode::kDevice);
  }
}

// The argument of that type, if the launch has one of its size.
template <class T>
std::optional<T> argument_of(const emulation::Launch& launch) {
  for (const emulation::ArgumentBytes& argument : launch.arguments) {
    if (argument.size != sizeof(T)) continue;
    T value;
    std::memcpy(static_cast<void*>(&value), argument.bytes, sizeof value);
    return value;
  }
  return std::nullopt;
}

bool is_split_product(const emulation::Launch& launch) {
  const auto targets = argument_of<ProductTargets>(launch);
  return targets && targets->targets[0].splits > 1;
}

bool is_attention_of_128(const emulation::Launch& launch, bool is_prefill) {
  const auto arguments = argument_of<AttentionArguments>(launch);
  return arguments && arguments->places.head_dim == 128 &&
         (arguments->tile_rows > kSplitTileRows) == is_prefill;
}

// The device works as far as it says, and as far as it is looked at elsewhere.
TEST_F(DeviceFaults, TheCheckNamesWhatADeviceLeavesOut) {
  using emulation::Launch;
  struct Fault {
    std::function<bool(const Launch&)> loses;
    std::string named;
  };
  const Fault faults[] = {
      {[](const Launch& launch) { return launch.is_of_library; }, "products of many rows"},
      {is_split_product, "products in parts of long rows"},
      {[](const Launch& launch) { return is_attention_of_128(launch, false); }, "heads of 128 numbers"},
      {[](const Launch& launch) { return is_attention_of_128(launch, true); }, "heads of 128 numbers"},
      {[](const Launch& launch) { return launch.is_captured; }, "recorded steps"}};
  const auto reference = testing::reference_backend();
  for (const Fault& fault : faults) {
    std::int64_t num_lost = 0;
    emulation::settings().loses = [&](const Launch& launch) {
      const bool is_lost = fault.loses(launch);
      num_lost += is_lost;
      return is_lost;
    };
    const auto device = create_cuda_backend({}, testing::reference_backend()).value();
    const auto refused = check_device(*device, *reference);
    ASSERT_GT(num_lost, 0) << fault.named << " was not reached";
    ASSERT_FALSE(refused.has_value()) << fault.named;
    EXPECT_EQ(refused.error().code, ErrorCode::kDevice);
    EXPECT_NE(refused.error().message.find(fault.named), std::string::npos) << refused.error().message;
    emulation::settings().loses = {};
  }
}

// Any kernel of a recorded step, alone.
TEST_F(DeviceFaults, TheCheckFindsARecordedStepThatLacksAnyKernel) {
  const auto reference = testing::reference_backend();
  std::int64_t num_captured = 0;
  for (std::int64_t lost = 0; lost == 0 || lost < num_captured; ++lost) {
    num_captured = 0;
    emulation::settings().loses = [&](const emulation::Launch& launch) {
      return launch.is_captured && num_captured++ == lost;
    };
    const auto device = create_cuda_backend({}, testing::reference_backend()).value();
    const auto refused = check_device(*device, *reference);
    ASSERT_FALSE(refused.has_value()) << "without kernel " << lost;
    EXPECT_NE(refused.error().message.find("recorded steps"), std::string::npos) << refused.error().message;
    emulation::settings().loses = {};
  }
  EXPECT_GT(num_captured, 8);
}

}  // namespace
}  // namespace octavo::kernels::cuda
