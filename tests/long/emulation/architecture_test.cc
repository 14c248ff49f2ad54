// The tiny models of every architecture (tests/golden/make_tiny_models.py) on the emulated device: the
// log-probabilities that an independent program found, from a whole prompt and from chunks of it.
#include "engine/model/architecture.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <span>

#include "engine/model/gguf_file.h"
#include "kernels/cuda/create_cuda_backend.h"
#include "tests/cuda/violations.h"
#include "tests/model/golden_errors.h"
#include "tests/model/one_sequence.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/tiny_models.h"

namespace octavo::model {
namespace {

using kernels::Activation;
using kernels::TensorType;

constexpr std::int32_t kMostTokens = 48;

class CudaArchitectures : public ::testing::Test {
 protected:
  // Each launch once: what races is found where each kernel is tested.
  void SetUp() override { emulation::settings().finds_races = false; }
};

std::unique_ptr<kernels::Backend> emulated_backend(const std::filesystem::path& path, bool deterministic) {
  const GgufFile file = *GgufFile::open(path);
  const ModelConfig config = *read_model_config(file.header());
  auto backend =
      *kernels::cuda::create_cuda_backend({.activation = Activation::kInt16, .deterministic = deterministic},
                                          reference_backend(Activation::kF32));
  EXPECT_TRUE(backend->reserve_step({.num_rows = kMostTokens,
                                     .num_logits_rows = kMostTokens,
                                     .max_context_len = kMostTokens,
                                     .embedding_length = config.embedding_length,
                                     .feed_forward_length = config.feed_forward_length,
                                     .num_heads = config.num_heads,
                                     .num_kv_heads = config.num_kv_heads,
                                     .head_dim = config.head_dim,
                                     .vocabulary_size = config.vocabulary_size,
                                     .has_quantised_weights = true,
                                     .has_unquantised_weights = true,
                                     .has_post_norms = config.parts.has_post_norms,
                                     .has_local_rotations = config.local_rope.has_value()}));
  return backend;
}

// Float32 weights meet floats; keys, values, queries and softmax weights are sums of two bfloat16 numbers,
// which have 16 bits. Logits are of the order of 10.
constexpr double kMostError = 1e-3;

TEST_F(CudaArchitectures, GiveTheLogProbabilitiesOfAnIndependentProgram) {
  const test::TemporaryFolder folder;
  double worst = 0.0;
  for (const nlohmann::json& model : test::tiny_models()) {
    const std::string name = model["name"];
    if (test::is_for_processors(model)) continue;  // tests/cuda/engine_test.cc: refused
    test::make_tiny_model(model).write(folder / name);
    const std::vector<std::int32_t> token_ids = model["token_ids"];
    for (const std::int32_t chunk : {0, 7}) {
      OneSequence device(folder / name, emulated_backend(folder / name, chunk == 7), kMostTokens,
                         {.block_size = chunk == 7 ? 5 : 16, .max_model_len = model["max_model_len"]});
      const double error = errors_of(device.logits_of(token_ids, chunk), model).worst;
      EXPECT_LT(error, kMostError) << name << ", chunks of " << chunk;
      worst = std::max(worst, error);
    }
  }
  RecordProperty("worst_error", std::to_string(worst));
  EXPECT_GT(worst, 0.0);
}

// Deterministic: the same bits for every chunk and block size, through windows and caps.
TEST_F(CudaArchitectures, GiveTheSameBitsForEveryChunkAndBlockSizeWhenDeterministic) {
  const test::TemporaryFolder folder;
  for (const char* name : {"gemma2", "gemma3", "gpt2", "phi3_with_window", "qwen3"}) {
    const nlohmann::json model = test::tiny_model(name);
    test::make_tiny_model(model, {.weight_type = TensorType::kQ4_1}).write(folder / name);
    const std::vector<std::int32_t> token_ids = model["token_ids"];
    OneSequence whole(folder / name, emulated_backend(folder / name, true), kMostTokens);
    const std::vector<float> expected = whole.logits_of(token_ids);
    OneSequence parts(folder / name, emulated_backend(folder / name, true), kMostTokens, {.block_size = 5});
    EXPECT_EQ(parts.logits_of(token_ids, 7), expected) << name;
  }
}

// Quantised weights meet 16-bit integers (few rows) or are one float16 number each (many).
TEST_F(CudaArchitectures, AreNearTheReferenceForQuantisedAndHalfWeights) {
  const test::TemporaryFolder folder;
  for (const char* name :
       {"gemma", "gemma2", "gemma3", "gpt2", "llama_with_window", "phi3", "qwen2", "qwen3"}) {
    const nlohmann::json model = test::tiny_model(name);
    const std::vector<std::int32_t> token_ids = model["token_ids"];
    for (const auto& [type, chunk] : {std::pair{TensorType::kF16, 0}, {TensorType::kQ4_1, 6}}) {
      test::make_tiny_model(model, {.weight_type = type}).write(folder / name);
      OneSequence reference(folder / name, reference_backend(Activation::kInt16), kMostTokens);
      const std::vector<float> expected = reference.logits_of(token_ids);
      const auto [low, high] = std::minmax_element(expected.begin(), expected.end());
      OneSequence device(folder / name, emulated_backend(folder / name, false), kMostTokens);
      EXPECT_LT(worst_difference(device.logits_of(token_ids, chunk), expected),
                5e-3 * static_cast<double>(*high - *low))
          << name << ' ' << kernels::traits_of(type).name;
    }
  }
}

}  // namespace
}  // namespace octavo::model
