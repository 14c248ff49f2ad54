#include "engine/llm.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "tests/engine/default_model.h"

namespace octavo {
namespace {

TEST(LLM, GivesASequenceAtMost47Blocks) {
  OCTAVO_NEEDS_DEFAULT_MODEL();
  LLM llm(
      {.model = model::default_model_path().string(), .gpu_memory_utilization = 0.9, .max_model_len = 752});
  ASSERT_FALSE(llm.error()) << llm.error()->message;
  EXPECT_EQ(llm.max_blocks_per_sequence(), 47);

  // To the very end of its length, alone in the pool.
  std::vector<GenerationRequest> requests;
  requests.push_back({TokenPrompt{std::vector<TokenId>(700, 500)},
                      {.temperature = 0.0, .max_tokens = 752, .ignore_eos = true},
                      {}});
  const auto answers = llm.generate(std::move(requests));
  ASSERT_TRUE(answers);
  const CompletionOutput& output = answers->at(0).outputs.at(0);
  EXPECT_EQ(output.token_ids.size(), 52u);
  EXPECT_EQ(output.finish_reason, FinishReason::kLength);
  EXPECT_EQ(llm.kv_totals().peak_used_blocks, 47);
}

TEST(LLM, AnswersAListOfPromptsAndASinglePrompt) {
  OCTAVO_NEEDS_DEFAULT_MODEL();
  LLM llm(
      {.model = model::default_model_path().string(), .gpu_memory_utilization = 0.9, .max_model_len = 752});
  ASSERT_FALSE(llm.error()) << llm.error()->message;
  const auto answers =
      llm.generate({"Hello, my name is", "The capital of France is"}, {.temperature = 0.0, .max_tokens = 8});
  ASSERT_TRUE(answers);
  ASSERT_EQ(answers->size(), 2u);
  const auto first_alone = llm.generate("Hello, my name is", {.temperature = 0.0, .max_tokens = 8});
  ASSERT_TRUE(first_alone);
  EXPECT_EQ(answers->at(0).outputs.at(0).text, first_alone->at(0).outputs.at(0).text);
  EXPECT_EQ(answers->at(0).outputs.at(0).token_ids.size(), 8u);
  EXPECT_NE(answers->at(1).outputs.at(0).text.find("Paris"), std::string::npos);

  const auto answer = llm.generate("Oi, pode me ajudar?");
  ASSERT_TRUE(answer);
  ASSERT_EQ(answer->size(), 1u);
  EXPECT_FALSE(answer->at(0).error);
  const CompletionOutput& output = answer->at(0).outputs.at(0);
  EXPECT_TRUE(output.finish_reason == FinishReason::kStop || output.token_ids.size() == 16) << output.text;
  EXPECT_LE(llm.kv_totals().peak_used_blocks, 47 * 2);
}

// Greedy, so that it can be compared token by token; with ids, and with text alone.
TEST(LLM, ContinuesAnAnswerWhereItWasCutOff) {
  OCTAVO_NEEDS_DEFAULT_MODEL();
  LLM llm({.activation_dtype = ActivationType::kF32});
  ASSERT_FALSE(llm.error()) << llm.error()->message;
  const std::vector<ChatMessage> question = {{Role::kUser, "Name three colours.", {}}};
  const auto answer_to = [&llm](std::vector<ChatMessage> messages, bool continues, std::int32_t max_tokens) {
    std::vector<GenerationRequest> requests;
    requests.push_back(
        {ChatPrompt{std::move(messages), continues}, {.temperature = 0.0, .max_tokens = max_tokens}, {}});
    return llm.generate(std::move(requests));
  };
  const auto whole = answer_to(question, false, 16);
  const auto half = answer_to(question, false, 6);
  ASSERT_TRUE(whole && half);
  const CompletionOutput& begun = half->at(0).outputs.at(0);
  for (const bool with_ids : {true, false}) {
    std::vector<ChatMessage> messages = question;
    messages.push_back({Role::kAssistant, begun.text, with_ids ? begun.token_ids : std::vector<TokenId>()});
    const auto rest = answer_to(messages, true, 10);
    ASSERT_TRUE(rest);
    EXPECT_EQ(begun.text + rest->at(0).outputs.at(0).text, whole->at(0).outputs.at(0).text);
  }
  const auto refused = answer_to(question, true, 4);
  ASSERT_TRUE(refused);
  ASSERT_TRUE(refused->at(0).error.has_value());
  EXPECT_NE(refused->at(0).error->message.find("only an answer that follows"), std::string::npos);
}

TEST(LLM, Chats) {
  OCTAVO_NEEDS_DEFAULT_MODEL();
  LLM llm({.activation_dtype = ActivationType::kF32});
  ASSERT_FALSE(llm.error()) << llm.error()->message;
  const auto answers =
      llm.chat({{Role::kUser, "What is the capital of France?", {}}}, {.temperature = 0.0, .max_tokens = 16});
  ASSERT_TRUE(answers);
  EXPECT_NE(answers->at(0).outputs.at(0).text.find("Paris"), std::string::npos);
  EXPECT_EQ(answers->at(0).outputs.at(0).finish_reason, FinishReason::kStop);
}

TEST(LLM, AFailedRequestKeepsItsErrorToItself) {
  OCTAVO_NEEDS_DEFAULT_MODEL();
  LLM llm({});
  const auto answers = llm.generate({"", "Hello"}, {.temperature = 0.0, .max_tokens = 2});
  ASSERT_TRUE(answers);
  EXPECT_TRUE(answers->at(0).error);
  EXPECT_EQ(answers->at(1).outputs.at(0).token_ids.size(), 2u);
}

TEST(LLM, ThatCouldNotBeBuiltSaysWhyAtEveryCall) {
  LLM llm({.model = "/nonexistent/model.gguf"});
  ASSERT_TRUE(llm.error());
  const auto answers = llm.generate("Hello");
  ASSERT_FALSE(answers);
  EXPECT_EQ(answers.error().message, llm.error()->message);
}

}  // namespace
}  // namespace octavo
