// The default model, whole, on the emulated device: for one short prompt the tokens and log-probabilities
// that a float32 program found (tests/golden/smollm2-135m-instruct-q4_1.json). What
// tests/runner/reference_test.cc does on real ones.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/cuda/violations.h"
#include "tests/engine/default_model.h"
#include "tests/support/paths.h"

namespace octavo {
namespace {

nlohmann::json reference_entry(const std::string& name) {
  std::ifstream file(test::source_folder() / "tests/golden/smollm2-135m-instruct-q4_1.json");
  for (const nlohmann::json& entry : nlohmann::json::parse(file)) {
    if (entry["name"] == name) return entry;
  }
  ADD_FAILURE() << "the reference has no " << name;
  return {};
}

TEST(DefaultModelOnTheEmulatedDevice, GeneratesTheReferencesTokens) {
  OCTAVO_NEEDS_DEFAULT_MODEL();
  emulation::settings().finds_races = false;
  const nlohmann::json entry = reference_entry("capital");
  const std::vector<TokenId> prompt = entry["token_ids"];
  std::vector<TokenId> expected;
  std::vector<double> expected_logprobs;
  for (const nlohmann::json& token : entry["greedy"]) {
    expected.push_back(token[0]);
    expected_logprobs.push_back(token[1]);
  }
  const auto engine = open_default_model({.device = Device::kCuda,
                                          .num_kv_blocks = 16,
                                          .max_model_len = 64,
                                          .max_num_seqs = 1,
                                          .max_num_batched_tokens = 64});
  ASSERT_EQ(engine->description().device, "cuda");
  GenerationRequest request{.prompt = TokenPrompt{prompt}};
  request.sampling.temperature = 0.0;
  request.sampling.max_tokens = static_cast<std::int32_t>(expected.size());
  request.sampling.ignore_eos = true;
  const RequestOutput output = run_alone(*engine, request);
  ASSERT_FALSE(output.error) << output.error->message;
  const CompletionOutput& answer = output.outputs.at(0);
  EXPECT_EQ(answer.token_ids, expected);
  ASSERT_EQ(answer.logprobs.size(), expected.size());
  double sum = 0.0;
  for (std::size_t i = 0; i < expected.size(); ++i)
    sum += std::abs(answer.logprobs[i] - expected_logprobs[i]);
  const double mean = sum / static_cast<double>(expected.size());
  EXPECT_LE(mean, 0.005);  // what the product allows of an entry's log-probabilities
  std::printf("%zu tokens after %zu, mean error of the log-probabilities %.5f\n", expected.size(),
              prompt.size(), mean);
}

}  // namespace
}  // namespace octavo
