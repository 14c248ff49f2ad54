// What layers with a window and recurrent layers keep of a text, in a whole engine: no more than they read,
// enough to go on from, and the same tokens as from nothing.
#include <gtest/gtest.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "engine/engine.h"
#include "tests/demonstrations/mixed_requests.h"
#include "tests/engine/default_model.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/tiny_models.h"

namespace octavo {
namespace {

constexpr std::int32_t kWindow = 100, kChunk = 64, kBlockSize = 16;

std::unique_ptr<Engine> open(const std::string& name, EngineOptions options) {
  static const test::TemporaryFolder folder;
  const auto file = folder / (name + ".gguf");
  const nlohmann::json model = test::tiny_model(name);
  test::TinyModelOptions tiny{.weight_type = kernels::TensorType::kQ4_1, .context_length = 1024};
  if (model["keys"].contains("attention.sliding_window")) tiny.window = kWindow;
  test::make_tiny_model(model, tiny).write(file);
  options.model = file.string();
  options.threads = 1;
  options.max_num_batched_tokens = kChunk;
  return open_untimed(std::move(options));
}

std::vector<TokenId> text(int num_tokens, std::uint64_t seed) {
  simulation::Random random(seed);
  std::vector<TokenId> tokens;
  for (int i = 0; i < num_tokens; ++i)
    tokens.push_back(random.between(3, static_cast<TokenId>(test::kTinyVocabularySize) - 1));
  return tokens;
}

GenerationRequest greedy(std::vector<TokenId> prompt) {
  GenerationRequest request{.prompt = TokenPrompt{std::move(prompt)}};
  request.sampling.temperature = 0.0;
  request.sampling.max_tokens = 12;
  request.sampling.ignore_eos = true;
  request.sampling.logprobs = 5;
  return request;
}

std::vector<TokenId> joined(std::vector<TokenId> first, const std::vector<TokenId>& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

class WindowMemory : public testing::TestWithParam<const char*> {};

TEST_P(WindowMemory, HoldsTheWindowAChunkAndABlock) {
  const auto engine = open(GetParam(), {.num_kv_blocks = 128, .num_window_blocks = 64});
  ASSERT_EQ(engine->description().window, kWindow);
  const auto beginning = text(800, 1);
  const RequestOutput first = run_alone(*engine, greedy(joined(beginning, text(90, 2))));
  ASSERT_FALSE(first.error);
  const KvTotals totals = engine->kv_totals();
  EXPECT_LE(totals.windows.peak_used, (kWindow + kChunk + kBlockSize + kBlockSize - 1) / kBlockSize);
  EXPECT_GE(totals.windows.num_left, (890 - kWindow) / kBlockSize);
  // Who starts alike goes on at the end of what is alike.
  const RequestOutput second = run_alone(*engine, greedy(joined(beginning, text(50, 3))));
  EXPECT_EQ(second.num_cached_tokens, 800);

  const auto plain = open(GetParam(), {.num_kv_blocks = 128, .num_window_blocks = 0});
  ASSERT_EQ(plain->description().window, 0);
  EXPECT_GT(plain->description().bytes_per_block, engine->description().bytes_per_block);
  const std::vector<RequestOutput> expected = {run_alone(*plain, greedy(joined(beginning, text(90, 2)))),
                                               run_alone(*plain, greedy(joined(beginning, text(50, 3))))};
  EXPECT_EQ(first_difference({first, second}, expected), "");
}

TEST_P(WindowMemory, TakesNoMoreThanIsAllowed) {
  const auto plain = open(GetParam(), {.kv_cache_memory = 1, .num_window_blocks = 0, .max_num_seqs = 2});
  const auto apart = open(GetParam(), {.kv_cache_memory = 1, .max_num_seqs = 2});
  ASSERT_GT(apart->description().num_window_blocks, 0);
  EXPECT_GT(apart->description().num_blocks, plain->description().num_blocks);
  EXPECT_LE(apart->description().kv_bytes(), 1 << 20);
}

TEST_P(WindowMemory, OfTooFewBlocksIsRefused) {
  EXPECT_THROW(
      {
        try {
          open(GetParam(), {.num_kv_blocks = 128, .num_window_blocks = 13});
        } catch (const std::runtime_error& error) {
          EXPECT_EQ(
              std::string(error.what()),
              "num_window_blocks is 13; a sequence with a window of 100 tokens takes up to 14 blocks of 16 "
              "with a step's tokens: use that or more, or lower max_num_batched_tokens");
          throw;
        }
      },
      std::runtime_error);
}

INSTANTIATE_TEST_SUITE_P(Architectures, WindowMemory,
                         testing::Values("cohere2", "gemma2", "gemma3", "gemma4", "llama_with_window",
                                         "olmo2_windows"),
                         [](const auto& info) { return std::string(info.param); });

class RecurrentMemory : public testing::TestWithParam<const char*> {};

TEST_P(RecurrentMemory, AFinishedTurnIsResumedExactly) {
  const auto engine = open(GetParam(), {.num_kv_blocks = 128, .num_states = 8});
  const auto question = text(75, 1);
  const RequestOutput first = run_alone(*engine, greedy(question));
  ASSERT_FALSE(first.error);
  const auto next = joined(joined(question, first.outputs[0].token_ids), text(30, 2));
  const RequestOutput second = run_alone(*engine, greedy(next));
  // All but the token that was drawn last, which was never computed.
  EXPECT_EQ(second.num_cached_tokens, 75 + 12 - 1);
  EXPECT_EQ(engine->kv_totals().states.num_resumed, 1);
  const auto fresh =
      open(GetParam(), {.num_kv_blocks = 128, .num_states = 8, .enable_prefix_caching = false});
  EXPECT_EQ(first_difference({second}, {run_alone(*fresh, greedy(next))}), "");
}

INSTANTIATE_TEST_SUITE_P(Architectures, RecurrentMemory, testing::Values("qwen35", "qwen35moe", "qwen3next"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace octavo
