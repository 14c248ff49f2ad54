#include "engine/tokenizer/split_pattern.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "engine/tokenizer/unicode_classes.h"
#include "tests/tokenizer/golden.h"

namespace octavo::tokenizer {
namespace {

std::vector<std::size_t> split(SplitPattern pattern, std::string_view text) {
  std::vector<std::size_t> lengths;
  for (std::size_t begin = 0; begin < text.size(); begin += lengths.back()) {
    lengths.push_back(piece_length(pattern, text, begin));
    if (lengths.back() == 0) break;
  }
  return lengths;
}

TEST(SplitPattern, EveryTextSplitsAsInHuggingFaceTokenizers) {
  const nlohmann::json golden = load_golden("tokenizer_splits.json");
  ASSERT_GT(golden.size(), 300u);
  for (const char* name : {"gpt-2", "smollm", "llama-bpe", "qwen2"}) {
    const auto pattern = find_split_pattern(name);
    ASSERT_TRUE(pattern) << name;
    for (const auto& entry : golden) {
      const auto text = entry["text"].get<std::string>();
      EXPECT_EQ(split(*pattern, text), entry[name].get<std::vector<std::size_t>>())
          << name << ": " << entry["text"];
    }
  }
}

TEST(SplitPattern, AnUnknownNameIsRefusedWithTheKnownOnes) {
  const auto pattern = find_split_pattern("tekken\n");
  ASSERT_FALSE(pattern);
  EXPECT_EQ(pattern.error().code, ErrorCode::kUnsupported);
  for (const char* part : {"tekken\\x0a", "gpt-2", "smollm", "llama-bpe", "qwen2"}) {
    EXPECT_NE(pattern.error().message.find(part), std::string::npos) << part;
  }
  EXPECT_EQ(*find_split_pattern(""), SplitPattern::kGpt2);
}

TEST(SplitPattern, InvalidBytesSplitAsTheReplacementCharacterDoes) {
  for (const SplitPattern pattern :
       {SplitPattern::kGpt2, SplitPattern::kSmolLm, SplitPattern::kLlama3, SplitPattern::kQwen2}) {
    const std::vector<std::size_t> lengths = split(pattern, "ab \xff\xfe 1\xe2\x82 z");
    const std::vector<std::size_t> valid = split(pattern, "ab \ufffd\ufffd 1\ufffd z");
    EXPECT_EQ(lengths.size(), valid.size());
    std::size_t total = 0;
    for (const std::size_t length : lengths) total += length;
    EXPECT_EQ(total, 11u);
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
