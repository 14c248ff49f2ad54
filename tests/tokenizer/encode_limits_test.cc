// A text that cannot fit is refused before it is encoded; one that can never is.

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <stop_token>
#include <string>
#include <vector>

#include "engine/tokenizer/tokenizer.h"
#include "tests/block/seed.h"
#include "tests/tokenizer/golden.h"
#include "tests/tokenizer/sentencepiece_vocabularies.h"
#include "tests/tokenizer/small_vocabulary.h"

namespace octavo::tokenizer {
namespace {

struct NamedTokenizer {
  std::string name;
  std::unique_ptr<Tokenizer> tokenizer;
};

// Byte-level BPE with bytes that leave no token and a word that is found in every text; sentencepiece with
// and without rules, removed spaces, byte tokens, and spaces that control tokens eat.
std::vector<NamedTokenizer> all_tokenizers() {
  std::vector<NamedTokenizer> all;
  const auto add = [&](const std::string& name, const Vocabulary& vocabulary) {
    auto tokenizer = Tokenizer::create(vocabulary);
    ASSERT_TRUE(tokenizer) << name << ": " << tokenizer.error().message;
    all.push_back({name, *std::move(tokenizer)});
  };
  Vocabulary vocabulary = byte_vocabulary();
  add_merge(vocabulary, "a", "b");
  add_merge(vocabulary, "ab", "ab");
  vocabulary.tokens.push_back("     ");
  vocabulary.kinds.push_back(TokenKind::kUserDefined);
  add("bytes", vocabulary);
  vocabulary.tokens[0] = "\u4f60";  // spells no byte
  vocabulary.add_space_prefix = true;
  vocabulary.add_bos_token = true;
  add("bytes but one", vocabulary);
  const nlohmann::json golden = load_golden("sentencepiece.json");
  for (const auto& [name, entry] : golden["vocabularies"].items()) {
    Vocabulary pieces = sentencepiece_vocabulary(entry);
    add(name, pieces);
    pieces.control_tokens_eat_spaces = true;
    add(name + ", spaces eaten", pieces);
  }
  return all;
}

std::string random_text(std::mt19937_64& random) {
  static const std::string kParts[] = {
      "ab",      "abab",   " ",      "          ", "\n",     std::string(1, '\0'),
      "the",     " token", "\u4f60", "\u0130",     "\ufb03", "\u2581",
      "e\u0301", "\xff",   "</s>",   "<tool>",     "\u00ad", "\ufdfa"};
  std::string text;
  for (int i = static_cast<int>(random() % 40); i >= 0; --i) {
    const std::string& part = kParts[random() % std::size(kParts)];
    for (int times = random() % 6 == 0 ? 30 : 1; times > 0; --times) text += part;
  }
  return text;
}

TEST(EncodeLimits, NeverRefuseWhatFits) {
  std::mt19937_64 random(test_seed());
  for (const auto& [name, tokenizer] : all_tokenizers()) {
    for (int round = 0; round < 200; ++round) {
      const std::string text = random_text(random);
      const bool parse_special = random() % 2 == 0;
      const auto token_ids = tokenizer->encode(text, parse_special, /*add_bos=*/true);
      ASSERT_TRUE(token_ids);
      const auto limited = tokenizer->encode(text, parse_special, true, {.max_tokens = token_ids->size()});
      ASSERT_TRUE(limited) << name << ": " << limited.error().message << "\n" << text;
      EXPECT_EQ(*limited, *token_ids);
      const std::vector<ChatMessage> chat = {{Role::kSystem, text}, {Role::kUser, random_text(random)}};
      const auto chat_ids = tokenizer->encode_chat(chat, 0);
      ASSERT_TRUE(chat_ids);
      EXPECT_TRUE(tokenizer->encode_chat(chat, 0, {.max_tokens = chat_ids->size()})) << name << ": " << text;
    }
  }
}

TEST(EncodeLimits, CountNoBytesThatLeaveNoToken) {
  Vocabulary vocabulary = byte_vocabulary();
  vocabulary.tokens[0] = "\u4f60";  // spells no byte
  const auto tokenizer = Tokenizer::create(vocabulary);
  ASSERT_TRUE(tokenizer);
  const std::string text = std::string(1'000, '\0') + "a";
  const auto token_ids = (*tokenizer)->encode(text, false, false, {.max_tokens = 1});
  ASSERT_TRUE(token_ids) << token_ids.error().message;
  EXPECT_EQ(*token_ids, std::vector<TokenId>{'a'});
}

// Ids that are kept count as they are.
TEST(EncodeLimits, NeverRefuseAnAnswerWhoseIdsFit) {
  const auto tokenizer = Tokenizer::create(byte_vocabulary());
  ASSERT_TRUE(tokenizer);
  const std::vector<ChatMessage> chat = {{Role::kUser, "x"}, {Role::kAssistant, "\ufffd", {0xff}}};
  EXPECT_EQ((*tokenizer)->encode_chat(chat, 0)->size(), 3u) << "an invalid byte is three in the text";
  EXPECT_TRUE((*tokenizer)->encode_chat(chat, 0, {.max_tokens = 3}));
}

TEST(EncodeLimits, RefuseAtOnceWhatCannotFit) {
  const Tokenizer* const tokenizer = default_tokenizer();
  if (tokenizer == nullptr) GTEST_SKIP() << "the default model is not here";
  std::string text;
  while (text.size() < (std::size_t{30} << 20))
    text += "What is pasted here is far too long for any context. ";
  for (const bool is_chat : {false, true}) {
    const std::vector<ChatMessage> chat = {{Role::kUser, text}};
    const EncodeLimits limits{.max_tokens = 8191};
    const auto ids =
        is_chat ? tokenizer->encode_chat(chat, 0, limits) : tokenizer->encode(text, false, true, limits);
    ASSERT_FALSE(ids);
    EXPECT_EQ(ids.error().code, ErrorCode::kTooLong);
    EXPECT_TRUE(ids.error().message.find("the 8,191 tokens that there is room for can hold at most") !=
                std::string::npos)
        << ids.error().message;
  }
}

// One piece of a megabyte, which is merged in one go.
TEST(EncodeLimits, AStopEndsTheEncodingOfOneLongPiece) {
  for (const auto& [name, tokenizer] : all_tokenizers()) {
    std::stop_source stop;
    stop.request_stop();
    const auto ids = tokenizer->encode(std::string(1 << 20, 'a'), false, false, {.stop = stop.get_token()});
    ASSERT_FALSE(ids) << name;
    EXPECT_EQ(ids.error().code, ErrorCode::kCancelled) << name;
  }
}

}  // namespace
}  // namespace octavo::tokenizer
