// Whole engines of the kernels by the names of HIP: the bits of those of CUDA, and what they say of devices.
#include <gtest/gtest.h>

#include <cstdio>
#include <string>

#include "tests/hip/answers.h"

namespace octavo {
namespace {

// Why no engine is made.
Error refusal() {
  EngineOptions options = small_options(kernels::TensorType::kQ4_1);
  options.device = Device::kCuda;
  const auto engine = Engine::create(options);
  EXPECT_FALSE(engine);
  return engine ? Error{} : engine.error();
}

TEST(HipEngine, GivesTheBitsOfTheNamesOfCuda) {
  std::FILE* const program = ::popen(OCTAVO_CUDA_ANSWER, "r");
  ASSERT_NE(program, nullptr);
  std::string by_cuda;
  for (int character; (character = std::fgetc(program)) != EOF;) by_cuda += static_cast<char>(character);
  EXPECT_EQ(::pclose(program), 0);
  EXPECT_GT(by_cuda.size(), 1000u);
  EXPECT_EQ(answers(), by_cuda);
}

TEST(HipEngine, NamesTheCardAndItsArchitecture) {
  emulation::settings().finds_races = false;
  const auto engine = open_engine(small_options(kernels::TensorType::kQ4_1), Device::kCuda);
  ASSERT_NE(engine, nullptr);
  EXPECT_EQ(engine->description().isa, "gfx1100 emulated grid");
}

TEST(HipEngine, WavesOfSixtyFourLanesAreRefusedInOneSentence) {
  emulation::settings().warp_size = 64;
  const Error refused = refusal();
  EXPECT_EQ(refused.code, ErrorCode::kUnsupported);
  EXPECT_EQ(refused.message,
            "device: emulated grid (gfx1100) has warps of 64 lanes; 32 are required; use cpu");
}

TEST(HipEngine, WithoutACardItIsAnErrorThatNamesTheVendor) {
  emulation::settings().num_devices = 0;
  const Error refused = refusal();
  EXPECT_EQ(refused.message, "device: no AMD device is usable: cudaErrorNoDevice; use cpu");
}

// A launch of HIP tells of its failure by the last error alone.
TEST(HipEngine, AFailedLaunchEndsTheRequests) {
  emulation::settings().finds_races = false;
  const auto engine = open_engine(small_options(kernels::TensorType::kQ4_1), Device::kCuda);
  ASSERT_NE(engine, nullptr);
  emulation::fail_call(3, cudaErrorLaunchFailure);
  const auto outputs = run_together(*engine, {request(1, 20, 6)});
  ASSERT_TRUE(outputs[0].error.has_value());
  EXPECT_EQ(outputs[0].error->code, ErrorCode::kDeviceLost);
}

}  // namespace
}  // namespace octavo
