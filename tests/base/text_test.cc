#include "engine/base/text.h"

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/support/paths.h"

namespace octavo {
namespace {

std::string from_hex(const std::string& hex) {
  std::string bytes;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2)
    bytes.push_back(static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16)));
  return bytes;
}

TEST(Text, InvalidBytesAreReplacedAsPythonReplacesThem) {
  std::ifstream file(test::source_folder() / "tests/golden/text_utf8.json");
  const nlohmann::json golden = nlohmann::json::parse(file);
  ASSERT_GT(golden.size(), 500u);
  for (const auto& entry : golden) {
    EXPECT_EQ(sanitise_utf8(from_hex(entry[0].get<std::string>())), entry[1].get<std::string>()) << entry[0];
  }
}

TEST(Text, EveryCodePointSurvivesTheRoundTrip) {
  for (char32_t c = 0; c <= 0x10ffff; ++c) {
    if (c >= 0xd800 && c <= 0xdfff) continue;
    std::string text;
    append_utf8(text, c);
    const CodePoint decoded = decode_utf8(text, 0);
    ASSERT_TRUE(decoded.valid && decoded.value == c && decoded.length == text.size())
        << static_cast<unsigned>(c);
    // Each start of it could still become a character.
    for (std::size_t cut = 1; cut < text.size(); ++cut) {
      ASSERT_EQ(incomplete_utf8_suffix("a" + text.substr(0, cut)), cut) << static_cast<unsigned>(c);
    }
    ASSERT_EQ(incomplete_utf8_suffix(text), 0u);
  }
}

TEST(Text, WhatCannotBecomeACharacterIsNoIncompleteSuffix) {
  for (const char* text : {"", "a", "\x80", "\xff", "\xc0", "\xed\xa0", "\xe0\x80", "\xf4\x90", "\xf0\x80",
                           "\xe2\x82\xac\x80"}) {
    EXPECT_EQ(incomplete_utf8_suffix(text), 0u) << text;
  }
  EXPECT_EQ(incomplete_utf8_suffix("\xff\xe2\x82"), 2u);
}

TEST(Text, MessagesShowControlsAndInvalidBytesAsEscapes) {
  EXPECT_EQ(escape_for_message("a\nb\x1b[31m\x7f"), "a\\x0ab\\x1b[31m\\x7f");
  EXPECT_EQ(escape_for_message("\u0085\u2028\u202ex\u200f"), "\\u{85}\\u{2028}\\u{202e}x\\u{200f}");
  EXPECT_EQ(escape_for_message("\xff\xe2\x82!"), "\\xff\\xe2\\x82!");
  EXPECT_EQ(escape_for_message("\u4f60\U0001f600"), "\u4f60\U0001f600");
  EXPECT_EQ(escape_for_message("abcdef", 3), "abc...");
}

TEST(Text, TerminalsGetNoControlSequences) {
  EXPECT_EQ(strip_terminal_controls("a\tb\n\x1b]0;t\x07\u009b31m\r\u202eabc\u2069"), "a\tb\n]0;t31mabc");
  EXPECT_EQ(strip_terminal_controls("\xff"), "\ufffd");
}

}  // namespace
}  // namespace octavo
