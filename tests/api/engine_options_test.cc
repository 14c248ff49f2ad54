#include "engine/api/engine_options.h"

#include <gtest/gtest.h>

#include <limits>

namespace octavo {
namespace {

TEST(EngineOptions, DefaultsAreValid) { EXPECT_TRUE(validate(EngineOptions{})); }

TEST(EngineOptions, AcceptsWhatThisVersionCanDo) {
  const std::vector<EngineOptions> accepted = {
      {.device = Device::kCpu, .threads = 4},
      {.dtype = WeightType::kBfloat16,
       .activation_dtype = ActivationType::kF32,
       .kv_cache_dtype = KvCacheType::kBf16},
      {.activation_dtype = ActivationType::kInt8, .kv_cache_dtype = KvCacheType::kF32},
      {.block_size = 1},
      {.block_size = 256},
      {.num_kv_blocks = 1},
      {.kv_cache_memory = 1},
      {.gpu_memory_utilization = 0.9, .max_model_len = 752},
      {.swap_space = 0.0},
      {.max_num_seqs = 64, .max_num_batched_tokens = 32},
      {.target_step_ms = 0},
      {.enable_prefix_caching = false, .preemption_mode = PreemptionPolicy::kRecompute},
      {.deterministic = false},
  };
  for (std::size_t i = 0; i < accepted.size(); ++i) {
    const auto result = validate(accepted[i]);
    EXPECT_TRUE(result) << i << ": " << result.error().message;
  }
}

struct Case {
  std::string option;
  EngineOptions options;
};

void expect_refused(const std::vector<Case>& cases, ErrorCode code) {
  for (const Case& c : cases) {
    const auto result = validate(c.options);
    ASSERT_FALSE(result) << c.option;
    EXPECT_EQ(result.error().code, code) << c.option;
    EXPECT_EQ(result.error().subject, c.option);
    EXPECT_NE(result.error().message.find(c.option), std::string::npos) << result.error().message;
    EXPECT_EQ(result.error().message.find('\n'), std::string::npos);
  }
}

TEST(EngineOptions, RefusesWhatIsOutOfRange) {
  constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
  expect_refused({{"threads", {.threads = -1}},
                  {"threads", {.threads = 100'000}},
                  {"target_step_ms", {.target_step_ms = -1}},
                  {"target_step_ms", {.target_step_ms = 60'001}},
                  {"block_size", {.block_size = 0}},
                  {"block_size", {.block_size = 257}},
                  {"num_kv_blocks", {.num_kv_blocks = 0}},
                  {"kv_cache_memory", {.kv_cache_memory = 0}},
                  {"kv_cache_memory", {.kv_cache_memory = std::numeric_limits<std::int64_t>::max()}},
                  {"gpu_memory_utilization", {.gpu_memory_utilization = 0.0}},
                  {"gpu_memory_utilization", {.gpu_memory_utilization = 1.5}},
                  {"gpu_memory_utilization", {.gpu_memory_utilization = kNaN}},
                  {"swap_space", {.swap_space = -1.0}},
                  {"swap_space", {.swap_space = kNaN}},
                  {"max_model_len", {.max_model_len = 0}},
                  {"max_num_seqs", {.max_num_seqs = 0}},
                  {"max_num_batched_tokens", {.max_num_batched_tokens = 0}},
                  {"tensor_parallel_size", {.tensor_parallel_size = 0}}},
                 ErrorCode::kInvalidArgument);
}

TEST(EngineOptions, RefusesTwoSizesForOnePool) {
  expect_refused({{"num_kv_blocks", {.num_kv_blocks = 10, .kv_cache_memory = 10}},
                  {"num_kv_blocks", {.num_kv_blocks = 10, .gpu_memory_utilization = 0.5}},
                  {"num_kv_blocks", {.kv_cache_memory = 10, .gpu_memory_utilization = 0.5}}},
                 ErrorCode::kInvalidArgument);
}

TEST(EngineOptions, SaysWhatThisVersionHasNot) {
  expect_refused({{"tensor_parallel_size", {.tensor_parallel_size = 2}}}, ErrorCode::kUnsupported);
}

}  // namespace
}  // namespace octavo
