#include "engine/core/request_intake.h"

#include <gtest/gtest.h>

#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "tests/engine/toy_tokens.h"
#include "tests/tokenizer/small_vocabulary.h"

namespace octavo {
namespace {

using simulation::ToyTokenizer;
using Tokens = std::vector<TokenId>;

IntakeSources sources() {
  return {.tokenizer = &kToyTokenizer,
          .draw_seed = [] { return std::uint64_t{1234}; },
          .unix_time_s = [] { return std::int64_t{0}; }};
}

SubmitRequest asked(Prompt prompt, SamplingParams sampling = {}, std::uint64_t id = 1) {
  return {RequestId{id}, {.prompt = std::move(prompt), .sampling = std::move(sampling)}, 0};
}

Result<scheduler::NewRequest> prepare(Prompt prompt, SamplingParams sampling = {}) {
  RequestIntake intake(sources());
  return intake.prepare(asked(std::move(prompt), std::move(sampling))).request;
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

TEST(RequestIntake, RefusesWhatATemplateCannotBeTold) {
  ChatPrompt prompt{{{Role::kUser, "c", {}}}};
  prompt.template_values = {{"enable_thinking", false}};
  EXPECT_TRUE(prepare(prompt).has_value());
  prompt.template_values = {{"messages", true}};
  const auto refused = prepare(prompt);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().message,
            "chat_template_kwargs must be what the messages do not say already, but it is 'messages'");
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

// As vLLM finds them: as written and, where that is as many tokens with another first one, after a space.
TEST(RequestIntake, FindsTheTokensOfBadWords) {
  tokenizer::Vocabulary vocabulary = tokenizer::byte_vocabulary();
  vocabulary.split_pattern = "gpt-2";
  tokenizer::add_merge(vocabulary, "a", "b");                        // 259
  tokenizer::add_merge(vocabulary, tokenizer::spelling(' '), "ab");  // 260
  const auto tokenizer = tokenizer::Tokenizer::create(vocabulary);
  ASSERT_TRUE(tokenizer) << tokenizer.error().message;
  IntakeSources real = sources();
  real.tokenizer = tokenizer->get();
  RequestIntake intake(real);
  const auto ids = [&](std::vector<std::string> words) {
    auto prepared = intake.prepare(asked(TextPrompt{"x"}, {.bad_words = std::move(words)}));
    return prepared.request->sampling.bad_word_token_ids;
  };
  using Words = std::vector<Tokens>;
  EXPECT_EQ(ids({"ab"}), (Words{{259}, {260}}));
  EXPECT_EQ(ids({"  ab"}), (Words{{259}, {260}})) << "spaces before it count for nothing";
  EXPECT_EQ(ids({"cd"}), (Words{{'c', 'd'}})) << "after a space it is a token more";
  EXPECT_EQ(ids({"x", "abx"}), (Words{{'x'}, {259, 'x'}, {260, 'x'}}));
}

TEST(RequestIntake, RefusesABadWordWithoutTokens) {
  const auto refused = prepare(TextPrompt{"a"}, {.bad_words = {"  "}});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message, "bad_words must be texts that the model has tokens for, but it is '  '");
  EXPECT_EQ(prepare(TextPrompt{"a"}, {.bad_words = {"\xff"}}).error().subject, "bad_words");
}

TEST(RequestIntake, KnowsWhichTokensAreTheSystemMessage) {
  const ChatPrompt prompt{{{Role::kSystem, "ab", {}}, {Role::kUser, "ca", {}}}};
  EXPECT_EQ(prepare(prompt)->num_system_tokens, 3) << "with the beginning of the sequence";
  EXPECT_EQ(prepare(ChatPrompt{{{Role::kUser, "ca", {}}}})->num_system_tokens, 0);
}

TEST(RequestIntake, EncodesASystemMessageOnceForAllItsTurns) {
  RequestIntake intake(sources());
  for (const char* question : {"ca", "b", "ddd"}) {
    for (const char* system : {"ab", "ba"}) {
      const auto prepared =
          intake.prepare(asked(ChatPrompt{{{Role::kSystem, system, {}}, {Role::kUser, question, {}}}}));
      EXPECT_EQ(prepared.request->num_system_tokens, 3);
    }
  }
  EXPECT_EQ(intake.num_encoded_system_messages(), 2);
}

TEST(RequestIntake, RemembersTheSystemMessagesThatWereUsedLast) {
  RequestIntake intake(sources());
  const auto ask = [&](std::size_t length) {
    const std::string system(length, 'a');
    const auto prepared =
        intake.prepare(asked(ChatPrompt{{{Role::kSystem, system, {}}, {Role::kUser, "b", {}}}}));
    EXPECT_EQ(prepared.request->num_system_tokens, static_cast<std::int32_t>(1 + length));
  };
  for (std::size_t length = 1; length <= 100; ++length) {
    ask(length);
    ask(1);
  }
  EXPECT_EQ(intake.num_encoded_system_messages(), 100);
}

// A vocabulary of bytes, "ab" and "abcd": five tokens hold twenty bytes at most.
TEST(RequestIntake, RefusesUnencodedWhatCannotFitAndSaysHowMuchToCut) {
  tokenizer::Vocabulary vocabulary = tokenizer::byte_vocabulary();
  vocabulary.tokens.insert(vocabulary.tokens.end(), {"ab", "cd", "abcd"});
  vocabulary.kinds.insert(vocabulary.kinds.end(), 3, tokenizer::TokenKind::kNormal);
  vocabulary.merges = {"a b", "c d", "ab cd"};
  const auto tokenizer = tokenizer::Tokenizer::create(vocabulary);
  ASSERT_TRUE(tokenizer) << tokenizer.error().message;
  IntakeSources bounded = sources();
  bounded.tokenizer = tokenizer->get();
  bounded.max_prompt_tokens = 5;
  RequestIntake intake(bounded);
  EXPECT_EQ(intake.prepare(asked(TextPrompt{"abcdabcdabcdabcdabcd"})).request->prompt_token_ids.size(), 5u);
  EXPECT_EQ(intake.prepare(asked(TextPrompt{std::string(20, 'x')})).request->prompt_token_ids.size(), 20u)
      << "whether it fits to the token is not asked here";
  const std::string sentence =
      "the prompt has 27 bytes; the 5 tokens that there is room for can hold at most 20: cut at least 7";
  for (const Prompt& prompt : {Prompt{TextPrompt{std::string(27, 'x')}},
                               Prompt{ChatPrompt{{{Role::kUser, std::string(27, 'x'), {}}}}}}) {
    const auto refused = intake.prepare(asked(prompt));
    ASSERT_FALSE(refused.request);
    EXPECT_EQ(refused.request.error().code, ErrorCode::kTooLong);
    EXPECT_EQ(refused.request.error().message, sentence);
  }
}

TEST(RequestIntake, EndsWhenNobodyWantsTheRequest) {
  const auto tokenizer = tokenizer::Tokenizer::create(tokenizer::byte_vocabulary());
  ASSERT_TRUE(tokenizer);
  IntakeSources real = sources();
  real.tokenizer = tokenizer->get();
  RequestIntake intake(real);
  std::stop_source stop;
  stop.request_stop();
  const auto stopped = intake.prepare(asked(TextPrompt{std::string(1 << 20, 'x')}), stop.get_token());
  ASSERT_FALSE(stopped.request);
  EXPECT_EQ(stopped.request.error().code, ErrorCode::kCancelled);
}

}  // namespace
}  // namespace octavo
