// The part of Markdown that language models write: paragraphs, headings, lists, quotes, fenced code, bold,
// italic and inline code. Text is never changed: a block and a span are byte ranges of it. A line break stays
// a line break.
//
// Parsing is linear in the text, and a block can be parsed knowing only where it begins. So text that grows
// at its end needs its last block parsed again and nothing before it.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace octavo::ui {

enum class BlockKind : std::uint8_t { kParagraph, kHeading, kListItem, kQuote, kCode, kRule };

struct TextRange {
  std::uint32_t begin = 0;
  std::uint32_t end = 0;
};

struct MarkdownBlock {
  BlockKind kind = BlockKind::kParagraph;
  TextRange source = {};   // with markers and fences
  TextRange content = {};  // what is shown; line breaks inside count
  TextRange marker = {};   // of a list item: "-" or "12."; of code: the language after the fence
  std::int32_t level = 0;  // heading: 1..6; list item: depth of indentation from 0
};

enum class SpanStyle : std::uint8_t { kPlain, kBold, kItalic, kCode };

struct TextSpan {
  TextRange range;  // without the markers
  SpanStyle style = SpanStyle::kPlain;
};

// Appends the blocks of text[from, end). `from` is where a block begins, or 0.
void parse_blocks(std::string_view text, std::uint32_t from, std::vector<MarkdownBlock>& blocks);

// The spans of text[range], in order and without overlap.
std::vector<TextSpan> parse_spans(std::string_view text, TextRange range);

}  // namespace octavo::ui
