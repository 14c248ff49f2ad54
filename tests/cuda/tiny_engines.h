// Whole engines on tiny models, on the emulated device and on the reference backend.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/engine.h"
#include "tests/cuda/violations.h"
#include "tests/engine/default_model.h"
#include "tests/support/environment.h"
#include "tests/support/gguf_writer.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/tiny_models.h"

namespace octavo {

inline std::string tiny_model(kernels::TensorType type) {
  static const test::TemporaryFolder folder;
  const auto file = folder / ("tiny-" + std::string(kernels::traits_of(type).name) + ".gguf");
  if (!std::filesystem::exists(file)) {
    test::make_tiny_llama(11, {.weight_type = type,
                               .embedding_length = 96,
                               .feed_forward_length = 160,
                               .num_heads = 6,
                               .num_kv_heads = 2})
        .write(file);
  }
  return file.string();
}

inline EngineOptions small_options(kernels::TensorType type) {
  EngineOptions options;
  options.model = tiny_model(type);
  options.num_kv_blocks = 64;
  options.max_model_len = 128;
  options.max_num_batched_tokens = 64;
  options.max_num_seqs = 8;
  options.target_step_ms = 0;  // how long an emulated step takes says nothing
  options.block_size = 8;
  options.enable_prefix_caching = false;
  return options;
}

inline std::unique_ptr<Engine> open_engine(EngineOptions options, Device device) {
  options.device = device;
  auto engine = Engine::create(options);
  EXPECT_TRUE(engine) << (engine ? "" : engine.error().message);
  return engine ? *std::move(engine) : nullptr;
}

inline std::unique_ptr<Engine> open_reference(const EngineOptions& options) {
  const test::EnvironmentVariable forced("OCTAVO_BACKEND", "reference");
  return open_engine(options, Device::kAuto);
}

inline GenerationRequest request(std::int32_t seed, std::int32_t prompt_len, std::int32_t max_tokens,
                                 std::int32_t n = 1) {
  TokenPrompt prompt;
  for (std::int32_t i = 0; i < prompt_len; ++i) {
    prompt.token_ids.push_back(3 + (seed * 31 + i * i * 7) %
                                       (static_cast<TokenId>(test::kTinyVocabularySize) - 4));
  }
  GenerationRequest request{.prompt = std::move(prompt)};
  request.sampling.temperature = n > 1 ? 1.0 : 0.0;
  request.sampling.n = n;
  request.sampling.seed = 5;
  request.sampling.max_tokens = max_tokens;
  request.sampling.ignore_eos = true;
  return request;
}

inline std::vector<std::vector<TokenId>> tokens_of(const std::vector<RequestOutput>& outputs) {
  std::vector<std::vector<TokenId>> tokens;
  for (const RequestOutput& output : outputs) {
    EXPECT_FALSE(output.error.has_value()) << output.error->message;
    for (const auto& each : output.outputs) tokens.push_back(each.token_ids);
  }
  return tokens;
}

inline std::string tiny_model_of(const std::string& name) {
  static const test::TemporaryFolder folder;
  const auto file = folder / (name + ".gguf");
  const nlohmann::json model = test::tiny_model(name);
  const int width = model["keys"]["embedding_length"];
  const auto type = width % 32 == 0 ? kernels::TensorType::kQ4_1 : kernels::TensorType::kF16;
  test::make_tiny_model(model, {.weight_type = type, .context_length = 128}).write(file);
  return file.string();
}

}  // namespace octavo
