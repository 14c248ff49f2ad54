#include "ui/widgets/message_layout.h"

#include <algorithm>
#include <cmath>

#include "ui/widgets/controls.h"
#include "ui/widgets/text.h"

namespace octavo::ui {
namespace {

constexpr float kParagraphGap = 12;
constexpr float kListGap = 4;
constexpr float kListIndent = 24;
constexpr float kQuoteIndent = 16;
constexpr float kCodePadding = 14;
constexpr float kCodeHeader = 30;
constexpr float kCodeLineHeight = 1.6f;
constexpr float kInlineCodePadding = 3;

float em_of(const MarkdownBlock& block) {
  if (block.kind == BlockKind::kCode) return size::kMono;
  if (block.kind != BlockKind::kHeading) return size::kText;
  constexpr float kHeadings[] = {21, 18, 16.5f};
  return block.level <= 3 ? kHeadings[block.level - 1] : size::kText;
}

FontFace face_of(const MarkdownBlock& block, SpanStyle style) {
  if (block.kind == BlockKind::kCode || style == SpanStyle::kCode) return FontFace::kMono;
  if (block.kind == BlockKind::kHeading || style == SpanStyle::kBold) return FontFace::kSemiBold;
  return style == SpanStyle::kItalic ? FontFace::kItalic : FontFace::kRegular;
}

Face screen_face(const Frame& frame, const MarkdownBlock& block, SpanStyle style) {
  const bool inline_code = style == SpanStyle::kCode && block.kind != BlockKind::kCode;
  return frame.face(face_of(block, style), inline_code ? em_of(block) * 0.88f : em_of(block));
}

bool is_control(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return (byte < 0x20 && byte != '\t') || byte == 0x7f;
}

bool is_blank(char c) { return c == ' ' || c == '\t'; }

float gap_above(const MarkdownBlock& above, const MarkdownBlock& block) {
  const bool list_goes_on = above.kind == BlockKind::kListItem && block.kind == BlockKind::kListItem;
  const bool quote_goes_on = above.kind == BlockKind::kQuote && block.kind == BlockKind::kQuote;
  if (quote_goes_on) return 0;
  return list_goes_on ? kListGap : kParagraphGap;
}

}  // namespace

// Fills lines from left to right with pieces of text, breaking between words where it can.
class MessageLayout::LineFiller {
 public:
  LineFiller(const Frame& frame, std::string_view text, Block& block, float room)
      : frame_(frame), text_(text), block_(block), room_(room) {
    begin_line();
  }

  // Text without line breaks or control characters.
  void add(TextRange range, SpanStyle style) {
    const Face face = screen_face(frame_, block_.markdown, style);
    const char* at = text_.data() + range.begin;
    const char* const end = text_.data() + range.end;
    while (at < end) {
      if (x_ == 0 && wrapped_) at = skip_blanks(at, end);
      const char* stop = fitting_end(face, at, end);
      if (stop == at) {
        if (at == end) return;
        break_line();
        continue;
      }
      place(face, at, stop, style);
      at = stop;
      if (at < end) break_line();
    }
  }

  void new_line() {
    begin_line();
    wrapped_ = false;
  }

 private:
  static const char* skip_blanks(const char* at, const char* end) {
    while (at < end && is_blank(*at)) ++at;
    return at;
  }

  // How far the text fits on the current line; `at` itself when its first word belongs on the next one.
  const char* fitting_end(const Face& face, const char* at, const char* end) const {
    const float room = room_ - x_;
    if (x_ > 0 && room < face.size * 0.5f) return at;
    const char* stop = face.font->CalcWordWrapPosition(face.size, at, end, std::max(room, 1.0f));
    if (stop == end) return end;
    const char* word = skip_blanks(at, end);
    const bool cuts_first_word = std::none_of(std::min(word, stop), stop, is_blank) && !is_blank(*stop);
    if (x_ > 0 && cuts_first_word) return at;
    if (stop > at) return stop;
    return x_ > 0 ? at : next_character(at, end);
  }

  static const char* next_character(const char* at, const char* end) {
    ++at;
    while (at < end && (static_cast<unsigned char>(*at) & 0xc0u) == 0x80u) ++at;
    return at;
  }

  void place(const Face& face, const char* begin, const char* end, SpanStyle style) {
    const float width = face.font->CalcTextSizeA(face.size, FLT_MAX, 0.0f, begin, end).x;
    const bool inline_code = style == SpanStyle::kCode && block_.markdown.kind != BlockKind::kCode;
    const float padding = inline_code ? frame_.px(kInlineCodePadding) : 0;
    x_ += padding;
    const TextRange range{static_cast<std::uint32_t>(begin - text_.data()),
                          static_cast<std::uint32_t>(end - text_.data())};
    block_.runs.push_back({range, x_, width, style});
    ++block_.lines.back().num_runs;
    x_ += width + padding;
  }

  void break_line() {
    begin_line();
    wrapped_ = true;
  }

  void begin_line() {
    const float y = block_.padding + block_.line_height * static_cast<float>(block_.lines.size());
    block_.lines.push_back({y, static_cast<std::uint32_t>(block_.runs.size()), 0});
    x_ = 0;
  }

  const Frame& frame_;
  std::string_view text_;
  Block& block_;
  float room_;
  float x_ = 0;
  bool wrapped_ = false;  // the current line began because the one before was full
};

void MessageLayout::update(const Frame& frame, std::string_view text, TextFormat format, float width) {
  const bool same_frame = format == format_ && width == width_limit_ && frame.theme.scale == scale_ &&
                          text.size() >= laid_out_bytes_;
  if (same_frame && text.size() == laid_out_bytes_) return;
  format_ = format;
  width_limit_ = width;
  scale_ = frame.theme.scale;
  laid_out_bytes_ = text.size();
  if (!same_frame) blocks_.clear();
  lay_out_from(frame, text, blocks_.empty() ? 0 : blocks_.size() - 1);
}

void MessageLayout::lay_out_from(const Frame& frame, std::string_view text, std::size_t first_block) {
  const std::uint32_t from = first_block < blocks_.size() ? blocks_[first_block].markdown.source.begin : 0;
  blocks_.resize(first_block);
  std::vector<MarkdownBlock> parsed;
  if (format_ == TextFormat::kMarkdown) {
    parse_blocks(text, from, parsed);
  } else {
    const TextRange all{0, static_cast<std::uint32_t>(text.size())};
    parsed.push_back({.source = all, .content = all});
  }
  for (const MarkdownBlock& markdown : parsed) {
    blocks_.push_back({.markdown = markdown});
    lay_out_block(frame, text, blocks_.back());
    place_block(frame, blocks_.size() - 1);
  }
  finish(frame);
}

void MessageLayout::lay_out_block(const Frame& frame, std::string_view text, Block& block) const {
  const MarkdownBlock& markdown = block.markdown;
  const bool code = markdown.kind == BlockKind::kCode;
  block.line_height = frame.px(em_of(markdown) * (code ? kCodeLineHeight : size::kLineHeight));
  const bool named = markdown.marker.end > markdown.marker.begin;
  if (code) block.padding = frame.px(named ? kCodeHeader : kCodePadding - 2);
  if (markdown.kind == BlockKind::kListItem)
    block.x = frame.px(kListIndent * static_cast<float>(markdown.level + 1));
  if (markdown.kind == BlockKind::kQuote) block.x = frame.px(kQuoteIndent);
  if (code) block.x = frame.px(kCodePadding);
  if (markdown.kind == BlockKind::kRule) {
    block.height = frame.px(9);
    return;
  }
  const float room = std::max(width_limit_ - block.x - (code ? block.x : 0.0f), frame.px(40));
  LineFiller filler(frame, text, block, room);
  const bool plain = format_ == TextFormat::kPlain || code;
  const std::vector<TextSpan> spans = plain ? std::vector<TextSpan>{{markdown.content, SpanStyle::kPlain}}
                                            : parse_spans(text, markdown.content);
  for (const TextSpan& span : spans) {
    std::uint32_t begin = span.range.begin;
    for (std::uint32_t at = begin; at <= span.range.end; ++at) {
      if (at < span.range.end && !is_control(text[at])) continue;
      if (at > begin) filler.add({begin, at}, span.style);
      if (at < span.range.end && text[at] == '\n') filler.new_line();
      begin = at + 1;
    }
  }
  block.height = block.padding + block.line_height * static_cast<float>(block.lines.size());
  if (code) block.height += frame.px(kCodePadding - 4);
}

void MessageLayout::place_block(const Frame& frame, std::size_t index) {
  Block& block = blocks_[index];
  if (index == 0) {
    block.y = 0;
    return;
  }
  const Block& above = blocks_[index - 1];
  block.y = above.y + above.height + frame.px(gap_above(above.markdown, block.markdown));
}

void MessageLayout::finish(const Frame& frame) {
  widest_ = 0;
  for (const Block& block : blocks_) {
    if (block.markdown.kind == BlockKind::kCode) widest_ = width_limit_;
    for (const Line& line : block.lines) {
      if (line.num_runs == 0) continue;
      const Run& last = block.runs[line.first_run + line.num_runs - 1];
      widest_ = std::max(widest_, block.x + last.x + last.width);
    }
  }
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
  if (line.num_runs > 0) {
    const Run& last = block.runs[line.first_run + line.num_runs - 1];
    end_.x += last.x + last.width;
  }
}

TextRange MessageLayout::draw(const Frame& frame, std::string_view text, ImVec2 top_left, float clip_top,
                              float clip_bottom, ImU32 colour) const {
  TextRange copied;
  const auto below_top = [&](const Block& block, float y) { return top_left.y + block.y + block.height < y; };
  auto block = std::lower_bound(blocks_.begin(), blocks_.end(), clip_top, below_top);
  for (; block != blocks_.end() && top_left.y + block->y < clip_bottom; ++block) {
    if (block->markdown.kind == BlockKind::kCode && draw_code_header(frame, text, *block, top_left)) {
      copied = block->markdown.content;
    }
    draw_block(frame, text, *block, top_left, clip_top, clip_bottom, colour);
  }
  return copied;
}

bool MessageLayout::draw_code_header(const Frame& frame, std::string_view text, const Block& block,
                                     ImVec2 top_left) const {
  ImDrawList* list = ImGui::GetWindowDrawList();
  const ImVec2 low{top_left.x, top_left.y + block.y};
  const ImVec2 high{top_left.x + width_limit_, low.y + block.height};
  list->AddRectFilled(low, high, frame.theme.raised, frame.px(10));
  list->AddRect(low, high, frame.theme.line, frame.px(10));
  const TextRange language = block.markdown.marker;
  TextStyle style = tiny_text(frame);
  style.colour = frame.theme.faint;
  draw_text(frame, list, {low.x + frame.px(kCodePadding), low.y + frame.px(7)}, style,
            text.substr(language.begin, language.end - language.begin), frame.px(200));
  const ImVec2 cursor = ImGui::GetCursorScreenPos();
  const float button = frame.px(26);
  ImGui::SetCursorScreenPos({high.x - button - frame.px(6), low.y + frame.px(4)});
  ImGui::PushID(static_cast<int>(block.markdown.source.begin));
  const bool copy = octavo::ui::button(
      frame, "copy_code", "",
      {.kind = ButtonKind::kPlain, .icon = Icon::kCopy, .height = 26, .help = "Copy code"});
  ImGui::PopID();
  ImGui::SetCursorScreenPos(cursor);
  return copy;
}

void MessageLayout::draw_block(const Frame& frame, std::string_view text, const Block& block, ImVec2 top_left,
                               float clip_top, float clip_bottom, ImU32 colour) const {
  ImDrawList* list = ImGui::GetWindowDrawList();
  const ImVec2 origin{top_left.x + block.x, top_left.y + block.y};
  const MarkdownBlock& markdown = block.markdown;
  if (markdown.kind == BlockKind::kRule) {
    list->AddLineH(top_left.x, top_left.x + width_limit_, origin.y + frame.px(4), frame.theme.line);
    return;
  }
  if (markdown.kind == BlockKind::kQuote) {
    list->AddRectFilled({top_left.x, origin.y}, {top_left.x + frame.px(3), origin.y + block.height},
                        frame.theme.line);
    colour = frame.theme.muted;
  }
  if (markdown.kind == BlockKind::kListItem) {
    const char first = text[markdown.marker.begin];
    const std::string_view marker =
        text.substr(markdown.marker.begin, markdown.marker.end - markdown.marker.begin);
    TextStyle style = body_text(frame);
    style.colour = frame.theme.muted;
    const std::string_view shown = first >= '0' && first <= '9' ? marker : std::string_view("•");
    const float marker_width = text_width(frame, style, shown);
    draw_text(frame, list, {origin.x - marker_width - frame.px(8), origin.y}, style, shown);
  }
  const auto above_clip = [&](const Line& line, float y) {
    return origin.y + line.y + block.line_height < y;
  };
  auto line = std::lower_bound(block.lines.begin(), block.lines.end(), clip_top, above_clip);
  for (; line != block.lines.end() && origin.y + line->y < clip_bottom; ++line) {
    for (std::uint32_t i = line->first_run; i < line->first_run + line->num_runs; ++i) {
      const Run& run = block.runs[i];
      const Face face = screen_face(frame, markdown, run.style);
      const ImVec2 at{origin.x + run.x,
                      origin.y + line->y + std::floor((block.line_height - face.size) * 0.5f)};
      if (run.style == SpanStyle::kCode && markdown.kind != BlockKind::kCode) {
        const float padding = frame.px(kInlineCodePadding);
        list->AddRectFilled({at.x - padding, at.y - frame.px(1)},
                            {at.x + run.width + padding, at.y + face.size + frame.px(1)}, frame.theme.raised,
                            frame.px(4));
      }
      list->AddText(face.font, face.size, at, colour, text.data() + run.range.begin,
                    text.data() + run.range.end);
    }
  }
}

}  // namespace octavo::ui
