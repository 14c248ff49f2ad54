#include "engine/runner/runner_plan.h"

#include <gtest/gtest.h>

#include <unistd.h>

#include <limits>

#include "engine/model/gguf_file.h"
#include "engine/model/limits.h"
#include "tests/support/gguf_writer.h"
#include "tests/support/temporary_folder.h"

namespace octavo::runner {
namespace {

constexpr std::int64_t kMebibyte = std::int64_t{1} << 20;

class RunnerPlanTest : public ::testing::Test {
 protected:
  RunnerPlanTest() : RunnerPlanTest({.context_length = 512}) {}
  explicit RunnerPlanTest(const test::TinyLlamaOptions& tiny) {
    test::make_tiny_llama(1, tiny).write(folder_ / "model.gguf");
    file_ = std::make_unique<model::GgufFile>(*model::GgufFile::open(folder_ / "model.gguf"));
    config_ = *model::read_model_config(file_->header());
    tensors_ = *model::find_model_tensors(*file_, config_);
  }

  Result<RunnerPlan> plan(const EngineOptions& options, std::int64_t available = 1000 * kMebibyte) const {
    return plan_runner(config_, tensors_, options, available);
  }

  test::TemporaryFolder folder_;
  std::unique_ptr<model::GgufFile> file_;
  model::ModelConfig config_;
  model::ModelTensors tensors_;
};

class QuantisedRunnerPlanTest : public RunnerPlanTest {
 protected:
  QuantisedRunnerPlanTest() : RunnerPlanTest({.weight_type = kernels::TensorType::kQ8_0}) {}
};

TEST_F(RunnerPlanTest, HasBlocksForEightContextsWhenMemoryAllows) {
  EXPECT_EQ(plan({})->num_blocks, 8 * 512 / 16);
  EXPECT_EQ(plan({.max_model_len = 100})->num_blocks, 8 * 7) << "each context rounded up to whole blocks";
  EXPECT_EQ(plan({.block_size = 32})->num_blocks, 8 * 512 / 32);
  const RunnerPlan whole = *plan({});
  EXPECT_EQ(whole.kv_layout.bytes_per_token(), 2 * 2 * 2 * 2 * 16)
      << "K and V, bytes, layers, KV heads, head size";
  EXPECT_EQ(whole.kv_bytes(), 8 * 512 * whole.kv_layout.bytes_per_token());
}

TEST_F(RunnerPlanTest, TakesAtMostAQuarterOfWhatIsLeft) {
  const RunnerPlan roomy = *plan({});
  for (const std::int64_t left : {kMebibyte / 10, kMebibyte / 3, 2 * kMebibyte, 100 * kMebibyte}) {
    const auto tight = plan({}, roomy.weight_bytes + roomy.working_bytes + left);
    ASSERT_TRUE(tight);
    EXPECT_EQ(tight->num_blocks, std::min<std::int64_t>(256, left / 4 / tight->kv_layout.block_bytes()));
  }
}

TEST_F(RunnerPlanTest, HonoursBlocksAndMebibytes) {
  EXPECT_EQ(plan({.num_kv_blocks = 3})->num_blocks, 3) << "fewer than one context";
  EXPECT_EQ(plan({.num_kv_blocks = 5000})->num_blocks, 5000) << "more than a quarter, when it is asked for";
  const std::int64_t block_bytes = plan({})->kv_layout.block_bytes();
  EXPECT_EQ(plan({.kv_cache_memory = 7})->num_blocks, 7 * kMebibyte / block_bytes);
  EXPECT_EQ(plan({.gpu_memory_utilization = 0.9})->num_blocks, plan({})->num_blocks)
      << "means nothing on a CPU";
}

TEST_F(RunnerPlanTest, HasAHostPoolAsLargeAsTheDevicePoolUpToFourGibibytesAndWhatIsLeft) {
  const RunnerPlan usual = *plan({});
  EXPECT_EQ(usual.num_host_blocks, usual.num_blocks);
  EXPECT_EQ(usual.host_bytes(), usual.kv_bytes());
  EXPECT_EQ(usual.notice, "");
  const std::int64_t block_bytes = usual.kv_layout.block_bytes();
  const RunnerPlan large = *plan({.kv_cache_memory = 5000}, 100'000 * kMebibyte);
  EXPECT_EQ(large.num_host_blocks, 4096 * kMebibyte / block_bytes);
  EXPECT_EQ(large.num_blocks, 5000 * kMebibyte / block_bytes);
  const RunnerPlan tight = *plan({.kv_cache_memory = 700});
  EXPECT_LT(tight.num_host_blocks, tight.num_blocks);
  EXPECT_GT(tight.num_host_blocks, 200 * kMebibyte / block_bytes);
  EXPECT_LE(tight.total_bytes(), 1000 * kMebibyte);
}

TEST_F(RunnerPlanTest, HonoursSwapSpaceAndSaysWhenItCannot) {
  const double block_gibibytes = static_cast<double>(plan({})->kv_layout.block_bytes()) / (1 << 30);
  const auto host_blocks = [&](double blocks) {
    return plan({.num_kv_blocks = 100, .swap_space = blocks * block_gibibytes});
  };
  for (const int blocks : {0, 1, 7, 100}) {
    EXPECT_EQ(host_blocks(blocks)->num_host_blocks, blocks);
    EXPECT_EQ(host_blocks(blocks)->notice, "");
  }
  EXPECT_EQ(host_blocks(7.9)->num_host_blocks, 7);
  for (const double much : {101.0, 1e6, 1e300}) {
    EXPECT_EQ(host_blocks(much)->num_host_blocks, 100) << "more could not be filled";
    EXPECT_NE(host_blocks(much)->notice.find("100 blocks"), std::string::npos) << host_blocks(much)->notice;
  }
  EXPECT_EQ(host_blocks(0.5)->num_host_blocks, 0);
  EXPECT_NE(host_blocks(0.5)->notice.find("one block"), std::string::npos);
  const auto refused = plan({.kv_cache_memory = 700, .swap_space = 0.5});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().subject, "swap_space");
  EXPECT_NE(refused.error().message.find("512.0 MiB"), std::string::npos) << refused.error().message;
}

TEST_F(RunnerPlanTest, RefusesWithBothNumbersWhatCannotFit) {
  const auto expect_refused = [](const Result<RunnerPlan>& refused, ErrorCode code, const std::string& option,
                                 const std::vector<std::string>& parts) {
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, code);
    EXPECT_EQ(refused.error().subject, option);
    for (const std::string& part : parts)
      EXPECT_NE(refused.error().message.find(part), std::string::npos) << refused.error().message;
  };
  expect_refused(plan({.max_model_len = 513}), ErrorCode::kInvalidArgument, "max_model_len", {"513", "512"});
  expect_refused(plan({}, kMebibyte / 2), ErrorCode::kOutOfMemory, "model", {"0.5 MiB"});
  expect_refused(plan({.num_kv_blocks = 1'000'000}), ErrorCode::kOutOfMemory, "num_kv_blocks",
                 {"1000000", "MiB are free"});
  expect_refused(plan({.kv_cache_memory = 4000}), ErrorCode::kOutOfMemory, "kv_cache_memory",
                 {"MiB are free"});
  expect_refused(plan({.num_kv_blocks = INT32_MAX}, std::numeric_limits<std::int64_t>::max()),
                 ErrorCode::kOutOfMemory, "num_kv_blocks", {"2147483647", "134217727"});
  const RunnerPlan roomy = *plan({});
  expect_refused(plan({}, roomy.weight_bytes + roomy.working_bytes + 1000), ErrorCode::kOutOfMemory,
                 "num_kv_blocks", {"a block of 16 tokens", "0.0 MiB"});
}

TEST_F(RunnerPlanTest, OneBlockCanBeTooMuchForTheGivenMemory) {
  config_.num_layers = 1024;  // as if
  config_.num_kv_heads = 4;
  const auto refused = plan({.block_size = 256, .kv_cache_memory = 1});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().subject, "kv_cache_memory");
  EXPECT_NE(refused.error().message.find("1.0 MiB"), std::string::npos) << refused.error().message;
}

TEST_F(RunnerPlanTest, NeverOverflowsWithTheLargestModelAndOptions) {
  config_.num_layers = model::kMaxLayers;
  config_.num_heads = config_.num_kv_heads = model::kMaxHeads;
  config_.head_dim = model::kMaxHeadDim;
  config_.embedding_length = model::kMaxEmbeddingLength;
  config_.feed_forward_length = model::kMaxFeedForwardLength;
  config_.vocabulary_size = model::kMaxVocabularySize;
  config_.context_length = model::kMaxContextLength;
  for (const std::int64_t available : {std::int64_t{1} << 40, std::numeric_limits<std::int64_t>::max()}) {
    const auto planned = plan({.block_size = 256,
                               .kv_cache_dtype = KvCacheType::kF32,
                               .num_kv_blocks = INT32_MAX / 256,
                               .max_num_batched_tokens = 1 << 20},
                              available);
    if (!planned) {
      EXPECT_EQ(planned.error().code, ErrorCode::kOutOfMemory) << planned.error().message;
      continue;
    }
    const long double kv_bytes = 2.0L * sizeof(float) * model::kMaxLayers * model::kMaxHeads *
                                 model::kMaxHeadDim * 256 * (INT32_MAX / 256);
    EXPECT_EQ(static_cast<long double>(planned->kv_bytes()), kv_bytes);
    EXPECT_GT(static_cast<long double>(planned->total_bytes()), kv_bytes);
  }
}

TEST_F(RunnerPlanTest, UnquantisedWeightsMeetFloats) {
  EXPECT_EQ(plan({})->activation, kernels::Activation::kF32);
  EXPECT_EQ(plan({.activation_dtype = ActivationType::kInt8})->activation, kernels::Activation::kF32);
  EXPECT_EQ(plan({.dtype = WeightType::kBfloat16})->weight_bytes * 2, plan({})->weight_bytes);
}

TEST_F(QuantisedRunnerPlanTest, QuantisedWeightsMeetSixteenBitsUnlessToldOtherwise) {
  EXPECT_EQ(plan({})->activation, kernels::Activation::kInt16);
  EXPECT_EQ(plan({.activation_dtype = ActivationType::kInt16})->activation, kernels::Activation::kInt16);
  EXPECT_EQ(plan({.activation_dtype = ActivationType::kInt8})->activation, kernels::Activation::kInt8);
  EXPECT_EQ(plan({.activation_dtype = ActivationType::kF32})->activation, kernels::Activation::kF32);
  EXPECT_EQ(plan({.dtype = WeightType::kFloat32})->weight_bytes, plan({})->weight_bytes);
}

TEST_F(RunnerPlanTest, ResolvesKvTypesAndStepLength) {
  EXPECT_EQ(plan({})->kv_layout.type, kernels::KvType::kF16);
  EXPECT_EQ(plan({.kv_cache_dtype = KvCacheType::kF32})->kv_layout.type, kernels::KvType::kF32);
  EXPECT_EQ(plan({.kv_cache_dtype = KvCacheType::kF16})->kv_layout.type, kernels::KvType::kF16);
  EXPECT_EQ(plan({.kv_cache_dtype = KvCacheType::kBf16})->kv_layout.type, kernels::KvType::kBf16);
  EXPECT_EQ(plan({.kv_cache_dtype = KvCacheType::kInt8})->kv_layout.type, kernels::KvType::kInt8);
  EXPECT_EQ(plan({.kv_cache_dtype = KvCacheType::kFp8E4m3})->kv_layout.type, kernels::KvType::kFp8E4m3);
  EXPECT_EQ(plan({.kv_cache_dtype = KvCacheType::kFp8E5m2})->kv_layout.type, kernels::KvType::kFp8E5m2);
  EXPECT_EQ(plan({})->max_num_batched_tokens, 512);
  EXPECT_EQ(plan({.max_num_batched_tokens = 32})->max_num_batched_tokens, 32);
  EXPECT_GT(plan({.max_num_batched_tokens = 1024})->working_bytes, plan({})->working_bytes);
}

TEST(AvailableMemory, IsSomethingBelowAllMemory) {
  EXPECT_GT(available_memory_bytes(), kMebibyte);
  EXPECT_LE(available_memory_bytes(), std::int64_t{::sysconf(_SC_PHYS_PAGES)} * ::sysconf(_SC_PAGESIZE));
}

}  // namespace
}  // namespace octavo::runner
