#include "engine/comparison/model_comparison.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "engine/llm.h"
#include "tests/support/gguf_writer.h"
#include "tests/support/temporary_folder.h"

namespace octavo::comparison {
namespace {

constexpr const char* kText =
    "The quick brown fox jumps over the lazy dog, and then the others do the same thing again and again. ";

EngineOptions exact(const std::string& model) {
  return {.model = model,
          .device = Device::kCpu,
          .threads = 1,
          .activation_dtype = ActivationType::kF32,
          .kv_cache_dtype = KvCacheType::kF32};
}

class TwoModels : public testing::Test {
 protected:
  TwoModels() {
    test::make_tiny_llama(7, {}).write(path("a.gguf"));
    test::make_tiny_llama(8, {}).write(path("b.gguf"));
  }
  std::string path(const std::string& name) const { return (folder_ / name).string(); }

  ModelComparison load(const std::string& a, const std::string& b,
                       std::optional<std::int32_t> context = {}) const {
    auto models = ModelComparison::load({.a = exact(path(a)), .b = exact(path(b)), .context = context}, {});
    if (!models) {
      ADD_FAILURE() << models.error().message;
      std::abort();
    }
    return *std::move(models);
  }
  static ComparedText compared(ModelComparison& models, const std::string& text) {
    auto compared = models.compare(text, /*parse_special=*/false, {});
    if (!compared) {
      ADD_FAILURE() << compared.error().message;
      std::abort();
    }
    return *std::move(compared);
  }
  Error refusal(const ComparisonOptions& options) const {
    const auto models = ModelComparison::load(options, {});
    return models ? Error{.message = "not refused"} : models.error();
  }
  // What the engine, by its scheduler, says of the same tokens.
  std::vector<std::optional<float>> logprobs_of_engine(const std::string& model,
                                                       const std::vector<TokenId>& token_ids) const {
    LLM llm(exact(path(model)));
    std::vector<GenerationRequest> requests = {
        {.prompt = TokenPrompt{token_ids}, .sampling = {.max_tokens = 1, .prompt_logprobs = 0}}};
    return llm.generate(std::move(requests)).value().front().prompt_logprobs;
  }

  const test::TemporaryFolder folder_;
};

TEST(TextWindows, ScoreEachTokenOnceBehindHalfAContext) {
  for (const std::int32_t num_before : {0, 1}) {
    for (std::int32_t context = 2; context < 20; ++context) {
      for (std::int64_t num_tokens = 0; num_tokens < 70; ++num_tokens) {
        std::int64_t next = 1 - num_before;
        for (const TextWindow& window : text_windows(num_tokens, context, num_before)) {
          EXPECT_EQ(window.first_scored, next);
          EXPECT_LE(window.end - window.begin + num_before, context);
          EXPECT_GT(window.end, window.first_scored);
          EXPECT_GE(window.first_scored - window.begin + num_before, 1);
          const std::int64_t fewest_before = window.begin > 0 ? (context - num_before) / 2 : 0;
          EXPECT_GE(window.first_scored - window.begin, fewest_before);
          next = window.end;
        }
        EXPECT_EQ(next, std::max<std::int64_t>(num_tokens, 1 - num_before));
      }
    }
  }
}

TEST(TextWindows, OfATextThatFitsAreOne) {
  EXPECT_EQ(text_windows(10, 10, 0), (std::vector<TextWindow>{{0, 10, 1}}));
  EXPECT_EQ(text_windows(9, 10, 1), (std::vector<TextWindow>{{0, 9, 0}}));
  EXPECT_EQ(text_windows(14, 10, 0), (std::vector<TextWindow>{{0, 10, 1}, {5, 14, 10}}));
}

TEST_F(TwoModels, ThatAreOneDifferNowhere) {
  ModelComparison models = load("a.gguf", "a.gguf");
  const ComparedText text = compared(models, kText);
  ASSERT_EQ(text.figures.size() + 1, text.token_ids.size());
  for (const TokenFigures& token : text.figures) {
    EXPECT_EQ(token.kl_divergence, 0.0);
    EXPECT_EQ(token.a.logprob, token.b.logprob);
    EXPECT_EQ(token.a.rank, token.b.rank);
    EXPECT_TRUE(token.has_same_top());
  }
}

TEST_F(TwoModels, SayOfEachTokenWhatTheirEnginesSay) {
  ModelComparison models = load("a.gguf", "b.gguf");
  const ComparedText text = compared(models, kText);
  const auto of_a = logprobs_of_engine("a.gguf", text.token_ids);
  const auto of_b = logprobs_of_engine("b.gguf", text.token_ids);
  double divergence = 0.0;
  for (std::size_t i = 0; i < text.figures.size(); ++i) {
    EXPECT_NEAR(text.figures[i].a.logprob, *of_a[i + 1], 1e-5) << "token " << i + 1;
    EXPECT_NEAR(text.figures[i].b.logprob, *of_b[i + 1], 1e-5) << "token " << i + 1;
    divergence += text.figures[i].kl_divergence;
  }
  EXPECT_GT(divergence, 0.0) << "these are two models";
}

// What a window says of its tokens, a text of those tokens alone says too.
TEST_F(TwoModels, ReadLongTextsInWindows) {
  constexpr std::int32_t kContext = 48;
  ModelComparison models = load("a.gguf", "b.gguf", kContext);
  const std::string text = std::string(kText) + kText + kText;
  const ComparedText whole = compared(models, text);
  const auto windows = text_windows(std::ssize(whole.token_ids), kContext, 0);
  ASSERT_GT(windows.size(), 4u);
  ASSERT_EQ(whole.figures.size() + 1, whole.token_ids.size());
  for (const TextWindow& window : windows) {
    const std::vector<TokenId> tokens(whole.token_ids.begin() + window.begin,
                                      whole.token_ids.begin() + window.end);
    const auto alone = logprobs_of_engine("a.gguf", tokens);
    for (std::int64_t i = window.first_scored; i < window.end; ++i) {
      EXPECT_NEAR(whole.figures[static_cast<std::size_t>(i - 1)].a.logprob,
                  *alone[static_cast<std::size_t>(i - window.begin)], 1e-5)
          << "token " << i;
    }
  }
}

TEST_F(TwoModels, BeginEveryWindowAsTheModelBeginsTexts) {
  test::ModelDraft draft = test::make_tiny_llama(7, {}).draft();
  draft.set_bool("tokenizer.ggml.add_bos_token", true).write(path("bos.gguf"));
  ModelComparison models = load("bos.gguf", "bos.gguf", 32);
  const ComparedText text = compared(models, kText);
  EXPECT_EQ(text.first_scored, 0);
  ASSERT_EQ(text.figures.size(), text.token_ids.size());
  const auto windows = text_windows(std::ssize(text.token_ids), 32, 1);
  const TextWindow& last = windows.back();
  std::vector<TokenId> tokens = {1};  // BOS
  tokens.insert(tokens.end(), text.token_ids.begin() + last.begin, text.token_ids.end());
  const auto alone = logprobs_of_engine("bos.gguf", tokens);
  EXPECT_NEAR(text.figures.back().a.logprob, *alone.back(), 1e-5);
  EXPECT_NEAR(text.figures.front().a.logprob, *logprobs_of_engine("bos.gguf", {1, text.token_ids[0]})[1],
              1e-5);
}

TEST_F(TwoModels, OfDifferentVocabulariesAreRefused) {
  test::ModelDraft other = test::make_tiny_llama(7, {}).draft();
  std::vector<std::string> tokens = {"<|endoftext|>", "<|im_start|>", "<|im_end|>"};
  for (int byte = 0; byte < 256; ++byte) tokens.push_back(test::gpt2_spelling(byte));
  for (const char* merged : {"Ġt", "he", "Ġa", "in", "Ġthe", "er", "on", "re", "Ġs", "ou"})
    tokens.push_back(merged);
  std::swap(tokens[0], tokens[2]);
  other.set_strings("tokenizer.ggml.tokens", tokens).write(path("other.gguf"));
  const Error error = refusal({.a = exact(path("a.gguf")), .b = exact(path("other.gguf"))});
  EXPECT_EQ(error.code, ErrorCode::kUnsupported);
  EXPECT_NE(error.message.find("different vocabularies"), std::string::npos) << error.message;
  EXPECT_NE(error.message.find("token 0 is '<|endoftext|>'"), std::string::npos) << error.message;
}

TEST_F(TwoModels, HaveOnlySoMuchContext) {
  const Error error = refusal({.a = exact(path("a.gguf")), .b = exact(path("b.gguf")), .context = 513});
  EXPECT_EQ(error.code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(error.subject, "context");
  EXPECT_NE(error.message.find("512"), std::string::npos) << error.message;
  EXPECT_EQ(load("a.gguf", "b.gguf", 2).context(), 2);
  EXPECT_EQ(load("a.gguf", "b.gguf").context(), 512);
}

TEST_F(TwoModels, NeedATextOfWhichSomethingCanBePredicted) {
  ModelComparison models = load("a.gguf", "b.gguf");
  for (const char* text : {"", "x"}) {
    const auto nothing = models.compare(text, /*parse_special=*/false, {});
    ASSERT_FALSE(nothing.has_value());
    EXPECT_EQ(nothing.error().code, ErrorCode::kInvalidArgument);
    EXPECT_NE(nothing.error().message.find("longer text"), std::string::npos) << nothing.error().message;
  }
}

TEST_F(TwoModels, CanBeCancelledAtAnyTime) {
  const auto never = [](double) { return false; };
  const auto cancelled =
      ModelComparison::load({.a = exact(path("a.gguf")), .b = exact(path("b.gguf"))}, never);
  ASSERT_FALSE(cancelled.has_value());
  EXPECT_EQ(cancelled.error().code, ErrorCode::kCancelled);

  ModelComparison models = load("a.gguf", "b.gguf", 16);
  std::vector<double> fractions;
  const std::string text = std::string(kText) + kText;
  const auto note = [&](double fraction) {
    fractions.push_back(fraction);
    return true;
  };
  ASSERT_TRUE(models.compare(text, /*parse_special=*/false, note).has_value());
  EXPECT_TRUE(std::ranges::is_sorted(fractions));
  ASSERT_GT(fractions.size(), 10u);
  EXPECT_GE(fractions.front(), 0.0);
  EXPECT_LT(fractions.back(), 1.0);
  for (const std::size_t calls : {std::size_t{1}, fractions.size() / 2, fractions.size()}) {
    std::size_t count = 0;
    const auto stopped =
        models.compare(text, /*parse_special=*/false, [&](double) { return ++count < calls; });
    ASSERT_FALSE(stopped.has_value());
    EXPECT_EQ(stopped.error().code, ErrorCode::kCancelled);
    EXPECT_EQ(count, calls);
  }
  EXPECT_TRUE(models.compare(text, /*parse_special=*/false, {}).has_value()) << "and goes on afterwards";
}

}  // namespace
}  // namespace octavo::comparison
