#include "ui/widgets/markdown.h"

#include <gtest/gtest.h>

#include <chrono>
#include <random>
#include <string>
#include <vector>

namespace octavo::ui {
namespace {

std::vector<MarkdownBlock> blocks_of(std::string_view text) {
  std::vector<MarkdownBlock> blocks;
  parse_blocks(text, 0, blocks);
  return blocks;
}

std::string_view cut(std::string_view text, TextRange range) {
  return text.substr(range.begin, range.end - range.begin);
}

struct Piece {
  std::string text;
  SpanStyle style;
  bool operator==(const Piece&) const = default;
};

std::vector<Piece> pieces_of(const std::string& text) {
  std::vector<Piece> pieces;
  for (const TextSpan& span : parse_spans(text, {0, static_cast<std::uint32_t>(text.size())})) {
    pieces.push_back({std::string(cut(text, span.range)), span.style});
  }
  return pieces;
}

TEST(Markdown, BlocksAreFoundWithTheirContents) {
  const std::string text =
      "Intro line\nsecond line\n\n## Head\n- one\n  - two\n12. twelve\n> said\n```cpp\nint a;\n\nint "
      "b;\n```\nafter\n---\n";
  const auto blocks = blocks_of(text);
  ASSERT_EQ(blocks.size(), 9u);
  EXPECT_EQ(blocks[0].kind, BlockKind::kParagraph);
  EXPECT_EQ(cut(text, blocks[0].content), "Intro line\nsecond line");
  EXPECT_EQ(blocks[1].kind, BlockKind::kHeading);
  EXPECT_EQ(blocks[1].level, 2);
  EXPECT_EQ(cut(text, blocks[1].content), "Head");
  EXPECT_EQ(blocks[2].level, 0);
  EXPECT_EQ(blocks[3].level, 1);
  EXPECT_EQ(cut(text, blocks[3].content), "two");
  EXPECT_EQ(cut(text, blocks[4].marker), "12.");
  EXPECT_EQ(blocks[5].kind, BlockKind::kQuote);
  EXPECT_EQ(blocks[6].kind, BlockKind::kCode);
  EXPECT_EQ(cut(text, blocks[6].marker), "cpp");
  EXPECT_EQ(cut(text, blocks[6].content), "int a;\n\nint b;");
  EXPECT_EQ(cut(text, blocks[7].content), "after");
  EXPECT_EQ(blocks[8].kind, BlockKind::kRule);
}

TEST(Markdown, FenceWithoutAnEndRunsToTheEndOfTheText) {
  const std::string text = "```\ncode\nmore";
  const auto blocks = blocks_of(text);
  ASSERT_EQ(blocks.size(), 1u);
  EXPECT_EQ(cut(text, blocks[0].content), "code\nmore");
}

TEST(Markdown, EmphasisAndCodeAreSpans) {
  EXPECT_EQ(pieces_of("a **bold** `x*y` *it* end"), (std::vector<Piece>{{"a ", SpanStyle::kPlain},
                                                                        {"bold", SpanStyle::kBold},
                                                                        {" ", SpanStyle::kPlain},
                                                                        {"x*y", SpanStyle::kCode},
                                                                        {" ", SpanStyle::kPlain},
                                                                        {"it", SpanStyle::kItalic},
                                                                        {" end", SpanStyle::kPlain}}));
}

TEST(Markdown, MarkersWithoutAPartnerAreText) {
  for (const std::string text : {"2 * 3 * 4", "snake_case_name", "**open", "a ` b", "****", "* *"}) {
    std::string joined;
    for (const Piece& piece : pieces_of(text)) joined += piece.text;
    EXPECT_EQ(joined, text);
  }
}

// What a stream shows while it grows piece by piece is what the whole text shows.
TEST(Markdown, ParsingTheLastBlockAgainEqualsParsingEverything) {
  std::mt19937 random(20'261'121);
  const std::string alphabet[] = {"word ", "\n", "\n\n", "- item", "1. item", "```\n", "```",
                                  "**",    "`",  "# ",   "> ",     "x",       "    "};
  for (int round = 0; round < 200; ++round) {
    std::string text;
    std::vector<MarkdownBlock> grown;
    for (int i = 0; i < 60; ++i) {
      text += alphabet[random() % std::size(alphabet)];
      const std::uint32_t from = grown.empty() ? 0 : grown.back().source.begin;
      if (!grown.empty()) grown.pop_back();
      parse_blocks(text, from, grown);
    }
    const auto whole = blocks_of(text);
    ASSERT_EQ(grown.size(), whole.size()) << "round " << round << ": " << text;
    for (std::size_t i = 0; i < whole.size(); ++i) {
      EXPECT_EQ(grown[i].kind, whole[i].kind) << text;
      EXPECT_EQ(grown[i].content.begin, whole[i].content.begin) << text;
      EXPECT_EQ(grown[i].content.end, whole[i].content.end) << text;
    }
  }
}

TEST(Markdown, SpansCoverTheTextInOrderAndOnlyDropMarkers) {
  std::mt19937 random(7);
  const std::string alphabet[] = {"a", "b ", "*", "**", "_", "__", "`", "\n", "\xc3\xa4"};
  for (int round = 0; round < 500; ++round) {
    std::string text;
    for (int i = 0; i < 40; ++i) text += alphabet[random() % std::size(alphabet)];
    std::uint32_t at = 0;
    for (const TextSpan& span : parse_spans(text, {0, static_cast<std::uint32_t>(text.size())})) {
      ASSERT_LE(at, span.range.begin) << text;
      ASSERT_LT(span.range.begin, span.range.end) << text;
      for (std::uint32_t i = at; i < span.range.begin; ++i) {
        ASSERT_TRUE(text[i] == '*' || text[i] == '_' || text[i] == '`') << text;
      }
      at = span.range.end;
    }
  }
}

TEST(Markdown, MegabytesOfMarkersTakeLinearTime) {
  for (const std::string unit : {"**a ", "*a", "_a ", "`", "> ", "- \n", "#", "```\n", "__a b"}) {
    std::string text;
    while (text.size() < (1u << 20)) text += unit;
    const auto begin = std::chrono::steady_clock::now();
    for (const MarkdownBlock& block : blocks_of(text)) parse_spans(text, block.content);
    const auto elapsed = std::chrono::steady_clock::now() - begin;
    EXPECT_LT(elapsed, std::chrono::seconds(3)) << unit;
  }
}

}  // namespace
}  // namespace octavo::ui
