#include "ui/widgets/markdown.h"

#include <gtest/gtest.h>

#include <chrono>
#include <random>
#include <string>
#include <vector>

namespace octavo::ui {
namespace {

MarkdownDocument document_of(const std::string& text) {
  MarkdownDocument document;
  document.update(text, TextFormat::kMarkdown);
  return document;
}

std::string shown(const MarkdownDocument& document, std::string_view text, std::uint32_t first,
                  std::uint32_t count) {
  std::string result;
  for (std::uint32_t i = first; i < first + count; ++i) result += document.shown(text, document.spans()[i]);
  return result;
}

// One line a block: kind, containers, marker, what is shown.
std::string outline(const MarkdownDocument& document, std::string_view text) {
  constexpr const char* kKinds[] = {"p", "h", "code", "row", "rule"};
  std::string result;
  for (const MarkdownBlock& block : document.blocks()) {
    result += kKinds[static_cast<int>(block.kind)];
    if (block.level > 0) result += std::to_string(block.level);
    for (std::size_t i = 0; i < block.num_containers; ++i)
      result += block.containers[i] == ContainerKind::kQuote ? ">" : "-";
    if (block.marker == MarkerKind::kNumber) result += std::to_string(block.number) + block.delimiter;
    if (block.marker == MarkerKind::kBullet) result += "*";
    if (block.marker == MarkerKind::kTaskOpen) result += "[ ]";
    if (block.marker == MarkerKind::kTaskDone) result += "[x]";
    result += ":" + shown(document, text, block.first_span, block.num_spans) + "\n";
  }
  return result;
}

std::string outline(const std::string& text) { return outline(document_of(text), text); }

struct Piece {
  std::string text;
  std::uint8_t style = 0;
  std::string link = {};
  bool operator==(const Piece&) const = default;
};

std::vector<Piece> pieces_of(const std::string& text) {
  const MarkdownDocument document = document_of(text);
  std::vector<Piece> pieces;
  for (const TextSpan& span : document.spans()) {
    const auto link = span.link < 0 ? std::string() : document.links()[static_cast<std::size_t>(span.link)];
    pieces.push_back({std::string(document.shown(text, span)), span.style, link});
  }
  return pieces;
}

using namespace span_style;

TEST(Markdown, BlocksAreFoundWithTheirContents) {
  const std::string text =
      "Intro line\nsecond line\n\n## Head\n- one\n  - two\n\n12. twelve\n> said\n\n```cpp\nint a;\n\nint "
      "b;\n```\nafter\n\n---\n";
  EXPECT_EQ(
      outline(text),
      "p:Intro line\nsecond line\nh2:Head\np-*:one\np--*:two\np-12.:twelve\np>:said\ncode:int a;\n\nint b;\n"
      "p:after\nrule:\n");
  const MarkdownDocument document = document_of(text);
  const TextRange language = document.blocks()[6].language;
  EXPECT_EQ(text.substr(language.begin, language.end - language.begin), "cpp");
}

TEST(Markdown, ListsNestAndKeepTheirNumbersAndTasks) {
  EXPECT_EQ(outline("3. three\n4. four\n   - inner\n     1. deep\n5. five\n"),
            "p-3.:three\np-4.:four\np--*:inner\np---1.:deep\np-5.:five\n");
  EXPECT_EQ(outline("- [ ] open\n- [x] done\n"), "p-[ ]:open\np-[x]:done\n");
  EXPECT_EQ(outline("- a\n\n  more of a\n\n  ```\n  code\n  ```\n- b\n"),
            "p-*:a\np-:more of a\ncode-:code\np-*:b\n");
}

TEST(Markdown, QuotesNestAndHoldBlocks) {
  EXPECT_EQ(outline("> a\n> > b\n> > ```sh\n> > ls\n> > ```\n"), "p>:a\np>>:b\ncode>>:ls\n");
}

TEST(Markdown, TablesHaveRowsOfAlignedCells) {
  const std::string text = "| a | b | c |\n|:--|:-:|--:|\n| 1 | **2** | 3 |\n| x | | |\n";
  const MarkdownDocument document = document_of(text);
  ASSERT_EQ(document.blocks().size(), 3u);
  EXPECT_TRUE(document.blocks()[0].header);
  EXPECT_FALSE(document.blocks()[1].header);
  ASSERT_EQ(document.blocks()[1].num_cells, 3u);
  const TableCell* cells = &document.cells()[document.blocks()[1].first_cell];
  EXPECT_EQ(cells[0].alignment, CellAlignment::kLeft);
  EXPECT_EQ(cells[1].alignment, CellAlignment::kCentre);
  EXPECT_EQ(cells[2].alignment, CellAlignment::kRight);
  EXPECT_EQ(shown(document, text, cells[1].first_span, cells[1].num_spans), "2");
  EXPECT_EQ(document.spans()[cells[1].first_span].style, kBold);
  EXPECT_EQ(plain_text(text, TextFormat::kMarkdown, {0, static_cast<std::uint32_t>(text.size())}),
            "a\tb\tc\n1\t2\t3\nx\t\t");
}

TEST(Markdown, FenceWithoutAnEndRunsToTheEndOfTheText) {
  EXPECT_EQ(outline("```\ncode\nmore"), "code:code\nmore\n");
}

TEST(Markdown, IndentedCodeKeepsItsIndentation) {
  EXPECT_EQ(outline("a\n\n    one\n      two\n"), "p:a\ncode:one\n  two\n");
}

TEST(Markdown, EmphasisAndCodeAreSpans) {
  EXPECT_EQ(pieces_of("a **bold** `x*y` *it* ~~gone~~ ***both***"),
            (std::vector<Piece>{{"a "},
                                {"bold", kBold},
                                {" "},
                                {"x*y", kCode},
                                {" "},
                                {"it", kItalic},
                                {" "},
                                {"gone", kStrike},
                                {" "},
                                {"both", kBold | kItalic}}));
}

TEST(Markdown, LineBreaksStayLineBreaks) { EXPECT_EQ(outline("one\ntwo  \nthree"), "p:one\ntwo\nthree\n"); }

TEST(Markdown, OnlyOpenableAddressesBecomeLinks) {
  EXPECT_EQ(pieces_of("[x](https://a.example/b) <mailto:a@b.example> https://c.example"),
            (std::vector<Piece>{{"x", 0, "https://a.example/b"},
                                {" "},
                                {"mailto:a@b.example", 0, "mailto:a@b.example"},
                                {" "},
                                {"https://c.example", 0, "https://c.example"}}));
  for (const std::string address :
       {"javascript:alert(1)", "file:///etc/passwd", "data:text/html,x", "notes.md", "smb://x/y"}) {
    EXPECT_EQ(pieces_of("[x](" + address + ")"), (std::vector<Piece>{{"x"}, {" (" + address + ")", kQuiet}}))
        << address;
  }
  EXPECT_TRUE(is_openable("HTTPS://A.example"));
  for (const char* address : {"", "http:", "https://", "https://a b", "https://a\nb", "https://a\u202eb",
                              "ftp://a", " https://a"}) {
    EXPECT_FALSE(is_openable(address)) << address;
  }
}

TEST(Markdown, ImagesAreTextWithTheirAddress) {
  EXPECT_EQ(outline("see ![a cat](http://evil.example/x.png) here"),
            "p:see [image: a cat] (http://evil.example/x.png) here\n");
}

TEST(Markdown, HtmlIsText) {
  EXPECT_EQ(outline("<script>alert(1)</script>\n\n<img src=x onerror=y> <b>bold</b>"),
            "p:<script>alert(1)</script>\np:<img src=x onerror=y> <b>bold</b>\n");
}

TEST(Markdown, EntitiesAreShownAsTheirCharactersUnlessTheyHide) {
  EXPECT_EQ(outline("a &amp; b &#8364; &#x202e; &unknown;"), "p:a & b € [RLO] &unknown;\n");
}

TEST(Markdown, DefinitionsAreShownAndNotSwallowed) {
  EXPECT_EQ(outline("[1]: http://a.example\n\nsee [1]"), "p:[1]: http://a.example\np:see [1]\n");
}

TEST(Markdown, MarkersWithoutAPartnerAreText) {
  for (const std::string text : {"2 * 3 * 4", "snake_case_name", "**open", "a ` b", "~~x"})
    EXPECT_EQ(outline(text), "p:" + text + "\n");
}

std::string random_text(std::mt19937& random, int count) {
  const std::string alphabet[] = {"word ",  "\n",          "\n",          "\n\n",
                                  "- item", "1. item",     "2) x",        "```\n",
                                  "```",    "~~~\n",       "**",          "`",
                                  "# ",     "> ",          "x",           "  ",
                                  "    ",   "| a | b |\n", "|---|---|\n", "[l](http://x)",
                                  "\t",     "- [ ] t",     "---\n",       "\r\n",
                                  "<b>",    "\\[",         "\\]\n",       "\\(a_1 * b\\)",
                                  "$$",     "$$\n"};
  std::string text;
  for (int i = 0; i < count; ++i) text += alphabet[random() % std::size(alphabet)];
  return text;
}

// What a stream shows while it grows piece by piece is what the whole text shows.
TEST(Markdown, GrowingTextShowsWhatTheWholeTextShows) {
  constexpr unsigned kSeed = 20'261'121;
  std::mt19937 random(kSeed);
  for (int round = 0; round < 400; ++round) {
    const std::string whole = random_text(random, 60);
    MarkdownDocument grown;
    for (std::size_t size = 1 + random() % 7; size < whole.size(); size += 1 + random() % 7)
      grown.update(std::string_view(whole).substr(0, size), TextFormat::kMarkdown);
    grown.update(whole, TextFormat::kMarkdown);
    ASSERT_EQ(outline(grown, whole), outline(whole))
        << "seed " << kSeed << ", round " << round << ": " << whole;
  }
}

TEST(Markdown, SpansStandInOrderAndOnlyDropMarkers) {
  constexpr unsigned kSeed = 7;
  std::mt19937 random(kSeed);
  for (int round = 0; round < 400; ++round) {
    const std::string text = random_text(random, 50);
    const MarkdownDocument document = document_of(text);
    std::uint32_t at = 0;
    for (const TextSpan& span : document.spans()) {
      ASSERT_LE(at, span.range.begin) << "round " << round << ": " << text;
      ASSERT_LE(span.range.begin, span.range.end);
      ASSERT_LE(span.range.end, text.size());
      at = span.range.end;
    }
    std::string letters;
    for (const TextSpan& span : document.spans()) letters += document.shown(text, span);
    for (const char c : {'w', 'x'}) {  // of "word", "x"
      const auto in_text = std::count(text.begin(), text.end(), c);
      EXPECT_LE(std::count(letters.begin(), letters.end(), c), in_text);
    }
  }
}

TEST(Markdown, GrowthCostsTheOpenChunkHoweverLongTheText) {
  for (const std::string unit : {"A closed paragraph of some words.\n\n", "- an item of a list\n",
                                 "one line of a very long paragraph\n", "x"}) {
    std::uint64_t cost[2];
    for (int i = 0; i < 2; ++i) {
      std::string text;
      const std::size_t size = i == 0 ? 50'000 : 1'000'000;
      while (text.size() < size) text += unit;
      MarkdownDocument document;
      document.update(text, TextFormat::kMarkdown);
      const std::uint64_t before = document.num_bytes_parsed();
      for (int word = 0; word < 100; ++word) {
        text += "word ";
        document.update(text, TextFormat::kMarkdown);
      }
      cost[i] = (document.num_bytes_parsed() - before) / 100;
    }
    EXPECT_LE(cost[0], 2 * MarkdownDocument::kLongestChunk) << unit;
    EXPECT_LE(cost[1], 2 * MarkdownDocument::kLongestChunk) << unit;
  }
}

TEST(Markdown, LongCodeIsReadInPiecesAndCopiedWhole) {
  std::string code;
  for (int i = 0; i < 5000; ++i) code += "line " + std::to_string(i) + "\n";
  const std::string text = "before\n\n```c\n" + code + "```\nafter\n";
  const MarkdownDocument document = document_of(text);
  ASSERT_GT(document.blocks().size(), 4u);
  EXPECT_TRUE(document.blocks()[2].continues);
  code.pop_back();
  EXPECT_EQ(document.code_of(text, 1), code);
  EXPECT_EQ(document.code_of(text, 3), code);
  EXPECT_EQ(outline("```\na\n```\n```\nb\n```"), "code:a\ncode:b\n");
}

TEST(Markdown, MegabytesOfMarkersTakeLinearTime) {
  for (const std::string unit :
       {"**a ",     "*a",  "_a ",      "`",           "> ",      "- \n",   "#",   "```\n",   "__a b",
        "[",        "![",  "[a](",     "](",          "<",       "&",      "~~a", "|",       "|-|\n",
        "a|b\n",    "\\",  "*a_",      "<a href=\"",  "http://", "- ",     "1. ", "1. - + ", "> 1. ",
        "[a]: b\n", ">\n", "    x\n",  "`` ` ",       "a**b",    "![a](<", "\\(", "\\[\n",   "$$ ",
        "$$\n",     "$a ", "\\(a\\) ", "$$\na\n$$\n", "\\"}) {
    std::string text;
    while (text.size() < (1u << 20)) text += unit;
    const auto begin = std::chrono::steady_clock::now();
    const MarkdownDocument document = document_of(text);
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    EXPECT_LT(seconds, 3) << unit;
    if (seconds > 0.5) std::printf("[ measured ] 1 MB of %s: %.2f s\n", unit.c_str(), seconds);
  }
}

TEST(Markdown, NestingOfTenThousandIsCutAndReadable) {
  const std::string quotes = std::string(10'000, '>') + " deep";
  const MarkdownDocument document = document_of(quotes);
  ASSERT_EQ(document.blocks().size(), 1u);
  EXPECT_EQ(document.blocks()[0].num_containers, MarkdownBlock::kDeepest);
  EXPECT_NE(outline(document, quotes).find("deep"), std::string::npos);
  EXPECT_NE(outline(std::string(10'000, '[') + "x" + std::string(10'000, ']')).find('x'), std::string::npos);
}

TEST(Markdown, ZeroBytesAndBrokenCharactersAreKept) {
  const std::string text("a\0b \xff\xfe c", 9);
  EXPECT_EQ(outline(text), "p:" + text + "\n");
}

TEST(Copying, PlainTextIsWhatReadersSee) {
  const std::string text =
      "# Head\n\nSome **bold** [link](http://x.example) text.\n\n- one\n- two\n  - inner\n\n1. first\n\n> "
      "said\n\n```c\nint a;\n```\n";
  const TextRange all{0, static_cast<std::uint32_t>(text.size())};
  EXPECT_EQ(plain_text(text, TextFormat::kMarkdown, all),
            "Head\n\nSome bold link text.\n\n- one\n- two\n  - inner\n1. first\n\nsaid\n\nint a;");
  EXPECT_EQ(markdown_text(text, TextFormat::kMarkdown, all), text);
}

TEST(Copying, PartsOfBlocksComeWithoutMarkersAndWholeOnesWithThem) {
  const std::string text = "Some **bold** text.\n\n```c\nint a;\n```\n";
  const auto at = [&](std::string_view word) { return static_cast<std::uint32_t>(text.find(word)); };
  EXPECT_EQ(plain_text(text, TextFormat::kMarkdown, {at("me"), at("text")}), "me bold ");
  EXPECT_EQ(markdown_text(text, TextFormat::kMarkdown, {at("me"), at("text")}), "me **bold** ");
  EXPECT_EQ(markdown_text(text, TextFormat::kMarkdown, {at("int"), at("int") + 6}), "```c\nint a;\n```\n");
  EXPECT_EQ(plain_text(text, TextFormat::kMarkdown, {at("int"), at("int") + 3}), "int");
}

TEST(Copying, PlainMessagesAreCopiedAsTheyStand) {
  const std::string text = "# no *markdown*\n\n  here\n";
  const TextRange all{0, static_cast<std::uint32_t>(text.size())};
  EXPECT_EQ(plain_text(text, TextFormat::kPlain, all), text);
  EXPECT_EQ(markdown_text(text, TextFormat::kPlain, all), text);
}

}  // namespace
}  // namespace octavo::ui
