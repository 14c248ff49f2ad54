#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include "tests/simulation/expected_prompt.h"
#include "tests/simulation/script.h"
#include "tests/simulation/simulation.h"
#include "tests/simulation/toy_chat_tokenizer.h"
#include "tests/simulation/toy_tokenizer.h"

namespace octavo::simulation {
namespace {

using Tokens = std::vector<TokenId>;

constexpr TokenId kEnd = 1, kBos = 2, kBegin = 3, kA = 4, kB = 5, kC = 6, kD = 7, kAB = 9, kUnknown = 21;

ScriptedRequest request(const std::string& fields) {
  const auto script = parse_script("at 0 submit 1 " + fields);
  EXPECT_TRUE(script) << fields;
  return script ? script->operations.front().asked : ScriptedRequest{};
}

Tokens prompt(const std::string& fields) { return expected_prompt(request(fields)); }

// ---- the oracle, written out

TEST(ExpectedPrompt, IsEachMessageBehindItsRole) {
  EXPECT_EQ(prompt("chat=sHuE"), (Tokens{kBos, kBegin, kA, kD, kEnd, kBegin, kB, kA, kEnd, kBegin, kC}));
  EXPECT_EQ(prompt("prompt=EF"), (Tokens{kA, kB}));
}

TEST(ExpectedPrompt, HoldsAnAnswersOwnTokensUnlessItWasEdited) {
  const Tokens before = {kBos, kBegin, kB, kA, kEnd, kBegin, kC};
  const auto answered = [&](const Tokens& answer) {
    Tokens tokens = before;
    tokens.insert(tokens.end(), answer.begin(), answer.end());
    tokens.insert(tokens.end(), {kEnd, kBegin, kB, kD, kEnd, kBegin, kC});
    return tokens;
  };
  EXPECT_EQ(prompt("chat=uEaJuH"), answered({kAB}));
  EXPECT_EQ(prompt("chat=uEeJuH"), answered({kA, kB}));
  EXPECT_EQ(prompt("chat=uExJuH"), answered({kA, kB}));
  EXPECT_EQ(prompt("chat=uEaJCuH"), answered({kA, kB})) << "<bos> is no part of its text";
}

TEST(ExpectedPrompt, EndsWithinAnAnswerThatGoesOn) {
  EXPECT_EQ(prompt("chat=uEaJ continue_answer=1"), (Tokens{kBos, kBegin, kB, kA, kEnd, kBegin, kC, kAB}));
  EXPECT_EQ(prompt("chat=uE continue_answer=1"), Tokens{}) << "a question";
  EXPECT_EQ(prompt("chat=aE continue_answer=1"), Tokens{}) << "it answers nothing";
}

TEST(ExpectedPrompt, TakesTheTextOfASpecialTokenForText) {
  EXPECT_EQ(prompt("chat=uD"), (Tokens{kBos, kBegin, kB, kUnknown, kUnknown, kUnknown, kEnd, kBegin, kC}));
}

TEST(ExpectedPrompt, KnowsTheTokensOfTheSystemMessage) {
  EXPECT_EQ(expected_system_tokens(request("chat=sHuE")), 6);
  EXPECT_EQ(expected_system_tokens(request("chat=sHaE")), 7) << "an answer begins as alone";
  EXPECT_EQ(expected_system_tokens(request("chat=sH")), 0) << "nothing follows";
  EXPECT_EQ(expected_system_tokens(request("chat=uEaH")), 0);
  EXPECT_EQ(expected_system_tokens(request("prompt=EF")), 0);
}

TEST(ExpectedPrompt, IsKeptByItsKind) {
  EXPECT_EQ(expected_retention(request("chat=uE")), RetentionClass::kChat);
  EXPECT_EQ(expected_retention(request("prompt=E")), RetentionClass::kScratch);
  EXPECT_EQ(expected_retention(request("chat=uE retention=scratch")), RetentionClass::kScratch);
}

// ---- what the simulation runs with

TEST(ToyChatTokenizer, HasTheVocabularyOfTheToyTokenizer) {
  const ToyTokenizer toy;
  const ToyChatTokenizer chat;
  ASSERT_EQ(chat.vocabulary_size(), toy.vocabulary_size());
  EXPECT_EQ(chat.bos_token_id(), toy.bos_token_id());
  for (TokenId id = 0; id < toy.vocabulary_size(); ++id) {
    EXPECT_EQ(chat.token_bytes(id), toy.token_bytes(id));
    EXPECT_EQ(chat.is_control(id), toy.is_control(id));
    EXPECT_EQ(chat.is_end_of_sequence(id), toy.is_end_of_sequence(id));
  }
}

// A chat whose system message another one asks about again, whose answers are its own, edited and continued.
constexpr const char* kTwoChats =
    "options block_size=2 num_blocks=64 max_num_seqs=4 max_num_batched_tokens=16 max_model_len=64\n"
    "at 0 submit 1 chat=sHHHHuE max_tokens=4\n"
    "at 20 submit 2 chat=sHHHHuF max_tokens=4\n"
    "at 40 submit 3 chat=sHHHHuEaJMuG max_tokens=4 retention=scratch\n"
    "at 60 submit 4 chat=sHHHHuExJMuG max_tokens=4\n"
    "at 80 submit 5 chat=sHHHHuEeJM continue_answer=1 max_tokens=4\n"
    "at 90 submit 6 chat=uE continue_answer=1 max_tokens=4\n";

TEST(SimulatedChats, FindTheirSystemMessageThatWasEncodedOnce) {
  const auto script = parse_script(kTwoChats);
  ASSERT_TRUE(script) << script.error().message;
  const Report report = live(*script);
  EXPECT_FALSE(report.problem) << *report.problem;
  EXPECT_EQ(report.counts.chat_prompts, 5);
  EXPECT_EQ(report.counts.refused, 1);
  EXPECT_EQ(report.counts.continued_answers, 1);
  EXPECT_EQ(report.counts.answers_with_ids, 1);
  EXPECT_EQ(report.counts.encoded_system_messages, 1);
  EXPECT_EQ(report.counts.found_system_tokens, 4 * 9) << "of four later turns";
}

TEST(SimulatedChats, AreReadBackAndShrinkToFewerAndShorterMessages) {
  const auto script = parse_script(kTwoChats);
  ASSERT_TRUE(script) << script.error().message;
  const auto read_back = parse_script(to_text(*script));
  ASSERT_TRUE(read_back) << read_back.error().message;
  EXPECT_EQ(read_back->operations[2].asked.chat, script->operations[2].asked.chat);

  std::vector<std::string> simpler;
  for (std::size_t way = 0; way < num_simplifications(*script); ++way) {
    if (const auto one = simplified(*script, way)) simpler.push_back(to_text(*one));
  }
  const auto has = [&](const std::string& chat) {
    return std::ranges::any_of(simpler, [&](const std::string& text) {
      return text.find("submit 3 chat=" + chat + " ") != std::string::npos;
    });
  };
  EXPECT_TRUE(has("sHHHHuE")) << "without the last turn";
  EXPECT_TRUE(has("uEaJMuG")) << "without the system message";
  EXPECT_TRUE(has("sHHuEaJuG")) << "half of each";
}

}  // namespace
}  // namespace octavo::simulation
