#include "ui/widgets/markdown.h"

#include <algorithm>
#include <array>
#include <cstddef>

namespace octavo::ui {
namespace {

constexpr std::int32_t kDeepestList = 6;

bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_word(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
         (static_cast<unsigned char>(c) & 0x80u) != 0;
}

std::uint32_t narrow(std::size_t offset) { return static_cast<std::uint32_t>(offset); }

// A line of the text without its line break.
struct Line {
  std::size_t begin = 0, end = 0, next = 0;
  bool closed = false;     // ends with a line break: nothing can be added to it any more
  std::size_t indent = 0;  // columns

  std::size_t first(std::string_view text) const {
    std::size_t at = begin;
    while (at < end && is_blank(text[at])) ++at;
    return at;
  }
  bool empty(std::string_view text) const { return first(text) == end; }
};

Line line_at(std::string_view text, std::size_t begin) {
  Line line{.begin = begin};
  const std::size_t found = text.find('\n', begin);
  line.closed = found != std::string_view::npos;
  line.end = line.closed ? found : text.size();
  line.next = line.closed ? found + 1 : text.size();
  for (std::size_t at = begin; at < line.end && is_blank(text[at]); ++at)
    line.indent += text[at] == '\t' ? 4 : 1;
  return line;
}

// What a line would begin.
struct Start {
  BlockKind kind = BlockKind::kParagraph;
  TextRange marker = {};
  std::size_t content = 0;
  std::int32_t level = 0;
};

std::size_t run_length(std::string_view text, std::size_t at, std::size_t end, char c) {
  std::size_t length = 0;
  while (at + length < end && text[at + length] == c) ++length;
  return length;
}

bool starts_list_item(std::string_view text, const Line& line, Start& start) {
  const std::size_t at = line.first(text);
  std::size_t marker_end = at;
  if (at < line.end && (text[at] == '-' || text[at] == '*' || text[at] == '+')) {
    marker_end = at + 1;
  } else {
    while (marker_end < line.end && is_digit(text[marker_end]) && marker_end - at < 9) ++marker_end;
    if (marker_end == at || marker_end == line.end || (text[marker_end] != '.' && text[marker_end] != ')'))
      return false;
    ++marker_end;
  }
  if (marker_end >= line.end || text[marker_end] != ' ') return false;
  std::size_t content = marker_end;
  while (content < line.end && is_blank(text[content])) ++content;
  start = {BlockKind::kListItem,
           {narrow(at), narrow(marker_end)},
           content,
           std::min(static_cast<std::int32_t>(line.indent / 2), kDeepestList)};
  return true;
}

bool starts_rule(std::string_view text, const Line& line) {
  const std::size_t at = line.first(text);
  if (!line.closed || line.end - at < 3) return false;
  const char c = text[at];
  if (c != '-' && c != '*' && c != '_') return false;
  return std::all_of(text.begin() + static_cast<std::ptrdiff_t>(at),
                     text.begin() + static_cast<std::ptrdiff_t>(line.end),
                     [c](char other) { return other == c || is_blank(other); });
}

Start start_of(std::string_view text, const Line& line) {
  const std::size_t at = line.first(text);
  Start start{.content = at};
  const std::size_t hashes = run_length(text, at, line.end, '#');
  const std::size_t ticks = run_length(text, at, line.end, '`');
  if (hashes >= 1 && hashes <= 6 && at + hashes < line.end && text[at + hashes] == ' ') {
    start.kind = BlockKind::kHeading;
    start.level = static_cast<std::int32_t>(hashes);
    start.content = at + hashes + 1;
  } else if (ticks >= 3) {
    start.kind = BlockKind::kCode;
    start.marker = {narrow(at + ticks), narrow(line.end)};
  } else if (starts_rule(text, line)) {
    start.kind = BlockKind::kRule;
  } else if (at < line.end && text[at] == '>') {
    start.kind = BlockKind::kQuote;
    start.content = std::min(at + 1 + (at + 1 < line.end && text[at + 1] == ' ' ? 1u : 0u), line.end);
  } else {
    starts_list_item(text, line, start);
  }
  return start;
}

// The end of a fenced block: its content's end, and where the text goes on.
void finish_code(std::string_view text, const Line& fence, MarkdownBlock& block) {
  std::size_t at = fence.next;
  block.content = {narrow(at), narrow(text.size())};
  while (at < text.size()) {
    const Line line = line_at(text, at);
    const std::size_t first = line.first(text);
    if (run_length(text, first, line.end, '`') >= 3) {
      block.content.end = narrow(at);
      at = line.next;
      break;
    }
    at = line.next;
  }
  block.source.end = narrow(at);
  if (block.content.end > block.content.begin && text[block.content.end - 1] == '\n') --block.content.end;
}

// Lines that go on with a paragraph or a list item: until an empty line or the start of something else.
void finish_text(std::string_view text, const Line& first, MarkdownBlock& block) {
  std::size_t end = first.end, at = first.next;
  while (at < text.size()) {
    const Line line = line_at(text, at);
    if (line.empty(text) || start_of(text, line).kind != BlockKind::kParagraph) break;
    end = line.end;
    at = line.next;
  }
  block.content.end = narrow(end);
  block.source.end = narrow(at);
}

MarkdownBlock parse_block(std::string_view text, const Line& line) {
  const Start start = start_of(text, line);
  MarkdownBlock block{.kind = start.kind,
                      .source = {narrow(line.begin), narrow(line.next)},
                      .content = {narrow(start.content), narrow(line.end)},
                      .marker = start.marker,
                      .level = start.level};
  switch (start.kind) {
    case BlockKind::kCode: finish_code(text, line, block); break;
    case BlockKind::kParagraph:
    case BlockKind::kListItem: finish_text(text, line, block); break;
    case BlockKind::kHeading:
    case BlockKind::kQuote:
    case BlockKind::kRule: break;
  }
  return block;
}

// Finds markers that open and close emphasis. For each marker it remembers that no closing one follows, so
// that text full of opening markers costs no more than any other.
class SpanParser {
 public:
  SpanParser(std::string_view text, TextRange range) : text_(text), at_(range.begin), end_(range.end) {}

  std::vector<TextSpan> parse() {
    std::size_t plain_begin = at_;
    while (at_ < end_) {
      const Marker* marker = marker_here();
      const std::size_t close = marker != nullptr ? find_close(*marker) : std::string_view::npos;
      if (close == std::string_view::npos) {
        at_ += marker != nullptr ? marker->text.size() : 1;
        continue;
      }
      add(plain_begin, at_, SpanStyle::kPlain);
      add(at_ + marker->text.size(), close, marker->style);
      at_ = plain_begin = close + marker->text.size();
    }
    add(plain_begin, end_, SpanStyle::kPlain);
    return std::move(spans_);
  }

 private:
  struct Marker {
    std::string_view text;
    SpanStyle style;
  };
  static constexpr std::array<Marker, 5> kMarkers = {{{"`", SpanStyle::kCode},
                                                      {"**", SpanStyle::kBold},
                                                      {"__", SpanStyle::kBold},
                                                      {"*", SpanStyle::kItalic},
                                                      {"_", SpanStyle::kItalic}}};

  const Marker* marker_here() const {
    const char c = text_[at_];
    if (c != '`' && c != '*' && c != '_') return nullptr;
    for (const Marker& marker : kMarkers) {
      if (text_.substr(at_, marker.text.size()) == marker.text && at_ + marker.text.size() <= end_)
        return &marker;
    }
    return nullptr;
  }

  bool can_open(const Marker& marker) const {
    const std::size_t next = at_ + marker.text.size();
    if (next >= end_) return false;
    if (marker.text[0] == '`') return true;
    const bool inside_word = marker.text[0] == '_' && at_ > 0 && is_word(text_[at_ - 1]);
    return !is_blank(text_[next]) && text_[next] != '\n' && text_[next] != marker.text[0] && !inside_word;
  }

  bool can_close(const Marker& marker, std::size_t at) const {
    if (marker.text[0] == '`') return true;
    const std::size_t next = at + marker.text.size();
    const bool inside_word = marker.text[0] == '_' && next < end_ && is_word(text_[next]);
    return !is_blank(text_[at - 1]) && text_[at - 1] != '\n' && !inside_word;
  }

  std::size_t find_close(const Marker& marker) {
    bool& hopeless = hopeless_[static_cast<std::size_t>(&marker - kMarkers.data())];
    if (hopeless || !can_open(marker)) return std::string_view::npos;
    const std::string_view inside = text_.substr(0, end_);
    for (std::size_t at = at_ + marker.text.size() + 1;; ++at) {
      at = inside.find(marker.text, at);
      if (at == std::string_view::npos) break;
      if (can_close(marker, at)) return at;
    }
    hopeless = true;
    return std::string_view::npos;
  }

  void add(std::size_t begin, std::size_t end, SpanStyle style) {
    if (begin < end) spans_.push_back({{narrow(begin), narrow(end)}, style});
  }

  std::string_view text_;
  std::size_t at_, end_;
  std::array<bool, kMarkers.size()> hopeless_{};
  std::vector<TextSpan> spans_;
};

}  // namespace

void parse_blocks(std::string_view text, std::uint32_t from, std::vector<MarkdownBlock>& blocks) {
  for (std::size_t at = from; at < text.size();) {
    const Line line = line_at(text, at);
    if (line.empty(text)) {
      at = line.next;
      continue;
    }
    blocks.push_back(parse_block(text, line));
    at = blocks.back().source.end;
  }
}

std::vector<TextSpan> parse_spans(std::string_view text, TextRange range) {
  return SpanParser(text, range).parse();
}

}  // namespace octavo::ui
