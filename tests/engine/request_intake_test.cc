#include "engine/core/request_intake.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "tests/simulation/toy_tokenizer.h"

namespace octavo {
namespace {

using simulation::ToyTokenizer;
using Tokens = std::vector<TokenId>;

constexpr TokenId kA = 4, kB = 5, kC = 6, kAB = 9;

const ToyTokenizer kTokenizer;

Result<scheduler::NewRequest> prepare(Prompt prompt, SamplingParams sampling = {}) {
  return prepare_request({RequestId{1}, {.prompt = std::move(prompt), .sampling = std::move(sampling)}, 0},
                         {.tokenizer = &kTokenizer,
                          .draw_seed = [] { return std::uint64_t{1234}; },
                          .unix_time_s = [] { return std::int64_t{0}; }});
}

ChatPrompt continued(std::string content, Tokens token_ids) {
  ChatPrompt prompt{{{Role::kUser, "c", {}}, {Role::kAssistant, std::move(content), std::move(token_ids)}}};
  prompt.continue_answer = true;
  return prompt;
}

TEST(RequestIntake, TakesEveryIdOfTheVocabularyAndNoOther) {
  EXPECT_TRUE(prepare(TokenPrompt{{0, ToyTokenizer::kVocabularySize - 1}}).has_value());
  const auto refused = prepare(TokenPrompt{{kA, ToyTokenizer::kVocabularySize}});
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().message,
            "prompt_token_ids: token id 24 at index 1 is not in the vocabulary; use ids from 0 to 23");
}

TEST(RequestIntake, KeepsAnySeedThatIsGivenAndDrawsOneOtherwise) {
  EXPECT_EQ(prepare(TextPrompt{"a"}, {.seed = 0})->seed, 0u);
  EXPECT_EQ(prepare(TextPrompt{"a"})->seed, 1234u);
}

// The ids that "ab" was generated as need not be those that its text is encoded as.
TEST(RequestIntake, ContinuesAnAnswerWithItsOwnIdsOnlyWhenTheyAreItsText) {
  EXPECT_EQ(prepare(continued("ab", {kAB}))->prompt_token_ids, (Tokens{ToyTokenizer::kBos, kC, kAB}));
  EXPECT_EQ(prepare(continued("ba", {kAB}))->prompt_token_ids, (Tokens{ToyTokenizer::kBos, kC, kB, kA}));
  EXPECT_EQ(prepare(continued("ab", {}))->prompt_token_ids, (Tokens{ToyTokenizer::kBos, kC, kA, kB}));
}

TEST(RequestIntake, KnowsWhichTokensAreTheSystemMessage) {
  const ChatPrompt prompt{{{Role::kSystem, "ab", {}}, {Role::kUser, "ca", {}}}};
  EXPECT_EQ(prepare(prompt)->num_system_tokens, 3) << "with the beginning of the sequence";
  EXPECT_EQ(prepare(ChatPrompt{{{Role::kUser, "ca", {}}}})->num_system_tokens, 0);
}

}  // namespace
}  // namespace octavo
