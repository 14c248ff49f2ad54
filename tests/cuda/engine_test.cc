// Whole engines on the emulated device: the reference backend's tokens, whatever is swapped, and what happens
// when the device fails.
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "tests/cuda/tiny_engines.h"

namespace octavo {
namespace {

class CudaEngine : public ::testing::Test {
 protected:
  // Each launch once: what races is found where each kernel is tested.
  void SetUp() override { emulation::settings().finds_races = false; }
};

TEST_F(CudaEngine, GeneratesTheReferencesGreedyTokens) {
  for (const kernels::TensorType type : {kernels::TensorType::kQ4_1, kernels::TensorType::kF16}) {
    const EngineOptions options = small_options(type);
    const auto device = open_engine(options, Device::kCuda);
    const auto reference = open_reference(options);
    ASSERT_NE(device, nullptr);
    EXPECT_EQ(device->description().device, "cuda");
    EXPECT_NE(device->description().isa.find("sm_90"), std::string::npos);
    const std::vector<GenerationRequest> requests = {request(1, 40, 10), request(2, 1, 12),
                                                     request(3, 23, 8)};
    EXPECT_EQ(tokens_of(run_together(*device, requests)), tokens_of(run_together(*reference, requests)))
        << kernels::traits_of(type).name;
  }
}

std::int32_t num_begun_ahead(const std::vector<StepRecord>& steps) {
  std::int32_t count = 0;
  for (std::size_t i = 1; i < steps.size(); ++i) {
    const StepRecord& before = steps[i - 1];
    const bool has_no_pause = steps[i].begin_us == before.begin_us + before.schedule_us + before.execute_us;
    count += has_no_pause && steps[i].schedule_us == 0 ? 1 : 0;
  }
  return count;
}

// The host learns what a step drew when the next one is under way.
TEST_F(CudaEngine, StepsThatOnlyExtendOutputsAreBegunAhead) {
  const EngineOptions options = small_options(kernels::TensorType::kQ4_1);
  for (const auto order : {emulation::StreamOrder::kWhenNeeded, emulation::StreamOrder::kAtOnce}) {
    emulation::settings().stream_order = order;
    const auto device = open_engine(options, Device::kCuda), reference = open_reference(options);
    ASSERT_NE(device, nullptr);
    // One: another might come while a step is ahead, which has nothing behind it then.
    std::vector<GenerationRequest> requests = {request(1, 20, 12, 2)};
    requests[0].sampling.temperature = 0.8;
    EXPECT_EQ(tokens_of(run_together(*device, requests)), tokens_of(run_together(*reference, requests)));
    // Of 12 steps all but that of the prompts, and the one behind it.
    EXPECT_EQ(num_begun_ahead(device->history()->read_since(0, 0).steps), 10);
    EXPECT_EQ(num_begun_ahead(reference->history()->read_since(0, 0).steps), 0);
  }
}

// From 16 rows on. What is refused while the model is loaded stands in its description.
TEST_F(CudaEngine, GeneratesTheReferencesTokensWhereTheLibraryRefuses) {
  std::int64_t num_refused = 0;
  emulation::settings().library_answers = [&](const emulation::LibraryCall& call) {
    if (call.kind != emulation::LibraryCall::Kind::kMultiply) return CUBLAS_STATUS_SUCCESS;
    ++num_refused;
    return CUBLAS_STATUS_INTERNAL_ERROR;
  };
  const EngineOptions options = small_options(kernels::TensorType::kF16);
  const auto device = open_engine(options, Device::kCuda), reference = open_reference(options);
  ASSERT_NE(device, nullptr);
  EXPECT_GT(num_refused, 0);
  EXPECT_NE(device->description().notice.find("the matrix library refused"), std::string::npos)
      << device->description().notice;
  const std::vector<GenerationRequest> requests = {request(1, 40, 6), request(3, 23, 6)};
  EXPECT_EQ(tokens_of(run_together(*device, requests)), tokens_of(run_together(*reference, requests)));
}

TEST_F(CudaEngine, LeavesModelsThatScaleQueriesToTheProcessor) {
  EngineOptions options = small_options(kernels::TensorType::kQ4_1);
  options.model = tiny_model_of("mistral3");
  options.device = Device::kCuda;
  const auto refused = Engine::create(options);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message,
            "device: models with queries scaled by position do not run on the GPU yet; use cpu");
}

TEST_F(CudaEngine, LeavesModelsOfUnequalLayersToTheProcessor) {
  for (const char* name : {"gemma4", "gemma4_embedded"}) {
    EngineOptions options = small_options(kernels::TensorType::kQ4_1);
    options.model = tiny_model_of(name);
    options.device = Device::kCuda;
    const auto refused = Engine::create(options);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, ErrorCode::kUnsupported);
    EXPECT_EQ(refused.error().message,
              "device: models with unequal layers do not run on the GPU yet; use cpu");
  }
}

TEST_F(CudaEngine, LeavesModelsWithRecurrentLayersToTheProcessor) {
  EngineOptions options = small_options(kernels::TensorType::kQ4_1);
  options.device = Device::kCuda;
  for (const char* name : {"qwen35", "lfm2", "granitehybrid", "nemotron_h", "falcon-h1"}) {
    options.model = tiny_model_of(name);
    const auto refused = Engine::create(options);
    ASSERT_FALSE(refused) << name;
    EXPECT_EQ(refused.error().code, ErrorCode::kUnsupported);
    EXPECT_EQ(refused.error().message,
              "device: models with recurrent layers or gated attention do not run on the GPU yet; use cpu");
  }
}

TEST_F(CudaEngine, LeavesTypesWithoutAKernelToTheProcessor) {
  const test::TemporaryFolder folder;
  test::make_tiny_llama(11, {.weight_type = kernels::TensorType::kNVFP4}).write(folder / "model.gguf");
  EngineOptions options = small_options(kernels::TensorType::kQ4_1);
  options.model = folder / "model.gguf";
  options.device = Device::kCuda;
  const auto refused = Engine::create(options);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kUnsupported);
  EXPECT_EQ(refused.error().message, "device: tensors of type NVFP4 do not run on the GPU yet; use cpu");
}

TEST_F(CudaEngine, LeavesModelsWithExpertsToTheProcessor) {
  EngineOptions options = small_options(kernels::TensorType::kQ4_1);
  options.model = tiny_model_of("qwen3moe");
  options.device = Device::kCuda;
  const auto refused = Engine::create(options);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kUnsupported);
  EXPECT_EQ(refused.error().message, "device: models with experts do not run on the GPU yet; use cpu");
  options.device = Device::kAuto;
  const auto chosen = Engine::create(options);
  ASSERT_TRUE(chosen) << chosen.error().message;
  EXPECT_EQ((*chosen)->description().device, "cpu");
  EXPECT_NE((*chosen)->description().notice.find("using the CPU instead of the GPU: models with experts"),
            std::string::npos)
      << (*chosen)->description().notice;
}

// Bit for bit, which log-probabilities show: a chunk of a prompt, a decode alone and one among others take
// other kernels without the option.
TEST_F(CudaEngine, DeterministicResultsDoNotDependOnTheBatch) {
  EngineOptions options = small_options(kernels::TensorType::kQ4_1);
  options.deterministic = true;
  const auto with_logprobs = [](GenerationRequest request) {
    request.sampling.logprobs = 1;
    return request;
  };
  const auto engine = open_engine(options, Device::kCuda);
  ASSERT_NE(engine, nullptr);
  const auto alone = run_together(*engine, {with_logprobs(request(1, 21, 6))});
  std::vector<GenerationRequest> requests = {request(2, 50, 7), with_logprobs(request(1, 21, 6))};
  for (std::int32_t i = 0; i < 4; ++i) requests.push_back(request(10 + i, 3 + 5 * i, 8));
  const auto together = run_together(*engine, requests);
  ASSERT_EQ(alone[0].outputs.size(), 1u);
  ASSERT_EQ(alone[0].outputs[0].logprobs.size(), 6u);
  EXPECT_EQ(together[1].outputs[0].token_ids, alone[0].outputs[0].token_ids);
  EXPECT_EQ(together[1].outputs[0].logprobs, alone[0].outputs[0].logprobs);
}

TEST_F(CudaEngine, SwappingChangesNoToken) {
  EngineOptions options = small_options(kernels::TensorType::kQ4_1);
  options.deterministic = true;
  options.preemption_mode = PreemptionPolicy::kSwap;
  options.admission_reserve = AdmissionReserve::kOnePercent;  // looking ahead would admit nobody too many
  const std::vector<GenerationRequest> requests = {request(1, 30, 12, 2), request(2, 28, 12, 2),
                                                   request(3, 26, 12)};
  const auto large = open_engine(options, Device::kCuda);
  options.num_kv_blocks = 13;
  for (const auto order : {emulation::StreamOrder::kWhenNeeded, emulation::StreamOrder::kAtOnce}) {
    emulation::settings().stream_order = order;
    const auto small = open_engine(options, Device::kCuda);
    ASSERT_NE(large, nullptr);
    ASSERT_NE(small, nullptr);
    EXPECT_EQ(tokens_of(run_together(*small, requests)), tokens_of(run_together(*large, requests)));
    EXPECT_GT(small->kv_totals().swapped_out_blocks, 0);
  }
}

// A device that fails in any call of a step ends the requests that run, each with the reason, and those that
// come later.
TEST_F(CudaEngine, AFailureEndsTheRequestsAndNothingElse) {
  const EngineOptions options = small_options(kernels::TensorType::kQ4_1);
  const std::vector<GenerationRequest> requests = {request(1, 20, 6), request(2, 9, 6)};
  std::int64_t num_calls = 0;
  {
    const auto engine = open_engine(options, Device::kCuda);
    ASSERT_NE(engine, nullptr);
    const std::int64_t begin = emulation::num_calls();
    tokens_of(run_together(*engine, requests));
    num_calls = emulation::num_calls() - begin;
  }
  for (std::int64_t call = 0; call < num_calls; call += num_calls / 5) {
    const auto engine = open_engine(options, Device::kCuda);
    ASSERT_NE(engine, nullptr);
    emulation::fail_call(call, cudaErrorLaunchFailure);
    for (const RequestOutput& output : run_together(*engine, requests)) {
      if (!output.error) continue;  // it had ended before
      EXPECT_EQ(output.error->code, ErrorCode::kDeviceLost);
      EXPECT_NE(output.error->message.find("cudaErrorLaunchFailure"), std::string::npos)
          << output.error->message;
    }
    const auto later = run_together(*engine, {request(3, 5, 2)});
    ASSERT_TRUE(later[0].error.has_value()) << "call " << call;
    EXPECT_EQ(later[0].error->code, ErrorCode::kDeviceLost);
    emulation::heal();
    emulation::settings().finds_races = false;
  }
}

TEST_F(CudaEngine, WithoutADeviceCudaIsAnErrorAndAutoTheCpu) {
  EngineOptions options = small_options(kernels::TensorType::kQ4_1);
  emulation::settings().num_devices = 0;
  options.device = Device::kCuda;
  const auto engine = Engine::create(options);
  ASSERT_FALSE(engine);
  EXPECT_EQ(engine.error().code, ErrorCode::kUnsupported);
  EXPECT_EQ(engine.error().message, "device: no NVIDIA device is usable: cudaErrorNoDevice; use cpu");
  const auto automatic = open_engine(options, Device::kAuto);
  ASSERT_NE(automatic, nullptr);
  EXPECT_EQ(automatic->description().device, "cpu");
  EXPECT_EQ(automatic->description().notice, "");
}

TEST_F(CudaEngine, AutoTakesADeviceThatPassesItsCheckAndSaysWhyNot) {
  const EngineOptions options = small_options(kernels::TensorType::kQ4_1);
  const auto engine = open_engine(options, Device::kAuto);
  ASSERT_NE(engine, nullptr);
  EXPECT_EQ(engine->description().device, "cuda");
  EXPECT_EQ(engine->description().notice, "");
  emulation::fail_call(60, cudaErrorIllegalAddress);
  const auto other = open_engine(options, Device::kAuto);
  ASSERT_NE(other, nullptr);
  EXPECT_EQ(other->description().device, "cpu");
  EXPECT_NE(other->description().notice.find("using the CPU instead of the GPU: "), std::string::npos);
}

TEST_F(CudaEngine, ThePoolIsSizedByTheDevicesMemory) {
  EngineOptions options = small_options(kernels::TensorType::kQ4_1);
  options.num_kv_blocks.reset();
  emulation::settings().total_bytes = emulation::allocated_bytes() + (std::int64_t{164} << 20);
  options.gpu_memory_utilization = 0.9;
  const auto all = open_engine(options, Device::kCuda);
  ASSERT_NE(all, nullptr);
  const EngineDescription& description = all->description();
  const std::int64_t pool_bytes = description.num_blocks * description.bytes_per_block;
  const auto allowed =
      static_cast<std::int64_t>(0.9 * static_cast<double>(emulation::settings().total_bytes));
  EXPECT_LE(emulation::allocated_bytes(), allowed + description.bytes_per_block);
  EXPECT_GT(emulation::allocated_bytes(),
            allowed - (std::int64_t{16} << 20));  // some of what it counts is the host's
  EXPECT_GT(pool_bytes, std::int64_t{16} << 20);
  options.gpu_memory_utilization = 0.01;
  options.device = Device::kCuda;
  const auto too_small = Engine::create(options);
  ASSERT_FALSE(too_small);
  EXPECT_EQ(too_small.error().code, ErrorCode::kOutOfMemory);
}

}  // namespace
}  // namespace octavo
