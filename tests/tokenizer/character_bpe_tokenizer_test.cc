// BPE over characters, against what Hugging Face's tokenizers do with a small vocabulary that was trained for
// it.
#include "engine/tokenizer/character_bpe_tokenizer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/tokenizer/encoding.h"
#include "tests/tokenizer/golden.h"

namespace octavo::tokenizer {
namespace {

// <pad> 0, <eos> 1, <bos> 2, <unk> 3, <|turn> 4, <turn|> 5, then user-defined: <|channel> 6, <channel|> 7,
// <|tool_response> 8; bytes from 9 on.
Vocabulary golden_vocabulary(const nlohmann::json& golden) {
  Vocabulary vocabulary;
  vocabulary.model = "gemma4";
  vocabulary.tokens = golden["vocabulary"]["tokens"].get<std::vector<std::string>>();
  for (const int kind : golden["vocabulary"]["kinds"])
    vocabulary.kinds.push_back(static_cast<TokenKind>(kind));
  vocabulary.merges = golden["vocabulary"]["merges"].get<std::vector<std::string>>();
  vocabulary.bos_token_id = 2;
  vocabulary.eos_token_id = 1;
  vocabulary.unknown_token_id = 3;
  vocabulary.add_bos_token = true;
  return vocabulary;
}

const nlohmann::json& golden() {
  static const nlohmann::json json = load_golden("character_bpe.json");
  return json;
}

TEST(CharacterBpe, IdsEqualHuggingFaces) {
  const auto tokenizer = make(golden_vocabulary(golden()));
  ASSERT_GT(golden()["texts"].size(), 300u);
  std::size_t num_ids = 0;
  for (std::size_t i = 0; i < golden()["texts"].size(); ++i) {
    const std::string text = golden()["texts"][i];
    // What a text says of special tokens is text here.
    const bool names_special = std::ranges::any_of(
        golden()["vocabulary"]["tokens"], [&](const nlohmann::json& token) { return token == text; });
    if (names_special && text.starts_with("<")) continue;
    EXPECT_EQ(encode(*tokenizer, text), golden()["ids"][i].get<Ids>()) << golden()["texts"][i];
    num_ids += golden()["ids"][i].size();
  }
  EXPECT_GT(num_ids, 5'000u);
}

TEST(CharacterBpe, IdsBecomeTheirTextAgain) {
  const auto tokenizer = make(golden_vocabulary(golden()));
  for (const auto& pair : golden()["decoded"]) {
    EXPECT_EQ(tokenizer->decode(pair[0].get<Ids>(), /*skip_special=*/false), pair[1].get<std::string>());
  }
}

TEST(CharacterBpe, SpecialTextIsATokenInTemplatesOnly) {
  const auto tokenizer = make(golden_vocabulary(golden()));
  EXPECT_EQ(encode(*tokenizer, "<|turn>a<turn|>", true).front(), 4);
  EXPECT_EQ(encode(*tokenizer, "<|channel>", true), (Ids{6}));
  for (const char* text : {"<bos>", "<|turn>", "<|channel>", "<unk>", "<0x41>"}) {
    const Ids ids = encode(*tokenizer, text);
    EXPECT_GT(ids.size(), 1u) << text;
    EXPECT_TRUE(std::ranges::all_of(ids, [](TokenId id) { return id > 8; })) << text;
    EXPECT_EQ(tokenizer->decode(ids, true), text);
  }
  EXPECT_EQ(encode(*tokenizer, "a", false, /*add_bos=*/true).front(), 2);
}

TEST(CharacterBpe, WhatIsNoTextBecomesItsBytes) {
  const auto tokenizer = make(golden_vocabulary(golden()));
  EXPECT_EQ(encode(*tokenizer, "\xff\xc3"), (Ids{9 + 0xff, 9 + 0xc3}));
  EXPECT_EQ(encode(*tokenizer, "\U00010348"), (Ids{9 + 0xf0, 9 + 0x90, 9 + 0x8d, 9 + 0x88}));
  EXPECT_EQ(tokenizer->token_bytes(9 + 0x0a), "\n");
}

TEST(CharacterBpe, ARunOfLineBreaksThatIsATokenIsThatToken) {
  Vocabulary vocabulary = golden_vocabulary(golden());
  vocabulary.tokens.push_back(std::string(9, '\n'));
  vocabulary.kinds.push_back(TokenKind::kNormal);
  const auto tokenizer = make(vocabulary);
  const auto last = static_cast<TokenId>(vocabulary.tokens.size() - 1);
  EXPECT_EQ(encode(*tokenizer, std::string(9, '\n')), (Ids{last}));
  EXPECT_EQ(std::ranges::count(encode(*tokenizer, std::string(10, '\n')), last), 0);
}

TEST(CharacterBpe, UserDefinedWordsAreFoundInEveryText) {
  Vocabulary vocabulary = golden_vocabulary(golden());
  vocabulary.tokens.emplace_back("block of");
  vocabulary.kinds.push_back(TokenKind::kUserDefined);
  const auto tokenizer = make(vocabulary);
  const auto last = static_cast<TokenId>(vocabulary.tokens.size() - 1);
  EXPECT_EQ(std::ranges::count(encode(*tokenizer, "a block of blocks"), last), 1);
}

TEST(CharacterBpe, VocabulariesThatContradictThemselvesAreRefused) {
  const auto message = [](const std::function<void(Vocabulary&)>& change) {
    Vocabulary vocabulary = golden_vocabulary(golden());
    change(vocabulary);
    const auto tokenizer = Tokenizer::create(std::move(vocabulary));
    return tokenizer ? std::string() : tokenizer.error().message;
  };
  EXPECT_NE(
      message([](Vocabulary& v) { v.kinds[9] = TokenKind::kNormal; }).find("lacks 1 of the 256 byte tokens"),
      std::string::npos);
  EXPECT_NE(message([](Vocabulary& v) { v.tokens[9] = "<0xZZ>"; }).find("is not written like <0x0A>"),
            std::string::npos);
  EXPECT_NE(message([](Vocabulary& v) { v.merges[3] = "the missing"; }).find("tokenizer.ggml.merges[3]"),
            std::string::npos);
  EXPECT_NE(message([](Vocabulary& v) { v.scores = {1.0f}; }).find("tokenizer.ggml.scores"),
            std::string::npos);
  const auto without_bytes = [](Vocabulary& v) {
    for (std::size_t id = 9; id < 9 + 256; ++id) v.kinds[id] = TokenKind::kUnused;
  };
  EXPECT_EQ(message(without_bytes), "") << "there is an unknown token";
  EXPECT_NE(message([&](Vocabulary& v) {
              without_bytes(v);
              v.unknown_token_id.reset();
              v.kinds[3] = TokenKind::kControl;
            }).find("neither byte tokens nor an unknown token"),
            std::string::npos);
}

}  // namespace
}  // namespace octavo::tokenizer
