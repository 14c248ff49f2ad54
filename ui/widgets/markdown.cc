#include "ui/widgets/markdown.h"

#include <md4c.h>

#include <algorithm>
#include <optional>

#include "engine/base/text.h"
#include "ui/widgets/characters.h"
#include "ui/widgets/mathematics.h"

namespace octavo::ui {
namespace {

using std::uint32_t;

uint32_t narrow(std::size_t offset) { return static_cast<uint32_t>(offset); }
bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

// A line of the text; `first` is its first byte that is not blank.
struct Line {
  std::size_t begin = 0, first = 0, end = 0, next = 0;
  std::size_t indent = 0;  // columns
  bool closed = false;     // ends with a line break: nothing can be added to it any more
  bool empty() const { return first == end; }
};

Line line_at(std::string_view text, std::size_t begin) {
  Line line{.begin = begin, .first = begin};
  const std::size_t found = text.find('\n', begin);
  line.closed = found != std::string_view::npos;
  line.end = line.closed ? found : text.size();
  line.next = line.closed ? found + 1 : text.size();
  for (; line.first < line.end && is_blank(text[line.first]); ++line.first)
    line.indent = text[line.first] == '\t' ? (line.indent / 4 + 1) * 4 : line.indent + 1;
  return line;
}

// "- x" or "12. x": with something behind the marker, and not a number that is too long to be one.
struct ListMarker {
  bool bullet = false;
  bool first_number = false;  // 1, with which a list may interrupt a paragraph
};

std::optional<ListMarker> list_marker(std::string_view text, const Line& line) {
  std::size_t at = line.first;
  if (at == line.end || line.indent > 3) return std::nullopt;
  ListMarker marker;
  marker.bullet = text[at] == '-' || text[at] == '*' || text[at] == '+';
  if (marker.bullet) {
    ++at;
  } else {
    const std::size_t digits = at;
    while (at < line.end && is_digit(text[at]) && at - digits < 9) ++at;
    if (at == digits || at == line.end || (text[at] != '.' && text[at] != ')')) return std::nullopt;
    marker.first_number = text.substr(digits, at - digits) == "1";
    ++at;
  }
  if (at == line.end || !is_blank(text[at])) return std::nullopt;
  while (at < line.end && is_blank(text[at])) ++at;
  return at < line.end ? std::optional(marker) : std::nullopt;
}

struct Fence {
  char character = '\0';
  std::size_t length = 0;
  TextRange language;
};

std::optional<Fence> opening_fence(std::string_view text, const Line& line) {
  if (line.indent > 3 || line.empty()) return std::nullopt;
  Fence fence;
  fence.character = text[line.first];
  if (fence.character != '`' && fence.character != '~') return std::nullopt;
  std::size_t at = line.first;
  while (at < line.end && text[at] == fence.character) ++at;
  fence.length = at - line.first;
  const std::string_view info = text.substr(at, line.end - at);
  if (fence.length < 3 || (fence.character == '`' && info.find('`') != std::string_view::npos))
    return std::nullopt;
  while (at < line.end && is_blank(text[at])) ++at;
  const std::size_t begin = at;
  while (at < line.end && !is_blank(text[at])) ++at;
  fence.language = {narrow(begin), narrow(at)};
  return fence;
}

bool closes_fence(std::string_view text, const Line& line, char fence, std::size_t length) {
  if (line.indent > 3) return false;
  std::size_t at = line.first;
  while (at < line.end && text[at] == fence) ++at;
  if (at - line.first < length) return false;
  while (at < line.end && is_blank(text[at])) ++at;
  return at == line.end;
}

// Where a line that is too long is cut: behind a space if there is one near, and never inside a character.
std::size_t cut_inside_line(std::string_view text, std::size_t begin, std::size_t limit) {
  std::size_t end = begin + limit;
  const std::size_t space = text.rfind(' ', end - 1);
  if (space != std::string_view::npos && space > begin && end - space < 512) return space + 1;
  for (int i = 0; i < 3 && end > begin + 1 && continues_utf8(text[end]); ++i) --end;
  return end;
}

// Whether a line begins more lists, one in the other, than anybody means.
bool nests_too_deeply(std::string_view text) {
  constexpr int kMostLists = 32;
  for (std::size_t begin = 0; begin < text.size();) {
    Line line = line_at(text, begin);
    begin = line.next;
    int depth = 0;
    while (line.first < line.end) {
      std::size_t at = line.first;
      const char c = text[at];
      const bool bullet = c == '-' || c == '*' || c == '+';
      while (at < line.end && is_digit(text[at])) ++at;
      if (!bullet && (at == line.first || at == line.end || (text[at] != '.' && text[at] != ')')) && c != '>')
        break;
      if (++at < line.end && !is_blank(text[at]) && c != '>') break;
      if (c != '>' && ++depth > kMostLists) return true;
      while (at < line.end && is_blank(text[at])) ++at;
      line.first = at;
    }
  }
  return false;
}

void append_entity(std::string& result, std::string_view entity) {
  struct Named {
    std::string_view name;
    char32_t value;
  };
  constexpr Named kNamed[] = {
      {"amp", '&'},       {"lt", '<'},       {"gt", '>'},       {"quot", '"'},     {"apos", '\''},
      {"nbsp", 0xa0},     {"copy", 0xa9},    {"reg", 0xae},     {"deg", 0xb0},     {"plusmn", 0xb1},
      {"middot", 0xb7},   {"times", 0xd7},   {"divide", 0xf7},  {"ndash", 0x2013}, {"mdash", 0x2014},
      {"lsquo", 0x2018},  {"rsquo", 0x2019}, {"ldquo", 0x201c}, {"rdquo", 0x201d}, {"bull", 0x2022},
      {"hellip", 0x2026}, {"euro", 0x20ac},  {"trade", 0x2122}, {"larr", 0x2190},  {"rarr", 0x2192},
      {"minus", 0x2212},  {"infin", 0x221e}, {"ne", 0x2260},    {"le", 0x2264},    {"ge", 0x2265}};
  const std::string_view name = entity.substr(1, entity.size() - 2);
  if (!name.empty() && name[0] == '#') {
    char32_t value = 0;
    const bool hexadecimal = name.size() > 1 && (name[1] == 'x' || name[1] == 'X');
    for (const char c : name.substr(hexadecimal ? 2 : 1)) {
      const char32_t digit = static_cast<char32_t>(is_digit(c) ? c - '0' : (c | 0x20) - 'a' + 10);
      value = std::min<char32_t>(value * (hexadecimal ? 16 : 10) + digit, 0x110000);
    }
    const bool character = value > 0 && value < 0x110000 && !(value >= 0xd800 && value < 0xe000);
    return append_utf8(result, character ? value : 0xfffd);
  }
  for (const Named& named : kNamed) {
    if (named.name == name) return append_utf8(result, named.value);
  }
  result.append(entity);
}

std::string attribute_text(const MD_ATTRIBUTE& attribute) {
  std::string result;
  for (std::size_t i = 0; attribute.text != nullptr && attribute.substr_offsets[i] < attribute.size; ++i) {
    const std::size_t begin = attribute.substr_offsets[i], end = attribute.substr_offsets[i + 1];
    const std::string_view part(attribute.text + begin, end - begin);
    if (attribute.substr_types[i] == MD_TEXT_ENTITY) {
      append_entity(result, part);
    } else {
      result.append(part);
    }
  }
  return result;
}

}  // namespace

// Turns md4c's callbacks for one chunk into blocks and spans. md4c reads a copy of the chunk in which some
// bytes are replaced one for one, so that every position in it is one in the text.
class MarkdownReader {
 public:
  MarkdownReader(MarkdownDocument& document, std::string_view text, std::size_t begin, std::size_t end,
                 bool continues)
      : document_(document),
        text_(text),
        begin_(begin),
        end_(end),
        last_(narrow(begin)),
        continues_(continues) {}

  void read() {
    formulas_ = find_formulas(text_.substr(begin_, end_ - begin_));
    copy_ = readable_copy();
    MD_PARSER parser{};
    parser.flags = MD_FLAG_TABLES | MD_FLAG_STRIKETHROUGH | MD_FLAG_TASKLISTS |
                   MD_FLAG_PERMISSIVEURLAUTOLINKS | MD_FLAG_PERMISSIVEEMAILAUTOLINKS | MD_FLAG_NOHTML;
    if (continues_) parser.flags |= MD_FLAG_NOINDENTEDCODEBLOCKS;
    parser.enter_block = [](MD_BLOCKTYPE type, void* detail, void* self) {
      return static_cast<MarkdownReader*>(self)->enter_block(type, detail);
    };
    parser.leave_block = [](MD_BLOCKTYPE type, void*, void* self) {
      static_cast<MarkdownReader*>(self)->leave_block(type);
      return 0;
    };
    parser.enter_span = [](MD_SPANTYPE type, void* detail, void* self) {
      static_cast<MarkdownReader*>(self)->enter_span(type, detail);
      return 0;
    };
    parser.leave_span = [](MD_SPANTYPE type, void* detail, void* self) {
      static_cast<MarkdownReader*>(self)->leave_span(type, detail);
      return 0;
    };
    parser.text = [](MD_TEXTTYPE type, const MD_CHAR* piece, MD_SIZE size, void* self) {
      static_cast<MarkdownReader*>(self)->add_text(type, piece, size);
      return 0;
    };
    const std::size_t num_blocks = document_.blocks_.size();
    const int status = nests_too_deeply(copy_)
                           ? -1
                           : md_parse(copy_.data(), static_cast<MD_SIZE>(copy_.size()), &parser, this);
    if (status != 0) show_as_plain(num_blocks);
    if (continues_ && document_.blocks_.size() > num_blocks) document_.blocks_[num_blocks].continues = true;
  }

 private:
  // Neither a carriage return nor a zero byte means anything to readers, and a definition would disappear
  // from the page, and so would what Markdown makes of a formula.
  std::string readable_copy() const {
    std::string copy(text_.substr(begin_, end_ - begin_));
    for (std::size_t i = 0; i < copy.size(); ++i) {
      if (copy[i] == '\r' || copy[i] == '\0') copy[i] = copy[i] == '\r' ? ' ' : '?';
      if (copy[i] == ':' && i > 0 && copy[i - 1] == ']') copy[i] = '.';
    }
    // A formula is one long word to Markdown.
    for (const Formula& formula : formulas_)
      std::fill(copy.begin() + formula.begin, copy.begin() + formula.end, 'x');
    return copy;
  }

  // What nobody could read: lists in lists without end, for which md4c takes quadratic time, and tables of
  // too many columns.
  void show_as_plain(std::size_t num_blocks) {
    document_.blocks_.resize(num_blocks);
    containers_.clear();
    begin_block(BlockKind::kParagraph);
    add_lines(text_.substr(0, end_), begin_);
    end_block();
  }

  void add_lines(std::string_view text, std::size_t from) {
    while (from < text.size()) {
      const Line line = line_at(text, from);
      add_span({{narrow(line.begin), narrow(line.end)}, SpanKind::kText});
      if (line.closed) add_span({{narrow(line.end), narrow(line.next)}, SpanKind::kBreak});
      from = line.next;
    }
  }

  int enter_block(MD_BLOCKTYPE type, void* detail) {
    switch (type) {
      case MD_BLOCK_QUOTE: containers_.push_back(ContainerKind::kQuote); break;
      case MD_BLOCK_UL: lists_.push_back({false, 0, '.'}); break;
      case MD_BLOCK_OL: {
        const auto& list = *static_cast<const MD_BLOCK_OL_DETAIL*>(detail);
        lists_.push_back({true, list.start, list.mark_delimiter});
        break;
      }
      case MD_BLOCK_LI: enter_item(*static_cast<const MD_BLOCK_LI_DETAIL*>(detail)); break;
      case MD_BLOCK_HR:
        begin_block(BlockKind::kRule);
        end_block();
        break;
      case MD_BLOCK_H:
        begin_block(BlockKind::kHeading).level =
            static_cast<std::uint8_t>(static_cast<const MD_BLOCK_H_DETAIL*>(detail)->level);
        break;
      case MD_BLOCK_CODE: enter_code(*static_cast<const MD_BLOCK_CODE_DETAIL*>(detail)); break;
      case MD_BLOCK_P:
      case MD_BLOCK_HTML: begin_block(BlockKind::kParagraph); break;
      case MD_BLOCK_THEAD: header_ = true; break;
      case MD_BLOCK_TBODY: header_ = false; break;
      case MD_BLOCK_TR:
        begin_block(BlockKind::kTableRow).header = header_;
        block_->first_cell = narrow(document_.cells_.size());
        break;
      case MD_BLOCK_TH:
      case MD_BLOCK_TD: return enter_cell(*static_cast<const MD_BLOCK_TD_DETAIL*>(detail));
      case MD_BLOCK_DOC:
      case MD_BLOCK_TABLE: break;
    }
    return 0;
  }

  void leave_block(MD_BLOCKTYPE type) {
    switch (type) {
      case MD_BLOCK_QUOTE: containers_.pop_back(); break;
      case MD_BLOCK_UL:
      case MD_BLOCK_OL: lists_.pop_back(); break;
      case MD_BLOCK_LI:
        end_block();
        show_pending_marker();
        containers_.pop_back();
        break;
      case MD_BLOCK_TH:
      case MD_BLOCK_TD:
        document_.cells_.back().num_spans =
            narrow(document_.spans_.size()) - document_.cells_.back().first_span;
        break;
      case MD_BLOCK_TR:
        block_->num_cells = narrow(document_.cells_.size()) - block_->first_cell;
        end_block();
        break;
      case MD_BLOCK_CODE: leave_code(); break;
      case MD_BLOCK_H:
      case MD_BLOCK_P:
      case MD_BLOCK_HTML: end_block(); break;
      default: break;
    }
  }

  void enter_item(const MD_BLOCK_LI_DETAIL& item) {
    end_block();
    show_pending_marker();
    containers_.push_back(ContainerKind::kListItem);
    List& list = lists_.back();
    marker_ = list.ordered ? MarkerKind::kNumber : MarkerKind::kBullet;
    if (item.is_task) marker_ = item.task_mark == ' ' ? MarkerKind::kTaskOpen : MarkerKind::kTaskDone;
    if (item.is_task) last_ = std::max(last_, narrow(begin_ + item.task_mark_offset + 2));
    number_ = list.next++;
    delimiter_ = list.delimiter;
  }

  // An item without text still has its marker.
  void show_pending_marker() {
    if (marker_ == MarkerKind::kNone) return;
    begin_block(BlockKind::kParagraph);
    end_block();
  }

  MarkdownBlock& begin_block(BlockKind kind) {
    end_block();
    MarkdownBlock block{.kind = kind};
    block.first_span = narrow(document_.spans_.size());
    block.num_containers = static_cast<std::uint8_t>(std::min(containers_.size(), MarkdownBlock::kDeepest));
    std::copy_n(containers_.begin(), block.num_containers, block.containers.begin());
    block.marker = marker_;
    block.number = number_;
    block.delimiter = delimiter_;
    block.source = {last_, last_};
    marker_ = MarkerKind::kNone;
    document_.blocks_.push_back(block);
    block_ = &document_.blocks_.back();
    return *block_;
  }

  // In tight lists md4c hands over text without a paragraph around it.
  MarkdownBlock& open_block() { return block_ != nullptr ? *block_ : begin_block(BlockKind::kParagraph); }

  void end_block() {
    if (block_ == nullptr) return;
    block_->num_spans = narrow(document_.spans_.size()) - block_->first_span;
    block_->source = source_lines(*block_);
    last_ = std::max(last_, block_->source.end);
    block_ = nullptr;
  }

  // The whole lines on which the block's spans stand, and for code the fences around them.
  TextRange source_lines(const MarkdownBlock& block) const {
    std::size_t begin = block.source.begin, end = begin;
    if (block.num_spans > 0) {
      begin = document_.spans_[block.first_span].range.begin;
      end = document_.spans_[block.first_span + block.num_spans - 1].range.end;
    } else if (block.kind == BlockKind::kRule || block.marker != MarkerKind::kNone) {
      begin = std::min(text_.find_first_not_of(" \t\r\n", begin), end_);
      end = begin;
    }
    begin = begin == begin_ || begin == 0 ? begin_ : std::max(begin_, text_.rfind('\n', begin - 1) + 1);
    if (end == begin || text_[end - 1] != '\n') end = std::min(line_at(text_, end).next, end_);
    if (fenced_ && block.kind == BlockKind::kCode && block.num_spans > 0) {
      if (begin > begin_ + 1) begin = std::max(begin_, text_.rfind('\n', begin - 2) + 1);
      end = std::min(line_at(text_, end).next, end_);
    }
    return {narrow(begin), narrow(std::max(begin, end))};
  }

  void enter_code(const MD_BLOCK_CODE_DETAIL& detail) {
    begin_block(BlockKind::kCode);
    code_ = true;
    fenced_ = detail.fence_char != '\0';
    if (detail.lang.text != nullptr && is_inside(detail.lang.text)) {
      const uint32_t begin = offset_of(detail.lang.text);
      block_->language = {begin, begin + detail.lang.size};
      last_ = std::max(last_, narrow(line_at(text_, begin).next));
    }
  }

  void leave_code() {
    code_ = false;
    if (block_ != nullptr && document_.spans_.size() > block_->first_span &&
        document_.spans_.back().kind == SpanKind::kBreak) {
      document_.spans_.pop_back();
    }
    end_block();
  }

  int enter_cell(const MD_BLOCK_TD_DETAIL& detail) {
    if (document_.cells_.size() - block_->first_cell >= MarkdownDocument::kMostColumns) return 1;
    const CellAlignment alignment = detail.align == MD_ALIGN_RIGHT    ? CellAlignment::kRight
                                    : detail.align == MD_ALIGN_CENTER ? CellAlignment::kCentre
                                                                      : CellAlignment::kLeft;
    document_.cells_.push_back({narrow(document_.spans_.size()), 0, alignment});
    return 0;
  }

  void enter_span(MD_SPANTYPE type, void* detail) {
    open_block();
    if (type == MD_SPAN_STRONG) ++bold_;
    if (type == MD_SPAN_EM) ++italic_;
    if (type == MD_SPAN_DEL) ++strike_;
    if (type == MD_SPAN_CODE) ++code_span_;
    if (type == MD_SPAN_IMG) add_literal("[image: ");
    if (type != MD_SPAN_A) return;
    std::string address = attribute_text(static_cast<const MD_SPAN_A_DETAIL*>(detail)->href);
    if (!is_openable(address)) return;
    link_ = static_cast<std::int32_t>(document_.links_.size());
    document_.links_.push_back(std::move(address));
  }

  void leave_span(MD_SPANTYPE type, void* detail) {
    if (type == MD_SPAN_STRONG) --bold_;
    if (type == MD_SPAN_EM) --italic_;
    if (type == MD_SPAN_DEL) --strike_;
    if (type == MD_SPAN_CODE) --code_span_;
    if (type == MD_SPAN_IMG) {
      add_literal("] (" + visible_text(attribute_text(static_cast<const MD_SPAN_IMG_DETAIL*>(detail)->src)) +
                  ")");
    }
    if (type != MD_SPAN_A) return;
    // An address that cannot be opened is read instead.
    if (link_ < 0)
      add_literal(" (" + visible_text(attribute_text(static_cast<const MD_SPAN_A_DETAIL*>(detail)->href)) +
                  ")");
    link_ = -1;
  }

  std::uint8_t style() const {
    return static_cast<std::uint8_t>(
        (bold_ > 0 ? span_style::kBold : 0) | (italic_ > 0 ? span_style::kItalic : 0) |
        (strike_ > 0 ? span_style::kStrike : 0) | (code_span_ > 0 ? span_style::kCode : 0));
  }

  bool is_inside(const char* pointer) const {
    return pointer >= copy_.data() && pointer < copy_.data() + copy_.size();
  }
  uint32_t offset_of(const char* pointer) const {
    return narrow(begin_ + static_cast<std::size_t>(pointer - copy_.data()));
  }

  void add_text(MD_TEXTTYPE type, const char* piece, std::size_t size) {
    open_block();
    if (type == MD_TEXT_BR || type == MD_TEXT_SOFTBR) return add_break();
    if (!is_inside(piece)) {
      if (code_span_ > 0) return add_space_for_break();
      if (size > 0 && piece[0] == '\n') return add_break();
      indented_ += narrow(size);  // spaces that md4c makes of an indentation
      return;
    }
    uint32_t begin = offset_of(piece);
    const uint32_t end = begin + narrow(size);
    begin = indentation_before(begin);
    indented_ = 0;
    if (type == MD_TEXT_ENTITY) return add_entity({begin, end});
    add_pieces(begin, end);
  }

  // Text, and formulas in it, which look like code and may have several lines.
  void add_pieces(uint32_t begin, uint32_t end) {
    const auto offset = narrow(begin_);
    auto formula = std::partition_point(formulas_.begin(), formulas_.end(),
                                        [&](const Formula& f) { return f.end + offset <= begin; });
    for (; formula != formulas_.end() && formula->begin + offset < end; ++formula) {
      const uint32_t first = std::max(begin, formula->begin + offset);
      const uint32_t last = std::min(end, formula->end + offset);
      add_span({{begin, first}, SpanKind::kText, style(), link_});
      const auto code = static_cast<std::uint8_t>(style() | span_style::kCode);
      for (uint32_t at = first; at < last;) {
        const auto line_break = narrow(std::min<std::size_t>(text_.substr(0, last).find('\n', at), last));
        add_span({{at, line_break}, SpanKind::kText, code, link_});
        if (line_break < last) add_span({{line_break, line_break + 1}, SpanKind::kBreak});
        at = line_break + 1;
      }
      begin = last;
    }
    add_span({{begin, end}, SpanKind::kText, style(), link_});
  }

  TextRange next_break() const {
    const std::size_t at = std::min(text_.find('\n', last_), end_);
    return {narrow(at), narrow(std::min(at + 1, end_))};
  }
  void add_break() { add_span({next_break(), SpanKind::kBreak}); }
  // A code span that goes over a line break contains it as a space.
  void add_space_for_break() { add_literal(" ", next_break(), style()); }

  uint32_t indentation_before(uint32_t offset) const {
    uint32_t begin = offset, columns = indented_;
    while (columns > 0 && begin > begin_ && begin > last_ &&
           (text_[begin - 1] == ' ' || text_[begin - 1] == '\t')) {
      --begin;
      columns -= std::min(columns, text_[begin] == '\t' ? 4u : 1u);
    }
    return begin;
  }

  void add_entity(TextRange range) {
    std::string shown;
    append_entity(shown, text_.substr(range.begin, range.end - range.begin));
    add_literal(visible_text(shown), range, style());
  }

  // Stands for what the text has between the pieces beside it; its end is known when the next piece comes.
  void add_literal(std::string literal) {
    open_block();
    add_literal(std::move(literal), {last_, last_}, static_cast<std::uint8_t>(style() | span_style::kQuiet));
  }

  void add_literal(std::string literal, TextRange range, std::uint8_t style) {
    document_.literals_.push_back(std::move(literal));
    add_span(
        {range, SpanKind::kLiteral, style, link_, static_cast<std::int32_t>(document_.literals_.size()) - 1});
  }

  void add_span(TextSpan span) {
    if (span.kind == SpanKind::kText && span.range.empty()) return;
    document_.spans_.push_back(span);
    last_ = std::max(last_, span.range.end);
  }

  struct List {
    bool ordered;
    uint32_t next;
    char delimiter;
  };

  MarkdownDocument& document_;
  std::string_view text_;
  std::size_t begin_, end_;
  uint32_t last_;  // the end of what has been shown
  bool continues_;
  std::string copy_;
  std::vector<Formula> formulas_;  // from begin_ on
  std::vector<ContainerKind> containers_;
  std::vector<List> lists_;
  MarkdownBlock* block_ = nullptr;  // the open one, at the end of the document
  MarkerKind marker_ = MarkerKind::kNone;
  uint32_t number_ = 0;
  char delimiter_ = '.';
  int bold_ = 0, italic_ = 0, strike_ = 0, code_span_ = 0;
  std::int32_t link_ = -1;
  bool code_ = false, fenced_ = false, header_ = false;
  uint32_t indented_ = 0;  // columns before the next piece of code
};

void MarkdownDocument::clear() {
  text_size_ = 0;
  chunks_.clear();
  truncate({});
}

void MarkdownDocument::truncate(const Chunk& chunk) {
  blocks_.resize(chunk.num_blocks);
  spans_.resize(chunk.num_spans);
  cells_.resize(chunk.num_cells);
  literals_.resize(chunk.num_literals);
  links_.resize(chunk.num_links);
}

std::size_t MarkdownDocument::update(std::string_view text, TextFormat format) {
  if (format != format_ || text.size() < text_size_) clear();
  if (text.size() == text_size_) return blocks_.size();
  format_ = format;
  text_size_ = text.size();
  Chunk chunk = chunks_.empty() ? Chunk{} : chunks_.back();
  if (!chunks_.empty()) chunks_.pop_back();
  truncate(chunk);
  const std::size_t first_changed = blocks_.size();
  while (chunk.begin < text.size()) {
    chunk.num_blocks = blocks_.size();
    chunk.num_spans = spans_.size();
    chunk.num_cells = cells_.size();
    chunk.num_literals = literals_.size();
    chunk.num_links = links_.size();
    chunks_.push_back(chunk);
    const Cut cut = read_chunk(text, chunk, format);
    num_bytes_parsed_ += cut.end - chunk.begin;
    chunk.begin = cut.end;
    chunk.state = cut.next;
  }
  return first_changed;
}

MarkdownDocument::Cut MarkdownDocument::read_chunk(std::string_view text, const Chunk& chunk,
                                                   TextFormat format) {
  if (format == TextFormat::kPlain) return read_plain(text, chunk);
  if (chunk.state.fence != '\0') return read_code(text, chunk, chunk.state, chunk.begin);
  const Line line = line_at(text, chunk.begin);
  if (const auto fence = opening_fence(text, line); fence && line.next - line.begin < kLongestChunk) {
    const ChunkState inside{.fence = fence->character,
                            .fence_length = narrow(fence->length),
                            .fence_indent = narrow(line.indent),
                            .language = fence->language};
    return read_code(text, chunk, inside, narrow(line.next));
  }
  HopelessMarks hopeless;
  if (const Display display = display_at(text, chunk.begin, hopeless);
      display.state == Display::State::kClosed)
    return read_display(text, chunk, display.end);
  const Cut cut = find_markdown_end(text, chunk);
  MarkdownReader(*this, text, chunk.begin, cut.end, chunk.state.continues).read();
  return cut;
}

// Lines that a formula has to itself.
MarkdownDocument::Cut MarkdownDocument::read_display(std::string_view text, const Chunk& chunk,
                                                     std::size_t end) {
  MarkdownBlock block{.kind = BlockKind::kCode,
                      .source = {chunk.begin, narrow(end)},
                      .first_span = narrow(spans_.size()),
                      .formula = true};
  for (std::size_t at = chunk.begin; at < end;) {
    const Line line = line_at(text, at);
    if (line.end > at) spans_.push_back({{narrow(at), narrow(line.end)}});
    if (line.next < end) spans_.push_back({{narrow(line.end), narrow(line.next)}, SpanKind::kBreak});
    at = line.next;
  }
  block.num_spans = narrow(spans_.size()) - block.first_span;
  blocks_.push_back(block);
  return {narrow(end), {}};
}

MarkdownDocument::Cut MarkdownDocument::read_plain(std::string_view text, const Chunk& chunk) {
  MarkdownBlock block{.first_span = narrow(spans_.size()), .continues = chunk.begin > 0};
  std::size_t at = chunk.begin;
  while (at < text.size() && at - chunk.begin < kLongestChunk / 2) {
    const Line line = line_at(text, at);
    if (line.end - at > kLongestChunk) {
      const std::size_t cut = cut_inside_line(text, at, kLongestChunk);
      spans_.push_back({{narrow(at), narrow(cut)}});
      at = cut;
      break;
    }
    if (line.end > at) spans_.push_back({{narrow(at), narrow(line.end)}});
    if (line.closed) spans_.push_back({{narrow(line.end), narrow(line.next)}, SpanKind::kBreak});
    at = line.next;
  }
  // The break before the rest is the rest's own beginning.
  const bool more = at < text.size();
  if (more && !spans_.empty() && spans_.back().kind == SpanKind::kBreak) spans_.pop_back();
  block.num_spans = narrow(spans_.size()) - block.first_span;
  block.source = {chunk.begin, narrow(at)};
  blocks_.push_back(block);
  return {narrow(at), {}};
}

MarkdownDocument::Cut MarkdownDocument::read_code(std::string_view text, const Chunk& chunk,
                                                  const ChunkState& fence, std::uint32_t content) {
  MarkdownBlock block{.kind = BlockKind::kCode,
                      .first_span = narrow(spans_.size()),
                      .continues = chunk.state.fence != '\0',
                      .language = fence.language};
  Cut cut;
  std::size_t at = content;
  bool closed = false, more = false;
  while (at < text.size() && !closed && !more) {
    const Line line = line_at(text, at);
    if (closes_fence(text, line, fence.fence, fence.fence_length)) {
      closed = true;
      at = line.next;
      break;
    }
    std::size_t begin = line.begin;
    for (std::uint32_t i = 0; i < fence.fence_indent && begin < line.end && text[begin] == ' '; ++i) ++begin;
    const bool too_long = line.end - begin > kLongestChunk;
    const std::size_t end = too_long ? cut_inside_line(text, begin, kLongestChunk) : line.end;
    if (end > begin) spans_.push_back({{narrow(begin), narrow(end)}});
    if (!too_long && line.closed) spans_.push_back({{narrow(line.end), narrow(line.next)}, SpanKind::kBreak});
    at = too_long ? end : line.next;
    more = too_long || (line.closed && at - chunk.begin > kLongestChunk / 2);
  }
  if (spans_.size() > block.first_span && spans_.back().kind == SpanKind::kBreak) spans_.pop_back();
  block.num_spans = narrow(spans_.size()) - block.first_span;
  block.source = {chunk.begin, narrow(at)};
  const bool only_fence = block.continues && block.num_spans == 0;
  if (!only_fence) blocks_.push_back(block);
  cut.end = narrow(at);
  if (!closed) cut.next = fence;
  return cut;
}

// The first place at which nothing that follows can change what stands before.
MarkdownDocument::Cut MarkdownDocument::find_markdown_end(std::string_view text, const Chunk& chunk) {
  bool in_list = false, after_empty = true;
  HopelessMarks hopeless;
  std::size_t at = chunk.begin;
  while (at < text.size()) {
    const Line line = line_at(text, at);
    const bool first = at == chunk.begin;
    if (line.end - chunk.begin > kLongestChunk) {
      const std::size_t end = first ? cut_inside_line(text, at, kLongestChunk) : at;
      return {narrow(end), {.continues = true}};
    }
    if (line.empty()) {
      after_empty = true;
      at = line.next;
      continue;
    }
    const bool at_margin = line.indent == 0;
    if (!first && after_empty && at_margin) return {narrow(at), {}};
    if (!first && line.closed && (at_margin || !in_list) && opening_fence(text, line))
      return {narrow(at), {}};
    const Display display = at_margin || first ? display_at(text, at, hopeless) : Display{};
    if (display.state == Display::State::kOpen) return {narrow(text.size()), {}};
    if (!first && display.state == Display::State::kClosed) return {narrow(at), {}};
    const auto marker = list_marker(text, line);
    if (!first && line.closed && at_margin && in_list && marker) return {narrow(at), {}};
    if (marker && (after_empty || marker->bullet || marker->first_number)) in_list = true;
    after_empty = false;
    at = line.next;
  }
  return {narrow(text.size()), {}};
}

std::string_view MarkdownDocument::shown(std::string_view text, const TextSpan& span) const {
  if (span.kind == SpanKind::kBreak) return "\n";
  if (span.kind == SpanKind::kLiteral) return literals_[static_cast<std::size_t>(span.literal)];
  return text.substr(span.range.begin, span.range.end - span.range.begin);
}

std::string MarkdownDocument::code_of(std::string_view text, std::size_t block) const {
  while (block > 0 && blocks_[block].continues) --block;
  std::string code;
  const std::size_t first = block;
  do {
    const MarkdownBlock& part = blocks_[block];
    const bool at_line = part.source.begin > 0 && text[part.source.begin - 1] == '\n';
    if (block > first && at_line) code += '\n';
    for (std::uint32_t i = 0; i < part.num_spans; ++i) code += shown(text, spans_[part.first_span + i]);
    ++block;
  } while (block < blocks_.size() && blocks_[block].continues && blocks_[block].kind == BlockKind::kCode);
  return code;
}

bool goes_on_closely(const MarkdownBlock& above, const MarkdownBlock& block) {
  const auto in_list = [](const MarkdownBlock& b) {
    return std::find(b.containers.begin(), b.containers.begin() + b.num_containers,
                     ContainerKind::kListItem) != b.containers.begin() + b.num_containers;
  };
  return block.marker != MarkerKind::kNone && block.kind == BlockKind::kParagraph && in_list(above);
}

bool is_openable(std::string_view address) {
  const auto begins = [&](std::string_view scheme) {
    return address.size() > scheme.size() &&
           std::equal(scheme.begin(), scheme.end(), address.begin(),
                      [](char a, char b) { return a == b || a == (b | 0x20); });
  };
  if (!begins("http://") && !begins("https://") && !begins("mailto:")) return false;
  for (std::size_t at = 0; at < address.size();) {
    const CodePoint point = decode_utf8(address, at);
    if (!point.valid || point.value <= 0x20 || has_mark(point.value)) return false;
    at += point.length;
  }
  return true;
}

namespace {

bool meets(TextRange a, TextRange b) { return a.begin < b.end && b.begin < a.end; }

// Where a block's shown characters begin and end.
TextRange shown_range(const MarkdownDocument& document, const MarkdownBlock& block) {
  if (block.num_spans == 0) return block.source;
  return {document.spans()[block.first_span].range.begin,
          document.spans()[block.first_span + block.num_spans - 1].range.end};
}

std::string marker_text(const MarkdownBlock& block) {
  switch (block.marker) {
    case MarkerKind::kNone: return {};
    case MarkerKind::kBullet: return "- ";
    case MarkerKind::kNumber: return std::to_string(block.number) + block.delimiter + " ";
    case MarkerKind::kTaskOpen: return "[ ] ";
    case MarkerKind::kTaskDone: return "[x] ";
  }
  return {};
}

// Before a block that is not the first: as far from the one above as it is on the page.
std::string_view separator(std::string_view text, const MarkdownBlock& above, const MarkdownBlock& block) {
  if (block.continues) return block.source.begin > 0 && text[block.source.begin - 1] == '\n' ? "\n" : "";
  const bool rows = above.kind == BlockKind::kTableRow && block.kind == BlockKind::kTableRow && !block.header;
  return rows || goes_on_closely(above, block) ? "\n" : "\n\n";
}

void append_span(std::string& result, const MarkdownDocument& document, std::string_view text,
                 const TextSpan& span, TextRange range) {
  const bool whole = span.kind != SpanKind::kText;
  if (whole && (meets(span.range, range) ||
                (span.range.empty() && range.begin <= span.range.begin && span.range.begin < range.end))) {
    result += document.shown(text, span);
  } else if (!whole && meets(span.range, range)) {
    const uint32_t begin = std::max(span.range.begin, range.begin), end = std::min(span.range.end, range.end);
    result += text.substr(begin, end - begin);
  }
}

void append_block(std::string& result, const MarkdownDocument& document, std::string_view text,
                  const MarkdownBlock& block, TextRange range) {
  if (range.begin <= shown_range(document, block).begin) {
    std::size_t depth = 0;
    for (std::size_t i = 0; i < block.num_containers; ++i) {
      if (block.containers[i] == ContainerKind::kListItem) ++depth;
    }
    if (depth > 1 && block.marker != MarkerKind::kNone) result.append(2 * (depth - 1), ' ');
    result += marker_text(block);
    if (block.kind == BlockKind::kRule) result += "---";
  }
  if (block.kind != BlockKind::kTableRow) {
    for (uint32_t i = 0; i < block.num_spans; ++i)
      append_span(result, document, text, document.spans()[block.first_span + i], range);
    return;
  }
  for (uint32_t c = 0; c < block.num_cells; ++c) {
    const TableCell& cell = document.cells()[block.first_cell + c];
    if (c > 0) result += '\t';
    for (uint32_t i = 0; i < cell.num_spans; ++i)
      append_span(result, document, text, document.spans()[cell.first_span + i], range);
  }
}

}  // namespace

std::string plain_text(std::string_view text, TextFormat format, TextRange range) {
  MarkdownDocument document;
  document.update(text, format);
  std::string result;
  const MarkdownBlock* above = nullptr;
  for (const MarkdownBlock& block : document.blocks()) {
    const TextRange shown = shown_range(document, block);
    if (shown.begin >= range.end || (shown.end <= range.begin && !shown.empty())) continue;
    if (above != nullptr) result += separator(text, *above, block);
    append_block(result, document, text, block, range);
    above = &block;
  }
  return result;
}

std::string markdown_text(std::string_view text, TextFormat format, TextRange range) {
  MarkdownDocument document;
  document.update(text, format);
  for (const MarkdownBlock& block : document.blocks()) {
    const TextRange shown = shown_range(document, block);
    if (shown.empty() || block.continues) continue;
    if (range.begin <= shown.begin && range.begin >= block.source.begin && range.end > shown.begin)
      range.begin = block.source.begin;
    if (range.end >= shown.end && range.end <= block.source.end && range.begin < shown.end)
      range.end = block.source.end;
  }
  std::string result(text.substr(range.begin, range.end - range.begin));
  while (!result.empty() && result.back() == '\n' && range.end < text.size()) result.pop_back();
  return result;
}

}  // namespace octavo::ui
