#include "kernels/backends.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <string>
#include <thread>
#include <vector>

#include "kernels/cpu/isa.h"
#include "tests/kernels/paged_problem.h"
#include "tests/support/environment.h"

namespace octavo::kernels {
namespace {

TEST(Backends, TheBestInstructionSetIsChosenUnlessOneIsNamed) {
  {
    const test::EnvironmentVariable none("OCTAVO_CPU_ISA", "");
    EXPECT_EQ(create_backend({}).value()->isa(), usable_instruction_sets().front());
  }
  for (const std::string& name : usable_instruction_sets()) {
    const test::EnvironmentVariable forced("OCTAVO_CPU_ISA", name);
    EXPECT_EQ(create_backend({}).value()->isa(), name);
  }
}

TEST(Backends, AnUnknownInstructionSetIsAnErrorThatNamesTheUsableOnes) {
  const test::EnvironmentVariable forced("OCTAVO_CPU_ISA", "neon\n");
  const auto backend = create_backend({});
  ASSERT_FALSE(backend.has_value());
  EXPECT_EQ(backend.error().code, ErrorCode::kInvalidArgument);
  EXPECT_NE(backend.error().message.find("portable"), std::string::npos);
  EXPECT_EQ(backend.error().message.find('\n'), std::string::npos);
}

TEST(Backends, AnInstructionSetThatIsNotUsableIsRefusedWithTheReason) {
  const std::vector<std::string> usable = usable_instruction_sets();
  for (const char* name : {"avx2", "avx_vnni", "avx512", "avx512_vnni", "amx"}) {
    if (std::find(usable.begin(), usable.end(), name) != usable.end()) continue;
    const test::EnvironmentVariable forced("OCTAVO_CPU_ISA", name);
    const auto backend = create_backend({});
    ASSERT_FALSE(backend.has_value()) << name;
    const std::string& message = backend.error().message;
    const bool is_foreign =
        message.find("is not supported by this machine; choose one of") != std::string::npos;
    const bool is_left_out =
        message.find("is not in this build (OCTAVO_INSTRUCTION_SETS=all") != std::string::npos;
    EXPECT_TRUE(is_foreign || is_left_out) << message;
  }
}

TEST(Backends, EveryNameOfAnInstructionSetIsUnderstood) {
  for (const char* name : {"portable", "avx2", "avx_vnni", "avx512", "avx512_vnni", "amx"}) {
    ASSERT_TRUE(cpu::instruction_set_from(name).has_value());
    EXPECT_EQ(cpu::instruction_set_name(*cpu::instruction_set_from(name)), name);
  }
  EXPECT_FALSE(cpu::instruction_set_from("AVX2").has_value());
  EXPECT_EQ(usable_instruction_sets().back(), "portable");
}

TEST(Backends, TheEnvironmentForcesABackend) {
  {
    const test::EnvironmentVariable forced("OCTAVO_BACKEND", "reference");
    EXPECT_EQ(create_backend({.device = "cpu"}).value()->name(), "reference");
  }
  {
    const test::EnvironmentVariable forced("OCTAVO_BACKEND", "cpu");
    EXPECT_EQ(create_backend({.device = "cuda"}).value()->name(), "cpu");
  }
  for (const char* impossible : {"cuda", "tpu"}) {
    const test::EnvironmentVariable forced("OCTAVO_BACKEND", impossible);
    const auto backend = create_backend({});
    ASSERT_FALSE(backend.has_value());
    EXPECT_NE(backend.error().message.find("OCTAVO_BACKEND"), std::string::npos);
  }
}

TEST(Backends, ADeviceThatIsNotThereIsAnError) {
  const test::EnvironmentVariable none("OCTAVO_BACKEND", "");
  EXPECT_EQ(create_backend({.device = "auto"}).value()->name(), "cpu");
  EXPECT_EQ(create_backend({.device = "cuda"}).error().code, ErrorCode::kUnsupported);
  EXPECT_EQ(create_backend({.device = "abacus"}).error().code, ErrorCode::kInvalidArgument);
}

TEST(Backends, ThreadsAreAsAskedAndZeroMeansCores) {
  const test::EnvironmentVariable none("OCTAVO_BACKEND", "");
  EXPECT_EQ(create_backend({.threads = 3}).value()->num_threads(), 3);
  EXPECT_EQ(create_backend({.threads = 0}).value()->num_threads(), num_physical_cores());
  EXPECT_FALSE(create_backend({.threads = -1}).has_value());
  EXPECT_FALSE(create_backend({.threads = 100000}).has_value());
  EXPECT_GE(num_physical_cores(), 1);
  EXPECT_LE(num_physical_cores(), static_cast<std::int32_t>(std::thread::hardware_concurrency()));
}

TEST(Backends, ImpossibleSizesAreErrorsWithNumbers) {
  for (const auto& backend :
       {testing::cpu_backend(cpu::InstructionSet::kPortable), testing::reference_backend()}) {
    const KvLayout large{KvType::kF16, 16, 30, 3, 64};
    const auto too_large = backend->allocate_kv_cache(large, std::numeric_limits<std::int32_t>::max());
    ASSERT_FALSE(too_large.has_value()) << backend->name();
    EXPECT_EQ(too_large.error().code, ErrorCode::kOutOfMemory);
    EXPECT_NE(too_large.error().message.find("791648371630080"), std::string::npos)
        << too_large.error().message;

    constexpr std::int32_t kMost = std::numeric_limits<std::int32_t>::max();
    EXPECT_EQ(backend->allocate_kv_cache({KvType::kF32, 256, kMost, kMost, kMost}, kMost).error().code,
              ErrorCode::kInvalidArgument);
    EXPECT_FALSE(backend->allocate_kv_cache({KvType::kF16, 257, 1, 1, 8}, 1).has_value());
    EXPECT_FALSE(backend->allocate_kv_cache({KvType::kF16, 16, 1, 1, 8}, 0).has_value());
    EXPECT_FALSE(backend->allocate_kv_cache({KvType::kF16, 16, 0, 1, 8}, 4).has_value());
    EXPECT_FALSE(backend->allocate_buffer(-1).has_value());
    EXPECT_FALSE(backend->allocate_buffer(std::numeric_limits<std::int64_t>::max()).has_value());
    EXPECT_FALSE(backend->allocate_buffer(std::int64_t{1} << 50).has_value());
  }
}

TEST(Backends, BuffersAreAlignedAndOfTheAskedSize) {
  for (const auto& backend :
       {testing::cpu_backend(cpu::InstructionSet::kPortable), testing::reference_backend()}) {
    for (const std::int64_t size : {1, 1000, 1 << 20}) {
      const auto buffer = backend->allocate_buffer(size).value();
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(buffer->data()) % 64, 0u);
      EXPECT_EQ(buffer->size(), size);
      buffer->data()[0] = buffer->data()[size - 1] = 1.0f;
    }
  }
}

}  // namespace
}  // namespace octavo::kernels
