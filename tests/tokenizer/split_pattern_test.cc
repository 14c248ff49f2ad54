#include "engine/tokenizer/split_pattern.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "engine/base/text.h"
#include "engine/base/unicode_classes.h"
#include "tests/tokenizer/cpu_time.h"
#include "tests/tokenizer/golden.h"

namespace octavo::tokenizer {
namespace {

constexpr const char* kNames[] = {"gpt-2",          "smollm",      "llama-bpe", "qwen2",
                                  "qwen35",         "gpt-4o",      "tekken",    "deepseek-llm",
                                  "deepseek-coder", "deepseek-v3", "falcon"};

std::vector<std::size_t> split(SplitPattern pattern, std::string_view text) {
  std::vector<std::size_t> lengths;
  PieceCutter cutter(pattern, text);
  for (auto piece = cutter.next(); !piece.empty(); piece = cutter.next()) lengths.push_back(piece.size());
  return lengths;
}

TEST(SplitPattern, EveryTextSplitsAsInHuggingFaceTokenizers) {
  const nlohmann::json golden = load_golden("tokenizer_splits.json");
  ASSERT_GT(golden.size(), 300u);
  for (const char* name : kNames) {
    const auto rule = find_split_rule(name);
    ASSERT_TRUE(rule) << name;
    for (const auto& entry : golden) {
      const auto text = entry["text"].get<std::string>();
      EXPECT_EQ(split(rule->pattern, text), entry[name].get<std::vector<std::size_t>>())
          << name << ": " << entry["text"];
    }
  }
}

TEST(SplitPattern, FamiliesThatTookLlamasPatternTakeWordsWholeOrMergeThem) {
  for (const char* name : {"llama-bpe", "lfm2", "falcon-h1", "pixtral"}) {
    EXPECT_EQ(find_split_rule(name)->pattern, SplitPattern::kLlama3) << name;
    EXPECT_TRUE(find_split_rule(name)->whole_words) << name;
  }
  EXPECT_EQ(find_split_rule("dbrx")->pattern, SplitPattern::kLlama3);
  EXPECT_FALSE(find_split_rule("dbrx")->whole_words);
}

TEST(SplitPattern, AnUnknownNameIsRefusedWithTheKnownOnes) {
  const auto rule = find_split_rule("viking\n");
  ASSERT_FALSE(rule);
  EXPECT_EQ(rule.error().code, ErrorCode::kUnsupported);
  EXPECT_NE(rule.error().message.find("viking\\x0a"), std::string::npos);
  for (const char* part : kNames) EXPECT_NE(rule.error().message.find(part), std::string::npos) << part;
  EXPECT_EQ(find_split_rule("")->pattern, SplitPattern::kGpt2);
}

TEST(SplitPattern, InvalidBytesSplitAsTheReplacementCharacterDoes) {
  for (const char* name : kNames) {
    const SplitPattern pattern = find_split_rule(name)->pattern;
    const std::string text = "ab \xff\xfe 1\xe2\x82 z";
    std::vector<std::size_t> replaced;
    std::size_t begin = 0;
    for (const std::size_t length : split(pattern, text)) {
      replaced.push_back(sanitise_utf8(text.substr(begin, length)).size());
      begin += length;
    }
    EXPECT_EQ(replaced, split(pattern, "ab \ufffd\ufffd 1\ufffd z")) << name;
  }
}

// Reading a megabyte of anything from many places takes no longer than a few times reading it once.
TEST(SplitPattern, EveryPatternIsLinear) {
  for (const char* name : kNames) {
    for (const char* part :
         {"a",      "A",    " ",       "\n", "\t", "1",         "!",       "'",   "\u0301", "\u4f60",
          "\u3000", "\x01", "A\u0301", "a ", " 1", "\x01\x02 ", "\u4f60A", "/\n", "\u00a0", "\ud7a3"}) {
      std::string text;
      while (text.size() < (1 << 19)) text += part;
      const double begin = cpu_seconds();
      std::size_t total = 0;
      for (const std::size_t length : split(find_split_rule(name)->pattern, text)) total += length;
      EXPECT_EQ(total, text.size());
      EXPECT_LT(cpu_seconds() - begin, 5.0) << name << " " << part;
    }
  }
}

TEST(UnicodeClasses, EveryCodePointHasTheCategoryOfTheRegularExpressions) {
  const nlohmann::json golden = load_golden("tokenizer_classes.json");
  const std::pair<const char*, Category> names[] = {
      {"Lu", Category::kLu}, {"Ll", Category::kLl}, {"Lt", Category::kLt},
      {"Lm", Category::kLm}, {"Lo", Category::kLo}, {"M", Category::kM},
      {"P", Category::kP},   {"S", Category::kS},   {"number", Category::kN}};
  std::vector<Category> expected(0x110000, Category::kOther);
  for (const auto& [name, category] : names) {
    for (const auto& range : golden[name]) {
      for (std::size_t c = range[0].get<std::size_t>(); c <= range[1].get<std::size_t>(); ++c)
        expected[c] = category;
    }
  }
  for (std::size_t c = 0; c < expected.size(); ++c) {
    if (c >= 0xd800 && c <= 0xdfff) continue;
    EXPECT_EQ(categorise(static_cast<char32_t>(c)), expected[c]) << std::hex << c;
  }
}

// Every code point, against the ranges that Oniguruma matches for \p{L}, \p{N} and \s.
TEST(UnicodeClasses, EveryCodePointHasTheClassOfTheRegularExpressions) {
  const nlohmann::json golden = load_golden("tokenizer_classes.json");
  std::vector<CharacterClass> expected(0x110000, CharacterClass::kOther);
  const auto fill = [&](const char* name, CharacterClass kind) {
    for (const auto& range : golden[name]) {
      for (std::size_t c = range[0].get<std::size_t>(); c <= range[1].get<std::size_t>(); ++c)
        expected[c] = kind;
    }
  };
  fill("letter", CharacterClass::kLetter);
  fill("number", CharacterClass::kNumber);
  fill("space", CharacterClass::kSpace);
  for (std::size_t c = 0; c < expected.size(); ++c) {
    if (c >= 0xd800 && c <= 0xdfff) continue;
    ASSERT_EQ(classify(static_cast<char32_t>(c)), expected[c]) << std::hex << c;
  }
}

}  // namespace
}  // namespace octavo::tokenizer
