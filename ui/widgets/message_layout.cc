#include "ui/widgets/message_layout.h"

#include <algorithm>
#include <cmath>

#include "engine/base/text.h"
#include "ui/widgets/characters.h"
#include "ui/widgets/controls.h"
#include "ui/widgets/text.h"

namespace octavo::ui {
namespace {

constexpr float kParagraphGap = 12;
constexpr float kHeadingGap = 20;
constexpr float kListGap = 4;
constexpr float kListIndent = 24;
constexpr float kQuoteIndent = 16;
constexpr float kCodePadding = 14;
constexpr float kCodeHeader = 34;
constexpr float kCodeBottom = 12;
constexpr float kCodeLineHeight = 1.6f;
constexpr float kInlineCodePadding = 3;
constexpr float kCellPadding = 10;
constexpr float kRowPadding = 6;
constexpr float kMarkPadding = 3;

float em_of(const MarkdownBlock& block) {
  if (block.kind == BlockKind::kCode) return size::kMono;
  if (block.kind != BlockKind::kHeading) return size::kText;
  constexpr float kHeadings[] = {21, 18, 16.5f};
  return block.level <= 3 ? kHeadings[block.level - 1] : size::kText;
}

FontFace face_of(const MarkdownBlock& block, std::uint8_t style) {
  if (block.kind == BlockKind::kCode || (style & span_style::kCode) != 0) return FontFace::kMono;
  const bool bold = block.kind == BlockKind::kHeading || block.header || (style & span_style::kBold) != 0;
  const bool italic = (style & span_style::kItalic) != 0;
  if (bold) return italic ? FontFace::kSemiBoldItalic : FontFace::kSemiBold;
  return italic ? FontFace::kItalic : FontFace::kRegular;
}

bool is_inline_code(const MarkdownBlock& block, std::uint8_t style) {
  return (style & span_style::kCode) != 0 && block.kind != BlockKind::kCode;
}

Face screen_face(const Frame& frame, const MarkdownBlock& block, std::uint8_t style) {
  const float em = em_of(block);
  return frame.face(face_of(block, style), is_inline_code(block, style) ? em * 0.88f : em);
}

float gap_between(const MarkdownBlock& above, const MarkdownBlock& block) {
  if (block.continues) return 0;
  if (above.kind == BlockKind::kTableRow && block.kind == BlockKind::kTableRow && !block.header) return 0;
  if (goes_on_closely(above, block)) return kListGap;
  return block.kind == BlockKind::kHeading ? kHeadingGap : kParagraphGap;
}

ImU32 wanted_code_colour(const Theme& theme, CodeKind kind) {
  switch (kind) {
    case CodeKind::kPlain: return theme.text;
    case CodeKind::kComment: return theme.muted;
    case CodeKind::kString: return theme.owners[2];
    case CodeKind::kNumber: return theme.owners[1];
    case CodeKind::kKeyword: return theme.owners[5];
    case CodeKind::kType: return theme.owners[0];
    case CodeKind::kFunction: return theme.owners[3];
    case CodeKind::kAdded: return theme.owners[2];
    case CodeKind::kRemoved: return theme.error;
  }
  return theme.text;
}

}  // namespace

ImU32 code_colour(const Theme& theme, CodeKind kind) {
  return kind == CodeKind::kPlain ? theme.text : readable(wanted_code_colour(theme, kind), theme.raised);
}

// Fills lines from left to right, and breaks them behind spaces and hyphens, around ideographs, and inside a
// word only when it is longer than a line.
class MessageLayout::LineFiller {
 public:
  LineFiller(const Frame& frame, MessageLayout& layout, std::string_view text, const MarkdownBlock& markdown,
             Block& block, float left, float room, float top)
      : frame_(frame),
        layout_(layout),
        text_(text),
        markdown_(markdown),
        block_(block),
        left_(left),
        room_(room),
        y_(top) {
    begin_line();
  }

  void add(const TextSpan& span) {
    if (span.kind == SpanKind::kBreak) return new_line(span.range);
    use_style(span.style);
    run_.link = span.link;
    const bool code = is_inline_code(markdown_, span.style);
    const float padding = code ? frame_.px(kInlineCodePadding) : 0;
    x_ += padding;
    if (span.kind == SpanKind::kLiteral) {
      add_literal(span);
    } else {
      add_text(span.range, CodeKind::kPlain);
    }
    flush();
    x_ += padding;
  }

  void add_code(TextRange range, CodeKind kind) {
    use_style(0);
    add_text(range, kind);
    flush();
  }

  void new_line(TextRange range) {
    flush();
    block_.lines.back().range.end = std::max(block_.lines.back().range.end, range.begin);
    end_line();
    y_ += block_.line_height;
    begin_line();
    block_.lines.back().range = {range.end, range.end};
  }

  // Returns where the last line ends.
  float finish(CellAlignment alignment = CellAlignment::kLeft) {
    end_line();
    if (alignment != CellAlignment::kLeft) align(alignment);
    return y_ + block_.line_height;
  }

  float widest() const { return widest_; }

 private:
  struct Opportunity {
    bool valid = false;
    std::size_t run = 0;       // index into block_.runs, perhaps of the open one
    std::uint32_t offset = 0;  // in that run's part
    float x = 0;
  };

  void use_style(std::uint8_t style) {
    run_ = {};
    run_.style = style;
    face_ = screen_face(frame_, markdown_, style);
    baked_ = face_.font->GetFontBaked(face_.size);
    tab_ = advance_of(' ') * 4;
  }

  float advance_of(char32_t character) const {
    const int index = static_cast<int>(character);
    if (index < baked_->IndexAdvanceX.Size && baked_->IndexAdvanceX.Data[index] >= 0)
      return baked_->IndexAdvanceX.Data[index];
    return baked_->GetCharAdvance(static_cast<ImWchar>(character));
  }

  void add_text(TextRange range, CodeKind code) {
    run_.code = code;
    char32_t before = 0;
    for (std::uint32_t at = range.begin; at < range.end;) {
      const auto byte = static_cast<unsigned char>(text_[at]);
      if (byte >= 0x20 && byte < 0x7f) {
        put_plain(at, byte);
        before = byte;
        ++at;
        continue;
      }
      const CodePoint point = decode_utf8(text_.substr(0, range.end), at);
      put_special(at, point, before);
      before = point.value;
      at += static_cast<std::uint32_t>(point.length);
    }
  }

  void put_plain(std::uint32_t at, unsigned char byte) {
    const bool space = byte == ' ';
    put(at, at + 1, advance_of(byte), space);
    if (space || byte == '-') allow_break(at + 1);
  }

  void put_special(std::uint32_t at, const CodePoint& point, char32_t before) {
    const std::uint32_t end = at + static_cast<std::uint32_t>(point.length);
    const char32_t c = point.value;
    if (c == '\r') return;
    if (c == '\t') {
      put(at, end, tab_, true);
      return allow_break(end);
    }
    if (is_variation_selector(c) ||
        (c == kZeroWidthJoiner && (is_emoji(before) || is_variation_selector(before))))
      return flush();
    if (has_mark(c)) {
      const float width = mark_width(c);
      return put_whole(RunKind::kMark, at, end, width, layout_.label_of_.at(c));
    }
    if (!point.valid || baked_->FindGlyphNoFallback(static_cast<ImWchar>(c)) == nullptr) {
      return put_missing(at, end, point);
    }
    const bool ideograph = is_ideographic(c) || is_emoji(c);
    if (ideograph && !is_closing_punctuation(c)) allow_break(at);
    put(at, end, advance_of(c), false);
    if (ideograph || c == 0x2013 || c == 0x2014) allow_break(end);
  }

  float mark_width(char32_t character) {
    const auto [entry, is_new] =
        layout_.label_of_.try_emplace(character, static_cast<std::int32_t>(layout_.labels_.size()));
    if (is_new) layout_.labels_.push_back(mark_of(character));
    const std::string& label = layout_.labels_[static_cast<std::size_t>(entry->second)];
    return frame_.face(FontFace::kMono, size::kText * 0.66f).width(label) + 2 * frame_.px(kMarkPadding) +
           frame_.px(2);
  }

  void put_missing(std::uint32_t at, std::uint32_t end, const CodePoint& point) {
    if (point.valid) {
      layout_.missing_.ideographic |= is_ideographic(point.value);
      layout_.missing_.emoji |= is_emoji(point.value);
      layout_.missing_.other |= !is_ideographic(point.value) && !is_emoji(point.value);
    }
    put_whole(RunKind::kMissing, at, end, std::round(face_.size * 0.62f), -1);
  }

  // A box that is drawn as one.
  void put_whole(RunKind kind, std::uint32_t begin, std::uint32_t end, float width, std::int32_t label) {
    allow_break(begin);
    flush();
    if (x_ > 0 && x_ + width > room_) wrap();
    Run run = run_;
    run.kind = kind;
    run.literal = label;
    run.range = run.part = {begin, end};
    run.x = left_ + x_;
    run.width = width;
    push(run);
    x_ += width;
    allow_break(end);
  }

  void add_literal(const TextSpan& span) {
    run_.kind = RunKind::kLiteral;
    run_.literal = span.literal;
    literal_range_ = span.range;
    const std::string& literal = layout_.document_.literals()[static_cast<std::size_t>(span.literal)];
    for (std::uint32_t at = 0; at < literal.size();) {
      const CodePoint point = decode_utf8(literal, at);
      const std::uint32_t end = at + static_cast<std::uint32_t>(point.length);
      put(at, end, advance_of(point.value), point.value == ' ');
      if (point.value == ' ') allow_break(end);
      at = end;
    }
  }

  // Characters [begin, end) of what the run shows. Spaces may hang over the end of a line, for a while.
  void put(std::uint32_t begin, std::uint32_t end, float advance, bool space) {
    if (x_ + advance > (space ? 2 * room_ : room_)) {
      wrap();
      if (x_ > 0 && x_ + advance > room_) wrap();
    }
    if (!open_) {
      open_ = true;
      run_.part = {begin, begin};
      run_.x = left_ + x_;
      run_.width = 0;
    }
    run_.part.end = end;
    run_.width += advance;
    x_ += advance;
  }

  void allow_break(std::uint32_t offset) {
    if (x_ > 0) opportunity_ = {true, block_.runs.size(), offset, x_};
  }

  void flush() {
    if (!open_) return;
    open_ = false;
    run_.range = run_.kind == RunKind::kLiteral ? literal_range_ : run_.part;
    push(run_);
  }

  void push(const Run& run) {
    Line& line = block_.lines.back();
    if (line.num_runs == 0) line.range.begin = run.range.begin;
    line.range.end = std::max(line.range.end, run.range.end);
    ++line.num_runs;
    block_.runs.push_back(run);
  }

  // Takes what follows the last opportunity to the next line; without one the line ends here.
  void wrap() {
    flush();
    const Opportunity at = opportunity_;
    const Line full = block_.lines.back();
    if (!at.valid || at.x >= x_ || at.run >= block_.runs.size()) {
      end_line();
      y_ += block_.line_height;
      return begin_line();
    }
    split_run(at);
    const std::size_t first_moved = block_.runs[at.run].part.begin >= at.offset ? at.run : at.run + 1;
    Line& upper = block_.lines.back();
    upper.num_runs = static_cast<std::uint32_t>(first_moved) - upper.first_run;
    end_line();
    y_ += block_.line_height;
    const float moved = x_ - at.x;
    begin_line(static_cast<std::uint32_t>(first_moved));
    Line& lower = block_.lines.back();
    lower.num_runs = static_cast<std::uint32_t>(block_.runs.size() - first_moved);
    lower.range = {block_.runs[first_moved].range.begin, full.range.end};
    block_.lines[block_.lines.size() - 2].range.end = lower.range.begin;
    for (std::size_t i = first_moved; i < block_.runs.size(); ++i) block_.runs[i].x -= at.x;
    x_ = moved;
  }

  void split_run(const Opportunity& at) {
    Run& run = block_.runs[at.run];
    if (at.offset <= run.part.begin || at.offset >= run.part.end) return;
    Run rest = run;
    const float width = at.x - (run.x - left_);
    run.part.end = rest.part.begin = at.offset;
    if (run.kind == RunKind::kText) run.range.end = rest.range.begin = at.offset;
    rest.x = run.x + width;
    rest.width = run.width - width;
    run.width = width;
    block_.runs.insert(block_.runs.begin() + static_cast<std::ptrdiff_t>(at.run) + 1, rest);
  }

  void begin_line() { begin_line(static_cast<std::uint32_t>(block_.runs.size())); }
  void begin_line(std::uint32_t first_run) {
    block_.lines.push_back({.y = y_, .first_run = first_run, .num_runs = 0, .range = {}});
    opportunity_ = {};
    x_ = 0;
  }

  void end_line() {
    flush();
    const Line& line = block_.lines.back();
    if (line.num_runs == 0) return;
    const Run& last = block_.runs[line.first_run + line.num_runs - 1];
    widest_ = std::max(widest_, std::min(last.x + last.width - left_, room_));
  }

  void align(CellAlignment alignment) {
    for (Line& line : block_.lines) {
      if (line.num_runs == 0 || block_.runs[line.first_run].x < left_) continue;
      const Run& last = block_.runs[line.first_run + line.num_runs - 1];
      const float free = std::max(0.0f, left_ + room_ - last.x - last.width);
      const float shift = std::floor(alignment == CellAlignment::kRight ? free : free * 0.5f);
      for (std::uint32_t i = 0; i < line.num_runs; ++i) block_.runs[line.first_run + i].x += shift;
    }
  }

  const Frame& frame_;
  MessageLayout& layout_;
  std::string_view text_;
  const MarkdownBlock& markdown_;
  Block& block_;
  float left_, room_, y_;
  float x_ = 0;  // from left_
  float widest_ = 0;
  float tab_ = 0;
  Face face_;
  ImFontBaked* baked_ = nullptr;
  bool open_ = false;
  Run run_;  // the open one, or the style of the next
  TextRange literal_range_;
  Opportunity opportunity_;
};

void MessageLayout::clear() {
  document_.clear();
  blocks_.clear();
  columns_.clear();
  laid_out_bytes_ = 0;
  scale_ = 0;
  missing_ = {};
}

void MessageLayout::update(const Frame& frame, std::string_view text, TextFormat format, float width) {
  const bool same_frame = format == format_ && width == width_limit_ && frame.theme.scale == scale_ &&
                          text.size() >= laid_out_bytes_;
  if (same_frame && text.size() == laid_out_bytes_) return;
  if (text.size() < laid_out_bytes_) clear();
  format_ = format;
  width_limit_ = width;
  scale_ = frame.theme.scale;
  laid_out_bytes_ = text.size();
  const std::size_t first_changed = document_.update(text, format);
  lay_out_from(frame, text, same_frame ? first_changed : 0);
}

void MessageLayout::lay_out_from(const Frame& frame, std::string_view text, std::size_t first_block) {
  if (first_block < blocks_.size()) columns_.resize(blocks_[first_block].first_column);
  if (first_block == 0) missing_ = {};
  blocks_.resize(std::min(first_block, blocks_.size()));
  while (blocks_.size() < document_.blocks().size()) {
    blocks_.emplace_back();
    const std::size_t index = blocks_.size() - 1;
    blocks_.back().first_column = static_cast<std::uint32_t>(columns_.size());
    lay_out_block(frame, text, index);
    place_block(frame, index);
    ++num_blocks_laid_out_;
  }
  finish(frame);
}

void MessageLayout::lay_out_block(const Frame& frame, std::string_view text, std::size_t index) {
  const MarkdownBlock& markdown = document_.blocks()[index];
  Block& block = blocks_[index];
  for (std::size_t i = 0; i < markdown.num_containers; ++i)
    block.x += frame.px(markdown.containers[i] == ContainerKind::kQuote ? kQuoteIndent : kListIndent);
  block.width = std::max(width_limit_ - block.x, frame.px(60));
  block.range = markdown.source;
  if (markdown.num_spans > 0) {
    const auto& spans = document_.spans();
    block.range = {spans[markdown.first_span].range.begin,
                   spans[markdown.first_span + markdown.num_spans - 1].range.end};
  }
  const bool code = markdown.kind == BlockKind::kCode;
  block.line_height = frame.px(em_of(markdown) * (code ? kCodeLineHeight : size::kLineHeight));
  if (markdown.kind == BlockKind::kRule) {
    block.height = frame.px(9);
    return;
  }
  if (code) return lay_out_code(frame, text, index);
  if (markdown.kind == BlockKind::kTableRow) return lay_out_row(frame, text, index);
  LineFiller filler(frame, *this, text, markdown, block, 0, block.width, 0);
  for (std::uint32_t i = 0; i < markdown.num_spans; ++i)
    filler.add(document_.spans()[markdown.first_span + i]);
  block.height = filler.finish();
  block.widest_so_far = block.x + filler.widest();
}

void MessageLayout::lay_out_code(const Frame& frame, std::string_view text, std::size_t index) {
  const MarkdownBlock& markdown = document_.blocks()[index];
  Block& block = blocks_[index];
  const bool goes_on = markdown.continues && index > 0;
  const float header = markdown.language.empty() && !markdown.formula ? kCodeBottom : kCodeHeader;
  const float padding = frame.px(kCodePadding);
  LineFiller filler(frame, *this, text, markdown, block, padding,
                    std::max(block.width - 2 * padding, frame.px(40)), goes_on ? 0 : frame.px(header));
  const CodeSyntax* syntax =
      find_syntax(text.substr(markdown.language.begin, markdown.language.end - markdown.language.begin));
  CodeState state = goes_on ? blocks_[index - 1].code_state_after : CodeState{};
  std::vector<CodeToken> tokens;
  for (std::uint32_t i = 0; i < markdown.num_spans; ++i) {
    const TextSpan& span = document_.spans()[markdown.first_span + i];
    if (span.kind != SpanKind::kText || syntax == nullptr) {
      filler.add(span);
      continue;
    }
    tokens.clear();
    lex_line(*syntax, text.substr(span.range.begin, span.range.end - span.range.begin), state, tokens);
    std::uint32_t at = span.range.begin;
    for (const CodeToken& token : tokens) {
      filler.add_code({at, span.range.begin + token.begin}, CodeKind::kPlain);
      filler.add_code({span.range.begin + token.begin, span.range.begin + token.end}, token.kind);
      at = span.range.begin + token.end;
    }
    filler.add_code({at, span.range.end}, CodeKind::kPlain);
  }
  block.code_state_after = state;
  block.height = filler.finish() + frame.px(kCodeBottom);
  block.widest_so_far = width_limit_;
}

// A row's cells one after another; their lines lie side by side.
void MessageLayout::lay_out_row(const Frame& frame, std::string_view text, std::size_t index) {
  const MarkdownBlock& markdown = document_.blocks()[index];
  Block& block = blocks_[index];
  const bool first_row =
      index == 0 || markdown.header || document_.blocks()[index - 1].kind != BlockKind::kTableRow;
  if (first_row) {
    choose_columns(frame, text, index);
  } else {
    block.first_column = blocks_[index - 1].first_column;
  }
  const float padding = frame.px(kRowPadding);
  float bottom = padding + block.line_height;
  for (std::uint32_t c = 0; c < markdown.num_cells; ++c) {
    const std::size_t column_index = block.first_column + c;
    if (column_index >= columns_.size()) break;
    const Column& column = columns_[column_index];
    const TableCell& cell = document_.cells()[markdown.first_cell + c];
    LineFiller filler(frame, *this, text, markdown, block, column.x, column.width, padding);
    for (std::uint32_t i = 0; i < cell.num_spans; ++i) filler.add(document_.spans()[cell.first_span + i]);
    bottom = std::max(bottom, filler.finish(cell.alignment));
  }
  block.height = bottom + padding;
  block.widest_so_far = width_limit_;
}

// As wide as the cells need, and if that is too much, fairly narrower: who needs less than an equal share
// keeps it.
void MessageLayout::choose_columns(const Frame& frame, std::string_view text, std::size_t first_row) {
  const std::vector<MarkdownBlock>& rows = document_.blocks();
  std::vector<float> wanted(rows[first_row].num_cells, frame.px(24));
  for (std::size_t row = first_row; row < rows.size() && rows[row].kind == BlockKind::kTableRow; ++row) {
    if (row > first_row && rows[row].header) break;
    for (std::uint32_t c = 0; c < std::min<std::size_t>(rows[row].num_cells, wanted.size()); ++c) {
      wanted[c] = std::max(
          wanted[c], natural_width(frame, text, rows[row], document_.cells()[rows[row].first_cell + c]));
    }
  }
  const float padding = frame.px(kCellPadding);
  float room = blocks_[first_row].width - 2 * padding * static_cast<float>(wanted.size());
  std::vector<std::size_t> order(wanted.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return wanted[a] < wanted[b]; });
  for (std::size_t i = 0; i < order.size(); ++i) {
    const float share = std::max(room / static_cast<float>(order.size() - i), frame.px(16));
    wanted[order[i]] = std::floor(std::min(wanted[order[i]], share));
    room -= wanted[order[i]];
  }
  float x = 0;
  for (const float width : wanted) {
    columns_.push_back({x + padding, width});
    x += width + 2 * padding;
  }
}

float MessageLayout::natural_width(const Frame& frame, std::string_view text, const MarkdownBlock& row,
                                   const TableCell& cell) {
  Block scratch;
  scratch.line_height = 1;
  LineFiller filler(frame, *this, text, row, scratch, 0, width_limit_, 0);
  for (std::uint32_t i = 0; i < cell.num_spans; ++i) filler.add(document_.spans()[cell.first_span + i]);
  filler.finish();
  return std::ceil(filler.widest()) + 1;
}

void MessageLayout::place_block(const Frame& frame, std::size_t index) {
  Block& block = blocks_[index];
  if (index == 0) return;
  const Block& above = blocks_[index - 1];
  block.widest_so_far = std::max(block.widest_so_far, above.widest_so_far);
  block.gap_above = frame.px(gap_between(document_.blocks()[index - 1], document_.blocks()[index]));
  block.y = above.y + above.height + block.gap_above;
  const MarkdownBlock& markdown = document_.blocks()[index];
  if (markdown.continues && markdown.kind == BlockKind::kCode) block.y -= frame.px(kCodeBottom);
}

float MessageLayout::width() const { return blocks_.empty() ? 0 : blocks_.back().widest_so_far; }

void MessageLayout::finish(const Frame& frame) {
  if (blocks_.empty()) {
    height_ = frame.px(size::kText * size::kLineHeight);
    end_ = {};
    return;
  }
  const Block& block = blocks_.back();
  height_ = block.y + block.height;
  end_ = {block.x, block.y};
  if (block.lines.empty()) return;
  const Line& line = block.lines.back();
  end_.y += line.y;
  if (line.num_runs == 0) return;
  const Run& last = block.runs[line.first_run + line.num_runs - 1];
  end_.x += last.x + last.width;
}

// ---- drawing

std::optional<std::string> MessageLayout::draw(const Frame& frame, std::string_view text, ImVec2 top_left,
                                               float clip_top, float clip_bottom, ImU32 colour,
                                               const TextMarks& marks) const {
  std::optional<std::string> copied;
  for (std::size_t i = block_at(clip_top - top_left.y); i < blocks_.size(); ++i) {
    const Block& block = blocks_[i];
    if (top_left.y + block.y >= clip_bottom) break;
    draw_containers(frame, i, top_left);
    const BlockKind kind = document_.blocks()[i].kind;
    if (kind == BlockKind::kCode && draw_code_card(frame, text, i, top_left))
      copied = document_.code_of(text, i);
    if (kind == BlockKind::kTableRow) draw_row(frame, i, top_left);
    draw_block(frame, text, i, top_left, clip_top, clip_bottom, colour, marks);
  }
  return copied;
}

bool MessageLayout::card_goes_on(std::size_t index) const {
  return index + 1 < blocks_.size() && document_.blocks()[index + 1].continues &&
         document_.blocks()[index + 1].kind == BlockKind::kCode;
}

bool MessageLayout::draw_code_card(const Frame& frame, std::string_view text, std::size_t index,
                                   ImVec2 top_left) const {
  ImDrawList* list = ImGui::GetWindowDrawList();
  const Block& block = blocks_[index];
  const MarkdownBlock& markdown = document_.blocks()[index];
  const bool begins = !markdown.continues || index == 0, ends = !card_goes_on(index);
  const ImVec2 low{top_left.x + block.x, top_left.y + block.y};
  const float bottom = ends ? low.y + block.height : top_left.y + blocks_[index + 1].y;
  const ImVec2 high{low.x + block.width, bottom};
  ImDrawFlags corners = (begins ? ImDrawFlags_RoundTop : 0) | (ends ? ImDrawFlags_RoundBottom : 0);
  if (corners == 0) corners = ImDrawFlags_RoundNone;
  list->AddRectFilled(low, high, frame.theme.raised, frame.px(10), corners);
  if (begins && ends) {
    list->AddRect(low, high, frame.theme.line, frame.px(10));
  } else {
    list->AddLineV(low.x, low.y, high.y, frame.theme.line);
    list->AddLineV(high.x - 1, low.y, high.y, frame.theme.line);
  }
  if (!begins) return false;
  if (markdown.formula)
    draw_text(frame, list, {low.x + frame.px(kCodePadding), low.y + frame.px(8)}, tiny_text(frame),
              "Formula");
  if (!markdown.language.empty()) {
    const std::string_view word =
        text.substr(markdown.language.begin, markdown.language.end - markdown.language.begin);
    const CodeSyntax* syntax = find_syntax(word);
    draw_text(frame, list, {low.x + frame.px(kCodePadding), low.y + frame.px(8)}, tiny_text(frame),
              syntax != nullptr ? syntax_title(*syntax) : word, frame.px(200));
  }
  const ImVec2 cursor = ImGui::GetCursorScreenPos();
  const float side = frame.px(26);
  ImGui::SetCursorScreenPos({high.x - side - frame.px(6), low.y + frame.px(4)});
  ImGui::PushID(static_cast<int>(markdown.source.begin));
  const bool copy = button(frame, "copy_code", "",
                           {.kind = ButtonKind::kPlain,
                            .icon = Icon::kCopy,
                            .height = 26,
                            .help = markdown.formula ? "Copy formula" : "Copy code"});
  ImGui::PopID();
  ImGui::SetCursorScreenPos(cursor);
  return copy;
}

// The bars of quotes, which go on over the gap to the block above, and the marker of a list item.
void MessageLayout::draw_containers(const Frame& frame, std::size_t index, ImVec2 top_left) const {
  const MarkdownBlock& markdown = document_.blocks()[index];
  if (markdown.num_containers == 0) return;
  ImDrawList* list = ImGui::GetWindowDrawList();
  const Block& block = blocks_[index];
  const MarkdownBlock* above = index > 0 ? &document_.blocks()[index - 1] : nullptr;
  const float top = top_left.y + block.y;
  float x = top_left.x;
  for (std::size_t i = 0; i < markdown.num_containers; ++i) {
    const bool quote = markdown.containers[i] == ContainerKind::kQuote;
    const bool goes_on =
        above != nullptr && i < above->num_containers && above->containers[i] == markdown.containers[i];
    if (quote) {
      list->AddRectFilled({x, goes_on ? top - block.gap_above : top}, {x + frame.px(3), top + block.height},
                          frame.theme.line, frame.px(1));
    }
    x += frame.px(quote ? kQuoteIndent : kListIndent);
  }
  if (markdown.marker == MarkerKind::kNone) return;
  const float right = top_left.x + block.x - frame.px(8);
  if (markdown.marker == MarkerKind::kTaskOpen || markdown.marker == MarkerKind::kTaskDone) {
    const float side = frame.px(14);
    const ImVec2 box{right - side + frame.px(2), top + std::floor((block.line_height - side) * 0.5f)};
    const bool done = markdown.marker == MarkerKind::kTaskDone;
    list->AddRect(box, {box.x + side, box.y + side}, done ? frame.theme.accent : frame.theme.muted,
                  frame.px(3));
    if (done)
      draw_icon(list, Icon::kCheck, {box.x + side * 0.5f, box.y + side * 0.5f}, frame.px(12),
                frame.theme.accent);
    return;
  }
  TextStyle style = body_text(frame);
  style.colour = frame.theme.muted;
  const std::string marker = markdown.marker == MarkerKind::kBullet
                                 ? std::string("•")
                                 : std::to_string(markdown.number) + markdown.delimiter;
  draw_text(frame, list, {right - text_width(frame, style, marker), top}, style, marker);
}

void MessageLayout::draw_row(const Frame& frame, std::size_t index, ImVec2 top_left) const {
  ImDrawList* list = ImGui::GetWindowDrawList();
  const Block& block = blocks_[index];
  const MarkdownBlock& markdown = document_.blocks()[index];
  if (markdown.num_cells == 0 || block.first_column + markdown.num_cells > columns_.size()) return;
  const Column& last = columns_[block.first_column + markdown.num_cells - 1];
  const ImVec2 low{top_left.x + block.x, top_left.y + block.y};
  const ImVec2 high{low.x + last.x + last.width + frame.px(kCellPadding), low.y + block.height};
  if (markdown.header) list->AddRectFilled(low, high, frame.theme.raised, frame.px(6), ImDrawFlags_RoundTop);
  list->AddLineH(low.x, high.x, high.y - 1, frame.theme.line);
}

void MessageLayout::draw_block(const Frame& frame, std::string_view text, std::size_t index, ImVec2 top_left,
                               float clip_top, float clip_bottom, ImU32 colour,
                               const TextMarks& marks) const {
  const Block& block = blocks_[index];
  const MarkdownBlock& markdown = document_.blocks()[index];
  const ImVec2 origin{top_left.x + block.x, top_left.y + block.y};
  if (markdown.kind == BlockKind::kRule) {
    ImGui::GetWindowDrawList()->AddLineH(origin.x, origin.x + block.width, origin.y + frame.px(4),
                                         frame.theme.line);
    return;
  }
  const bool quoted = markdown.num_containers > 0 && markdown.containers[0] == ContainerKind::kQuote;
  if (quoted) colour = frame.theme.muted;
  // The lines of a table row lie side by side, so only other blocks are searched.
  auto line = block.lines.begin();
  if (markdown.kind != BlockKind::kTableRow) {
    line = std::lower_bound(block.lines.begin(), block.lines.end(), clip_top,
                            [&](const Line& l, float y) { return origin.y + l.y + block.line_height < y; });
  }
  for (; line != block.lines.end(); ++line) {
    if (origin.y + line->y >= clip_bottom) {
      if (markdown.kind != BlockKind::kTableRow) break;
      continue;
    }
    draw_marks(frame, text, block, *line, origin, marks);
    for (std::uint32_t i = line->first_run; i < line->first_run + line->num_runs; ++i)
      draw_run(frame, text, index, block.runs[i], {origin.x, origin.y + line->y}, colour);
  }
}

void MessageLayout::draw_marks(const Frame& frame, std::string_view text, const Block& block,
                               const Line& line, ImVec2 origin, const TextMarks& marks) const {
  for (const TextRange range : marks.highlights) {
    if (range.begin < line.range.end && line.range.begin < range.end)
      draw_range(frame, text, block, line, origin, range, marks.highlight_colour);
  }
  if (!marks.matches.empty()) {
    auto match = std::lower_bound(marks.matches.begin(), marks.matches.end(), line.range.begin,
                                  [](TextRange range, std::uint32_t offset) { return range.end <= offset; });
    for (; match != marks.matches.end() && match->begin < line.range.end; ++match) {
      draw_range(frame, text, block, line, origin, *match,
                 with_alpha(frame.theme.warning, *match == marks.current_match ? 0.40f : 0.20f));
    }
  }
  if (!marks.selection.empty())
    draw_range(frame, text, block, line, origin, marks.selection, with_alpha(frame.theme.accent, 0.30f));
}

void MessageLayout::draw_range(const Frame& frame, std::string_view text, const Block& block,
                               const Line& line, ImVec2 origin, TextRange range, ImU32 colour) const {
  ImDrawList* list = ImGui::GetWindowDrawList();
  const std::size_t index = static_cast<std::size_t>(&block - blocks_.data());
  const float top = origin.y + line.y;
  for (std::uint32_t i = line.first_run; i < line.first_run + line.num_runs; ++i) {
    const Run& run = block.runs[i];
    if (run.range.end <= range.begin || run.range.begin >= range.end) continue;
    const float low = range.begin <= run.range.begin ? run.x : x_in_run(frame, text, index, run, range.begin);
    const float high =
        range.end >= run.range.end ? run.x + run.width : x_in_run(frame, text, index, run, range.end);
    list->AddRectFilled({origin.x + low, top}, {origin.x + high, top + block.line_height}, colour);
  }
}

void MessageLayout::draw_run(const Frame& frame, std::string_view text, std::size_t index, const Run& run,
                             ImVec2 origin, ImU32 colour) const {
  ImDrawList* list = ImGui::GetWindowDrawList();
  const Block& block = blocks_[index];
  const MarkdownBlock& markdown = document_.blocks()[index];
  const Face face = screen_face(frame, markdown, run.style);
  const ImVec2 at{origin.x + run.x, origin.y + std::floor((block.line_height - face.size) * 0.5f)};
  if (run.kind == RunKind::kMissing) {
    list->AddRect({at.x + frame.px(1), at.y + frame.px(2)},
                  {at.x + run.width - frame.px(1), at.y + face.size - frame.px(3)}, frame.theme.warning,
                  frame.px(1));
    return;
  }
  if (run.kind == RunKind::kMark) {
    const Face small = frame.face(FontFace::kMono, size::kText * 0.66f);
    const float top = origin.y + std::floor((block.line_height - small.size) * 0.5f);
    list->AddRect({at.x + frame.px(1), top - frame.px(1)},
                  {at.x + run.width - frame.px(1), top + small.size + frame.px(1)},
                  with_alpha(frame.theme.warning, 0.7f), frame.px(3));
    const std::string& label = labels_[static_cast<std::size_t>(run.literal)];
    list->AddText(small.font, small.size, {at.x + frame.px(kMarkPadding + 1), top}, frame.theme.warning,
                  label.data(), label.data() + label.size());
    return;
  }
  if (is_inline_code(markdown, run.style)) {
    const float padding = frame.px(kInlineCodePadding);
    list->AddRectFilled({at.x - padding, at.y - frame.px(1)},
                        {at.x + run.width + padding, at.y + face.size + frame.px(1)}, frame.theme.raised,
                        frame.px(4));
  }
  if (run.code != CodeKind::kPlain) colour = code_colour(frame.theme, run.code);
  if ((run.style & span_style::kQuiet) != 0) colour = frame.theme.muted;
  if (run.link >= 0) colour = frame.theme.accent;
  const std::string_view bytes = shown(text, run);
  list->AddText(face.font, face.size, at, colour, bytes.data(), bytes.data() + bytes.size());
  if (run.link >= 0)
    list->AddLineH(at.x, at.x + run.width, at.y + face.size - frame.px(2), with_alpha(colour, 0.6f));
  if ((run.style & span_style::kStrike) != 0)
    list->AddLineH(at.x, at.x + run.width, at.y + std::floor(face.size * 0.55f), colour);
}

// ---- places in the text

std::string_view MessageLayout::shown(std::string_view text, const Run& run) const {
  const std::string_view whole =
      run.kind == RunKind::kLiteral
          ? std::string_view(document_.literals()[static_cast<std::size_t>(run.literal)])
          : text;
  return whole.substr(run.part.begin, run.part.end - run.part.begin);
}

float MessageLayout::x_in_run(const Frame& frame, std::string_view text, std::size_t block, const Run& run,
                              std::uint32_t offset) const {
  if (offset <= run.range.begin) return run.x;
  if (offset >= run.range.end || run.kind != RunKind::kText) return run.x + run.width;
  const Face face = screen_face(frame, document_.blocks()[block], run.style);
  return run.x + face.width(text.substr(run.range.begin, offset - run.range.begin));
}

std::size_t MessageLayout::block_at(float y) const {
  const auto block = std::lower_bound(blocks_.begin(), blocks_.end(), y,
                                      [](const Block& b, float at) { return b.y + b.height < at; });
  return static_cast<std::size_t>(block - blocks_.begin());
}

std::size_t MessageLayout::block_of(std::uint32_t offset) const {
  const auto block = std::upper_bound(blocks_.begin(), blocks_.end(), offset,
                                      [](std::uint32_t at, const Block& b) { return at < b.range.begin; });
  return block == blocks_.begin() ? 0 : static_cast<std::size_t>(block - blocks_.begin()) - 1;
}

std::pair<std::size_t, const MessageLayout::Line*> MessageLayout::line_near(ImVec2 position) const {
  if (blocks_.empty()) return {0, nullptr};
  std::size_t index = std::min(block_at(position.y), blocks_.size() - 1);
  if (index > 0 && position.y < blocks_[index].y - blocks_[index].gap_above * 0.5f) --index;
  const Block& block = blocks_[index];
  const Line* best = nullptr;
  float best_distance = FLT_MAX;
  const float x = position.x - block.x, y = position.y - block.y;
  // Blocks other than table rows have their lines one below the other.
  auto first = block.lines.begin(), last = block.lines.end();
  if (document_.blocks()[index].kind != BlockKind::kTableRow) {
    first = std::lower_bound(first, last, y,
                             [&](const Line& line, float at) { return line.y + block.line_height <= at; });
    if (first == last && first != block.lines.begin()) --first;
    if (first != last) last = first + 1;
  }
  for (auto line = first; line != last; ++line) {
    const float below = std::max({line->y - y, y - line->y - block.line_height, 0.0f});
    float beside = 0;
    if (line->num_runs > 0) {
      const Run& left = block.runs[line->first_run];
      const Run& right = block.runs[line->first_run + line->num_runs - 1];
      beside = std::max({left.x - x, x - right.x - right.width, 0.0f});
    }
    const float distance = below * 100 + beside;
    if (distance >= best_distance) continue;
    best_distance = distance;
    best = &*line;
  }
  return {index, best};
}

std::uint32_t MessageLayout::offset_at(const Frame& frame, std::string_view text, ImVec2 position) const {
  if (blocks_.empty() || position.y < 0) return 0;
  if (position.y > height_) return static_cast<std::uint32_t>(text.size());
  const auto [index, line] = line_near(position);
  const Block& block = blocks_[index];
  if (line == nullptr || line->num_runs == 0) return line == nullptr ? block.range.begin : line->range.begin;
  const float x = position.x - block.x;
  for (std::uint32_t i = line->first_run; i < line->first_run + line->num_runs; ++i) {
    const Run& run = block.runs[i];
    if (x < run.x) return run.range.begin;
    if (x > run.x + run.width) continue;
    if (run.kind != RunKind::kText) return x < run.x + run.width * 0.5f ? run.range.begin : run.range.end;
    const Face face = screen_face(frame, document_.blocks()[index], run.style);
    ImFontBaked* baked = face.font->GetFontBaked(face.size);
    float at_x = run.x;
    for (std::uint32_t at = run.range.begin; at < run.range.end;) {
      const CodePoint point = decode_utf8(text, at);
      const float advance = point.value == '\t' ? baked->GetCharAdvance(' ') * 4
                                                : baked->GetCharAdvance(static_cast<ImWchar>(point.value));
      if (x < at_x + advance * 0.5f) return at;
      at_x += advance;
      at += static_cast<std::uint32_t>(point.length);
    }
    return run.range.end;
  }
  return block.runs[line->first_run + line->num_runs - 1].range.end;
}

const MessageLayout::Run* MessageLayout::run_under(ImVec2 position) const {
  if (blocks_.empty() || position.y < 0 || position.y > height_) return nullptr;
  const auto [index, line] = line_near(position);
  const Block& block = blocks_[index];
  if (line == nullptr || position.y < block.y + line->y || position.y > block.y + line->y + block.line_height)
    return nullptr;
  for (std::uint32_t i = line->first_run; i < line->first_run + line->num_runs; ++i) {
    const Run& run = block.runs[i];
    if (position.x >= block.x + run.x && position.x <= block.x + run.x + run.width) return &run;
  }
  return nullptr;
}

std::string_view MessageLayout::link_at(ImVec2 position) const {
  const Run* run = run_under(position);
  return run != nullptr && run->link >= 0
             ? std::string_view(document_.links()[static_cast<std::size_t>(run->link)])
             : std::string_view();
}

bool MessageLayout::is_over_text(ImVec2 position) const { return run_under(position) != nullptr; }

ImVec2 MessageLayout::position_of(const Frame& frame, std::string_view text, std::uint32_t offset) const {
  if (blocks_.empty()) return {};
  const std::size_t index = block_of(offset);
  const Block& block = blocks_[index];
  const Line* best = nullptr;
  for (const Line& line : block.lines) {
    if (line.range.begin <= offset && (best == nullptr || line.range.begin >= best->range.begin))
      best = &line;
  }
  if (best == nullptr) return {block.x, block.y};
  ImVec2 position{block.x, block.y + best->y};
  for (std::uint32_t i = best->first_run; i < best->first_run + best->num_runs; ++i) {
    const Run& run = block.runs[i];
    if (run.range.begin <= offset) position.x = block.x + x_in_run(frame, text, index, run, offset);
  }
  return position;
}

TextRange MessageLayout::word_at(std::string_view text, std::uint32_t offset) const {
  if (blocks_.empty()) return {};
  const TextRange block = blocks_[block_of(offset)].range;
  std::uint32_t begin = std::clamp(offset, block.begin, block.end), end = begin;
  const auto word_here = [&](std::uint32_t at) {
    const char32_t c = decode_utf8(text, at).value;
    return is_word(c) && !is_ideographic(c);
  };
  const auto before = [&](std::uint32_t at) {
    do --at;
    while (at > block.begin && continues_utf8(text[at]));
    return at;
  };
  while (end < block.end && word_here(end)) end += static_cast<std::uint32_t>(decode_utf8(text, end).length);
  while (begin > block.begin && word_here(before(begin))) begin = before(begin);
  if (begin == end && end < block.end) end += static_cast<std::uint32_t>(decode_utf8(text, end).length);
  return {begin, end};
}

TextRange MessageLayout::paragraph_at(std::string_view text, std::uint32_t offset) const {
  if (blocks_.empty()) return {};
  const std::size_t index = block_of(offset);
  TextRange range = blocks_[index].range;
  if (document_.blocks()[index].kind != BlockKind::kCode && format_ != TextFormat::kPlain) return range;
  offset = std::clamp(offset, range.begin, range.end);
  const std::size_t before = offset == 0 ? std::string_view::npos : text.rfind('\n', offset - 1);
  const std::size_t after = text.find('\n', offset);
  if (before != std::string_view::npos)
    range.begin = std::max(range.begin, static_cast<std::uint32_t>(before + 1));
  if (after != std::string_view::npos) range.end = std::min(range.end, static_cast<std::uint32_t>(after));
  return range;
}

}  // namespace octavo::ui
