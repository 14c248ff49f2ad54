// Embeddings of the default model against tests/golden/embeddings.json, which a float32 program in numpy
// computed from the same file (make_embeddings.py), and against themselves: whatever runs beside them,
// however they are cut into steps, and on the plain loops of kernels/reference.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "engine/llm.h"
#include "tests/engine/default_model.h"
#include "tests/support/paths.h"

namespace octavo {
namespace {

struct Case {
  std::vector<TokenId> token_ids;
  std::vector<double> last, mean;
  const std::vector<double>& of(Pooling pooling) const { return pooling == Pooling::kLast ? last : mean; }
};

std::vector<Case> cases() {
  std::ifstream file(test::source_folder() / "tests/golden/embeddings.json");
  std::vector<Case> cases;
  for (const nlohmann::json& json : nlohmann::json::parse(file))
    cases.push_back({json["token_ids"], json["last"], json["mean"]});
  return cases;
}

GenerationRequest embedding_of(std::vector<TokenId> token_ids, Pooling pooling, bool normalise = false) {
  GenerationRequest request{.prompt = TokenPrompt{std::move(token_ids)}};
  request.embedding = {.pooling = pooling, .normalise = normalise};
  return request;
}

// |a - b| / |b|
double relative_distance(const std::vector<float>& a, const std::vector<double>& b) {
  EXPECT_EQ(a.size(), b.size());
  double difference = 0.0, length = 0.0;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    difference += (double{a[i]} - b[i]) * (double{a[i]} - b[i]);
    length += b[i] * b[i];
  }
  return std::sqrt(difference / length);
}

std::vector<TokenId> some_tokens(std::size_t count, std::int32_t first) {
  std::vector<TokenId> ids(count);
  for (std::size_t i = 0; i < count; ++i) ids[i] = 1000 + (first + 37 * static_cast<std::int32_t>(i)) % 40000;
  return ids;
}

TEST(EmbeddingsOfTheDefaultModel, AreThoseOfAProgramInNumpy) {
  OCTAVO_NEEDS_DEFAULT_MODEL();
  for (const auto& [type, bound] :
       {std::pair(ActivationType::kF32, 1e-3), std::pair(ActivationType::kInt16, 3e-3)}) {
    const auto engine = open_default_model({.activation_dtype = type, .num_kv_blocks = 64});
    for (const Case& one : cases()) {
      for (const Pooling pooling : {Pooling::kLast, Pooling::kMean}) {
        const RequestOutput answer = run_alone(*engine, embedding_of(one.token_ids, pooling));
        EXPECT_LT(relative_distance(answer.embedding, one.of(pooling)), bound)
            << pooling_name(pooling) << " of " << one.token_ids.size();
      }
    }
  }
}

TEST(EmbeddingsOfTheDefaultModel, AreOfLengthOneWhereThatIsAskedFor) {
  OCTAVO_NEEDS_DEFAULT_MODEL();
  LLM llm({.model = model::default_model_path().string(), .num_kv_blocks = 64});
  ASSERT_FALSE(llm.error()) << llm.error()->message;
  const std::vector<std::string> texts = {"A cat sits on the mat.", "A kitten lies on a rug.",
                                          "Stock prices fell by 4 %."};
  const auto answers = llm.embed(texts, {.pooling = Pooling::kMean});
  ASSERT_TRUE(answers);
  const auto product = [&](std::size_t a, std::size_t b) {
    double sum = 0.0;
    for (std::size_t i = 0; i < answers->at(a).embedding.size(); ++i)
      sum += double{answers->at(a).embedding[i]} * double{answers->at(b).embedding[i]};
    return sum;
  };
  for (std::size_t i = 0; i < texts.size(); ++i) EXPECT_NEAR(product(i, i), 1.0, 1e-6);
  EXPECT_GT(product(0, 1), product(0, 2)) << "what means the same is nearer";
}

// The same bits, alone and in small steps beside others.
TEST(EmbeddingsOfTheDefaultModel, AreTheSameBitsWhateverRunsBesideThem) {
  OCTAVO_NEEDS_DEFAULT_MODEL();
  const auto alone = open_default_model({.num_kv_blocks = 128});
  const auto small_steps = open_default_model({.num_kv_blocks = 128, .max_num_batched_tokens = 48});
  for (const Pooling pooling : {Pooling::kLast, Pooling::kMean}) {
    const auto expected = run_alone(*alone, embedding_of(some_tokens(200, 1), pooling)).embedding;
    std::vector<GenerationRequest> requests;
    for (int i = 0; i < 4; ++i) {
      GenerationRequest other{
          .prompt = TokenPrompt{some_tokens(30 + 20 * static_cast<std::size_t>(i), 500 * (i + 1))}};
      other.sampling = {.temperature = 0.0, .max_tokens = 20, .ignore_eos = true};
      requests.push_back(std::move(other));
      requests.push_back(embedding_of(some_tokens(100, 900 * (i + 1)), Pooling::kMean));
    }
    requests.insert(requests.begin() + 3, embedding_of(some_tokens(200, 1), pooling));
    EXPECT_EQ(run_together(*small_steps, std::move(requests))[3].embedding, expected)
        << pooling_name(pooling);
    EXPECT_EQ(run_alone(*small_steps, embedding_of(some_tokens(200, 1), pooling)).embedding, expected)
        << "with what is in the cache";
  }
}

}  // namespace
}  // namespace octavo
