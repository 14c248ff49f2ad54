// Engines of every architecture on the emulated device: the reference backend's tokens.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/cuda/tiny_engines.h"

namespace octavo {
namespace {

// What each computes is compared by itself in architecture_test.
TEST(CudaEngineOfEveryArchitecture, GivesTheReferencesTokens) {
  emulation::settings().finds_races = false;  // each launch once: races are found where each kernel is tested
  for (const nlohmann::json& model : test::tiny_models()) {
    const std::string name = model["name"];
    if (test::is_for_processors(model)) continue;  // tests/cuda/engine_test.cc: refused
    EngineOptions options = small_options(kernels::TensorType::kQ4_1);
    options.model = tiny_model_of(name);
    const auto device = open_engine(options, Device::kCuda);
    const auto reference = open_reference(options);
    ASSERT_NE(device, nullptr);
    const std::vector<GenerationRequest> requests = {request(1, 40, 10), request(2, 1, 12),
                                                     request(3, 23, 8)};
    EXPECT_EQ(tokens_of(run_together(*device, requests)), tokens_of(run_together(*reference, requests)))
        << name;
  }
}

}  // namespace
}  // namespace octavo
