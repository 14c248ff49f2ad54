#include "engine/model/vocabulary_reader.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "engine/model/gguf_file.h"
#include "engine/model/limits.h"
#include "engine/model/model_files.h"
#include "tests/support/gguf_writer.h"
#include "tests/support/paths.h"

namespace octavo::model {
namespace {

using test::GgufWriter;
using tokenizer::TokenKind;
using tokenizer::Vocabulary;

Result<Vocabulary> read(const GgufWriter& writer) {
  const auto bytes = writer.bytes();
  OCTAVO_TRY(const auto header, GgufHeader::parse(MemorySource(bytes), "test.gguf"));
  return read_vocabulary(header);
}

GgufWriter three_tokens() {
  GgufWriter writer;
  writer.add_string("tokenizer.ggml.model", "gpt2")
      .add_string_array("tokenizer.ggml.tokens", {"a", "b", "<end>"});
  return writer;
}

TEST(VocabularyReader, ReadsAllThatTheFileSays) {
  GgufWriter writer;
  test::add_tiny_vocabulary(writer, "{{ messages }}");
  writer.add_u32("tokenizer.ggml.eot_token_id", 0).add_u32("tokenizer.ggml.eom_token_id", 2);
  const auto vocabulary = read(writer);
  ASSERT_TRUE(vocabulary.has_value()) << vocabulary.error().message;
  EXPECT_EQ(vocabulary->model, "gpt2");
  EXPECT_EQ(vocabulary->split_pattern, "smollm");
  EXPECT_EQ(vocabulary->tokens.size(), test::kTinyVocabularySize);
  EXPECT_EQ(vocabulary->tokens[2], "<|im_end|>");
  EXPECT_EQ(vocabulary->kinds[2], TokenKind::kControl);
  EXPECT_EQ(vocabulary->kinds[3], TokenKind::kNormal);
  EXPECT_EQ(vocabulary->merges.front(), "Ġ t");
  EXPECT_EQ(vocabulary->bos_token_id, 1);
  EXPECT_EQ(vocabulary->eos_token_id, 2);
  EXPECT_EQ(vocabulary->unknown_token_id, 0);
  EXPECT_EQ(vocabulary->further_eos_token_ids,
            (std::vector<TokenId>{0}));  // 2 is the end of sequence already
  EXPECT_FALSE(vocabulary->add_bos_token);
  EXPECT_EQ(vocabulary->chat_template, "{{ messages }}");
}

// An answer of gpt-oss would end behind its thinking, and nobody could tell the two apart.
TEST(VocabularyReader, ChannelsDoNotEndAnAnswerAndAreItsText) {
  const std::vector<std::string> tokens = {"a",           "<|return|>",    "<|start|>", "<|channel|>",
                                           "<|message|>", "<|constrain|>", "<|end|>",   "<|call|>"};
  const auto read_with = [&](std::vector<std::string> names) {
    GgufWriter writer;
    writer.add_string("tokenizer.ggml.model", "gpt2").add_string_array("tokenizer.ggml.tokens", names);
    writer.add_array<std::int32_t>("tokenizer.ggml.token_type", {1, 3, 3, 3, 3, 3, 3, 3});
    writer.add_string_array("tokenizer.ggml.merges", {}).add_u32("tokenizer.ggml.eos_token_id", 1);
    return read(writer);
  };
  const auto vocabulary = read_with(tokens);
  ASSERT_TRUE(vocabulary.has_value()) << vocabulary.error().message;
  EXPECT_EQ(vocabulary->eos_token_id, 1);
  EXPECT_EQ(vocabulary->further_eos_token_ids, (std::vector<TokenId>{7}));
  for (std::size_t id = 2; id <= 6; ++id) EXPECT_EQ(vocabulary->kinds[id], TokenKind::kUserDefined) << id;
  std::vector<std::string> others = tokens;  // Phi-3: <|end|> ends a turn
  others[3] = "<|other|>";
  const auto phi = read_with(others);
  ASSERT_TRUE(phi.has_value()) << phi.error().message;
  EXPECT_EQ(phi->further_eos_token_ids, (std::vector<TokenId>{6}));
  EXPECT_EQ(phi->kinds[6], TokenKind::kControl);
}

// Muse: what ends a message to itself does not end its answer, whatever key of the file names it.
TEST(VocabularyReader, AMessageToAnotherRecipientDoesNotEndAnAnswer) {
  const std::vector<std::string> tokens = {"a",           "<|end_of_text|>", "<|start|>",
                                           "<|message|>", "<|eom|>",         "<|eot|>"};
  const auto read_with = [&](const std::vector<std::string>& names) {
    GgufWriter writer;
    writer.add_string("tokenizer.ggml.model", "gpt2").add_string_array("tokenizer.ggml.tokens", names);
    writer.add_array<std::int32_t>("tokenizer.ggml.token_type", {1, 3, 3, 3, 3, 3});
    writer.add_string_array("tokenizer.ggml.merges", {}).add_u32("tokenizer.ggml.eos_token_id", 1);
    writer.add_u32("tokenizer.ggml.eot_token_id", 5).add_u32("tokenizer.ggml.eom_token_id", 4);
    return read(writer);
  };
  const auto muse = read_with(tokens);
  ASSERT_TRUE(muse.has_value()) << muse.error().message;
  EXPECT_EQ(muse->further_eos_token_ids, (std::vector<TokenId>{5}));
  for (std::size_t id = 2; id <= 4; ++id) EXPECT_EQ(muse->kinds[id], TokenKind::kUserDefined) << id;
  EXPECT_EQ(muse->kinds[5], TokenKind::kControl);
  std::vector<std::string> others = tokens;  // Llama 4, whose calls of tools end with <|eom|>
  others[3] = "<|header_start|>";
  const auto llama4 = read_with(others);
  ASSERT_TRUE(llama4.has_value()) << llama4.error().message;
  EXPECT_EQ(llama4->further_eos_token_ids, (std::vector<TokenId>{5, 4}));
}

GgufWriter gemma4_tokens() {
  GgufWriter writer;
  writer.add_string("tokenizer.ggml.model", "gemma4")
      .add_string_array("tokenizer.ggml.tokens",
                        {"<pad>", "<eos>", "<bos>", "<|turn>", "<turn|>", "<|channel>", "<channel|>",
                         "<|tool_response>", "a", "<turn|>"})
      .add_array("tokenizer.ggml.token_type", std::vector<std::int32_t>{3, 3, 3, 3, 3, 3, 3, 4, 1, 1})
      .add_u32("tokenizer.ggml.eos_token_id", 4);
  return writer;
}

// What a model thought must be seen, and its turn is over where a tool would answer.
TEST(VocabularyReader, AnAnswerOfGemma4EndsWithItsTurnAndShowsItsChannels) {
  const auto vocabulary = read(gemma4_tokens().add_u32("tokenizer.ggml.bos_token_id", 2));
  ASSERT_TRUE(vocabulary.has_value()) << vocabulary.error().message;
  EXPECT_EQ(vocabulary->eos_token_id, 4);
  EXPECT_EQ(vocabulary->further_eos_token_ids, (std::vector<TokenId>{1, 7}));
  for (const std::size_t mark : {5u, 6u}) EXPECT_EQ(vocabulary->kinds[mark], TokenKind::kUserDefined) << mark;
  EXPECT_EQ(vocabulary->kinds[3], TokenKind::kControl);
}

TEST(VocabularyReader, TextsOfGemma4BeginWithBosWhateverTheFileSays) {
  for (const bool says : {true, false}) {
    const auto vocabulary = read(gemma4_tokens()
                                     .add_u32("tokenizer.ggml.bos_token_id", 2)
                                     .add_bool("tokenizer.ggml.add_bos_token", says));
    ASSERT_TRUE(vocabulary.has_value()) << vocabulary.error().message;
    EXPECT_TRUE(vocabulary->add_bos_token);
  }
  const auto without = read(gemma4_tokens());
  ASSERT_FALSE(without.has_value());
  EXPECT_EQ(without.error().subject, "tokenizer.ggml.bos_token_id");
}

TEST(VocabularyReader, LeavesOutWhatTheFileLeavesOut) {
  const auto vocabulary = read(three_tokens());
  ASSERT_TRUE(vocabulary.has_value()) << vocabulary.error().message;
  EXPECT_TRUE(vocabulary->kinds.empty());
  EXPECT_TRUE(vocabulary->merges.empty());
  EXPECT_FALSE(vocabulary->bos_token_id.has_value());
  EXPECT_EQ(vocabulary->chat_template, "");
  EXPECT_FALSE(vocabulary->add_bos_token);
}

TEST(VocabularyReader, TheLlama3FamilyStartsWithBosUnlessItSaysOtherwise) {
  EXPECT_TRUE(read(three_tokens().add_string("tokenizer.ggml.pre", "llama-bpe"))->add_bos_token);
  EXPECT_FALSE(read(three_tokens()
                        .add_string("tokenizer.ggml.pre", "llama-bpe")
                        .add_bool("tokenizer.ggml.add_bos_token", false))
                   ->add_bos_token);
  EXPECT_TRUE(read(three_tokens()
                       .add_string("tokenizer.ggml.pre", "qwen2")
                       .add_bool("tokenizer.ggml.add_bos_token", true))
                  ->add_bos_token);
}

// As Qwen 3.5's files have it; of others the end of a text is what their file says.
TEST(VocabularyReader, ATextAndATurnOfQwen35EndEachByItsOwnToken) {
  for (const char* pattern : {"qwen35", "qwen2"}) {
    GgufWriter writer;
    writer.add_string("tokenizer.ggml.model", "gpt2").add_string("tokenizer.ggml.pre", pattern);
    writer.add_string_array("tokenizer.ggml.tokens",
                            {"a", "<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|endoftext|>"});
    writer.add_array<std::int32_t>("tokenizer.ggml.token_type", {1, 3, 3, 3, 1});
    writer.add_u32("tokenizer.ggml.eos_token_id", 3);
    const auto vocabulary = read(writer);
    ASSERT_TRUE(vocabulary.has_value()) << vocabulary.error().message;
    EXPECT_EQ(vocabulary->eos_token_id, 3);
    const std::vector<TokenId> expected =
        pattern == std::string("qwen35") ? std::vector<TokenId>{1} : std::vector<TokenId>{};
    EXPECT_EQ(vocabulary->further_eos_token_ids, expected) << pattern << ": a plain word ends nothing";
    EXPECT_FALSE(vocabulary->add_bos_token);
  }
}

GgufWriter sentencepiece_tokens() {
  GgufWriter writer;
  writer.add_string("tokenizer.ggml.model", "llama")
      .add_string_array("tokenizer.ggml.tokens", {"<unk>", "<s>", "</s>", "<|end|>", "a"});
  writer.add_array<std::int32_t>("tokenizer.ggml.token_type", {2, 3, 3, 3, 1})
      .add_array<float>("tokenizer.ggml.scores", {0, 0, 0, 0, -1.5f});
  return writer;
}

TEST(VocabularyReader, SentencePieceFilesMeanLlamasDefaults) {
  const auto plain = read(sentencepiece_tokens());
  ASSERT_TRUE(plain.has_value()) << plain.error().message;
  EXPECT_EQ(plain->scores, (std::vector<float>{0, 0, 0, 0, -1.5f}));
  EXPECT_EQ(plain->bos_token_id, 1);
  EXPECT_EQ(plain->eos_token_id, 2);
  EXPECT_EQ(plain->further_eos_token_ids, (std::vector<TokenId>{3}));  // a turn's end by its name
  EXPECT_TRUE(plain->add_bos_token);
  EXPECT_TRUE(plain->add_space_prefix);
  EXPECT_FALSE(plain->remove_extra_whitespaces);
  EXPECT_FALSE(plain->control_tokens_eat_spaces);

  GgufWriter writer = sentencepiece_tokens();
  writer.add_bool("tokenizer.ggml.add_space_prefix", false).add_bool("tokenizer.ggml.add_bos_token", false);
  writer.add_bool("tokenizer.ggml.remove_extra_whitespaces", true).add_u32("tokenizer.ggml.eos_token_id", 3);
  writer.add_array<std::int32_t>("tokenizer.ggml.precompiled_charsmap", {0, 127, -1, 255})
      .add_string("general.name", "Phi-3 mini");
  const auto told = read(writer);
  ASSERT_TRUE(told.has_value()) << told.error().message;
  EXPECT_FALSE(told->add_space_prefix);
  EXPECT_FALSE(told->add_bos_token);
  EXPECT_TRUE(told->remove_extra_whitespaces);
  EXPECT_EQ(told->precompiled_charsmap, std::string("\0\x7f\xff\xff", 4));
  EXPECT_TRUE(told->control_tokens_eat_spaces);
  EXPECT_TRUE(told->further_eos_token_ids.empty());
}

void expect_refused(const GgufWriter& writer, const std::string& key, const std::string& sentence) {
  const auto vocabulary = read(writer);
  ASSERT_FALSE(vocabulary.has_value()) << key;
  EXPECT_EQ(vocabulary.error().code, ErrorCode::kDamagedFile);
  EXPECT_EQ(vocabulary.error().subject, key);
  EXPECT_NE(vocabulary.error().message.find("test.gguf: " + key + " " + sentence), std::string::npos)
      << vocabulary.error().message;
}

TEST(VocabularyReader, RefusesWhatCannotBe) {
  expect_refused(GgufWriter().add_string_array("tokenizer.ggml.tokens", {"a"}), "tokenizer.ggml.model",
                 "is missing");
  expect_refused(GgufWriter().add_string("tokenizer.ggml.model", "gpt2"), "tokenizer.ggml.tokens",
                 "is missing");
  expect_refused(
      GgufWriter().add_string("tokenizer.ggml.model", "gpt2").add_string_array("tokenizer.ggml.tokens", {}),
      "tokenizer.ggml.tokens", "holds 0 tokens");
  expect_refused(GgufWriter()
                     .add_string("tokenizer.ggml.model", "gpt2")
                     .add_array<std::int32_t>("tokenizer.ggml.tokens", {1}),
                 "tokenizer.ggml.tokens", "has type array of i32 where an array of strings is needed");
  expect_refused(three_tokens().add_array<std::int32_t>("tokenizer.ggml.token_type", {1, 1}),
                 "tokenizer.ggml.token_type", "holds 2 types for 3 tokens");
  expect_refused(three_tokens().add_array<float>("tokenizer.ggml.token_type", {1, 1, 1}),
                 "tokenizer.ggml.token_type", "has type array of f32");
  for (const std::int32_t kind : {0, 7, -1, 1 << 30}) {
    expect_refused(three_tokens().add_array<std::int32_t>("tokenizer.ggml.token_type", {1, kind, 1}),
                   "tokenizer.ggml.token_type",
                   "holds " + std::to_string(kind) + ", which is not a token type");
  }
  for (const char* name : {"bos", "eos", "unknown", "eot", "eom", "padding", "fim_pre"}) {
    const std::string key = "tokenizer.ggml." + std::string(name) + "_token_id";
    EXPECT_TRUE(read(three_tokens().add_u32(key, 2)).has_value());
    expect_refused(three_tokens().add_u32(key, 3), key, "is 3, outside the vocabulary of 3 tokens");
    expect_refused(three_tokens().add_u32(key, 0xffffffffu), key, "is 4294967295, outside the vocabulary");
    expect_refused(three_tokens().add_i32(key, -2), key, "holds a number that is out of range");
    expect_refused(three_tokens().add_string(key, "2"), key, "has type string");
  }
  expect_refused(three_tokens().add_u32("tokenizer.ggml.add_bos_token", 1), "tokenizer.ggml.add_bos_token",
                 "has type u32 where a boolean is needed");
  expect_refused(three_tokens().add_u32("tokenizer.chat_template", 1), "tokenizer.chat_template",
                 "has type u32 where a string is needed");
}

TEST(VocabularyReader, ScoresAreNumbersOneForEachToken) {
  EXPECT_TRUE(read(three_tokens().add_array<float>("tokenizer.ggml.scores", {1, 2, 3})).has_value());
  expect_refused(three_tokens().add_array<float>("tokenizer.ggml.scores", {1, 2}), "tokenizer.ggml.scores",
                 "holds 2 scores for 3 tokens");
  expect_refused(three_tokens().add_array<std::uint8_t>("tokenizer.ggml.scores", {1, 2, 3}),
                 "tokenizer.ggml.scores", "has type array of u8");
}

TEST(VocabularyReader, RefusesRulesThatAreNoBytes) {
  expect_refused(sentencepiece_tokens().add_array<std::int32_t>("tokenizer.ggml.precompiled_charsmap", {256}),
                 "tokenizer.ggml.precompiled_charsmap", "holds numbers that are not bytes");
}

TEST(VocabularyReader, MergesMayBeSixteenForEachTokenAndNoMore) {
  const auto merges = [](std::size_t count) {
    return three_tokens().add_string_array("tokenizer.ggml.merges", std::vector<std::string>(count, "a b"));
  };
  EXPECT_TRUE(read(merges(48)).has_value());
  expect_refused(merges(49), "tokenizer.ggml.merges", "holds 49 merges for 3 tokens");
}

TEST(VocabularyReader, AVocabularyMayReachItsCapAndNoFurther) {
  const auto vocabulary_of = [](std::uint64_t count) {
    GgufWriter writer;
    writer.add_string("tokenizer.ggml.model", "gpt2");
    writer.add_raw_array("tokenizer.ggml.tokens", test::GgufType::kString, count,
                         std::vector<std::byte>(count * 8));
    return writer;
  };
  EXPECT_TRUE(read(vocabulary_of(kMaxVocabularySize)).has_value());
  const auto more = read(vocabulary_of(kMaxVocabularySize + 1));
  ASSERT_FALSE(more.has_value());
  EXPECT_EQ(more.error().subject, "tokenizer.ggml.tokens");
  EXPECT_NE(more.error().message.find("claims 4194305 strings; at most 4194304"), std::string::npos)
      << more.error().message;
}

// 64-bit FNV-1a over each string's length (eight bytes) and bytes: as make_gguf.py computes it.
std::uint64_t fnv1a(const std::vector<std::string>& strings) {
  std::uint64_t hash = 0xcbf29ce484222325u;
  const auto add = [&](unsigned byte) { hash = (hash ^ byte) * 0x100000001b3u; };
  for (const std::string& string : strings) {
    for (int i = 0; i < 8; ++i) add(static_cast<unsigned>(string.size() >> (8 * i)) & 255u);
    for (const char c : string) add(static_cast<unsigned char>(c));
  }
  return hash;
}

TEST(VocabularyReader, TheDefaultModelsVocabularyIsThatOfThePackageGguf) {
  if (!std::filesystem::exists(default_model_path())) GTEST_SKIP() << "the default model is not here";
  std::ifstream golden_file(test::source_folder() / "tests/golden/gguf.json");
  const nlohmann::json golden = nlohmann::json::parse(golden_file);
  const auto file = GgufFile::open(default_model_path());
  ASSERT_TRUE(file.has_value()) << file.error().message;
  const auto vocabulary = file->read_vocabulary();
  ASSERT_TRUE(vocabulary.has_value()) << vocabulary.error().message;
  EXPECT_EQ(vocabulary->tokens.size(), golden["tokens"]["count"].get<std::size_t>());
  EXPECT_EQ(fnv1a(vocabulary->tokens), golden["tokens"]["fnv1a"].get<std::uint64_t>());
  EXPECT_EQ(vocabulary->merges.size(), golden["merges"]["count"].get<std::size_t>());
  EXPECT_EQ(fnv1a(vocabulary->merges), golden["merges"]["fnv1a"].get<std::uint64_t>());
  std::vector<int> special;
  for (std::size_t i = 0; i < vocabulary->kinds.size(); ++i) {
    if (vocabulary->kinds[i] != TokenKind::kNormal) special.push_back(static_cast<int>(i));
  }
  EXPECT_EQ(special, golden["token_types"]["special"].get<std::vector<int>>());
  EXPECT_EQ(vocabulary->eos_token_id, 2);
  EXPECT_EQ(vocabulary->chat_template, golden["scalars"]["tokenizer.chat_template"].get<std::string>());
}

}  // namespace
}  // namespace octavo::model
