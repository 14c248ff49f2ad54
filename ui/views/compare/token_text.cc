#include "ui/views/compare/token_text.h"

#include <algorithm>

#include "engine/base/text.h"
#include "ui/compare_state.h"
#include "ui/widgets/text.h"

namespace octavo::ui {
namespace {

constexpr char32_t kFirstWithoutSpaces = 0x2e80;

enum class CharacterKind { kLetter, kWideLetter, kSpace, kLineBreak, kInvisible };

// Controls that would move, hide or reorder what stands beside them are not drawn.
bool is_invisible(char32_t c) {
  return c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0x61c || c == 0x200e || c == 0x200f ||
         (c >= 0x202a && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069);
}

CharacterKind kind_of(char32_t c) {
  if (c == '\n') return CharacterKind::kLineBreak;
  if (c == ' ' || c == '\t') return CharacterKind::kSpace;
  if (is_invisible(c)) return CharacterKind::kInvisible;
  return c >= kFirstWithoutSpaces && c != 0xfffd ? CharacterKind::kWideLetter : CharacterKind::kLetter;
}

}  // namespace

void TokenText::update(const Frame& frame, const ComparedColumn& column, float width) {
  follow(frame,
         {.id = column.id.value,
          .rewritten = column.rewritten,
          .text = column.text,
          .num_tokens = column.tokens.size()},
         width);
  for (; num_laid_out_ < column.tokens.size(); ++num_laid_out_)
    add_token(column.text, column.tokens[num_laid_out_].begin, column.tokens[num_laid_out_].end,
              num_laid_out_);
}

void TokenText::update(const Frame& frame, std::uint64_t id, std::string_view text,
                       std::span<const std::uint32_t> ends, float width) {
  follow(frame, {.id = id, .text = text, .num_tokens = ends.size()}, width);
  for (; num_laid_out_ < ends.size(); ++num_laid_out_)
    add_token(text, num_laid_out_ == 0 ? 0 : ends[num_laid_out_ - 1], ends[num_laid_out_], num_laid_out_);
}

void TokenText::follow(const Frame& frame, const Source& source, float width) {
  const Face face = frame.face(FontFace::kRegular, size::kText);
  const bool grew = source.num_tokens >= num_laid_out_ && source.text.size() >= text_bytes_;
  // The end of a text may complete a character that its last token left open.
  const bool tail_changed = source.num_tokens == num_laid_out_ && source.text.size() != text_bytes_;
  const bool same = id_ == source.id && rewritten_ == source.rewritten && width_ == width &&
                    face_.size == face.size && face_.font == face.font;
  text_bytes_ = source.text.size();
  if (same && grew && !tail_changed) return;
  face_ = face;
  line_height_ = frame.px(size::kText * 1.6f);
  width_ = width;
  id_ = source.id;
  rewritten_ = source.rewritten;
  num_laid_out_ = 0;
  pieces_.clear();
  lines_.assign(1, 0);
  word_ = 0;
  x_ = 0;
}

void TokenText::add_token(std::string_view text, std::size_t begin_byte, std::size_t end_byte,
                          std::size_t token) {
  std::size_t at = begin_byte;
  const std::size_t end = std::min<std::size_t>(end_byte, text.size());
  const std::size_t first_piece = pieces_.size();
  while (at < end) {
    const std::size_t begin = at;
    const CharacterKind kind = kind_of(decode_utf8(text, at).value);
    while (at < end) {
      const CodePoint point = decode_utf8(text, at);
      if (kind_of(point.value) != kind) break;
      at += point.length;
      if (kind == CharacterKind::kLineBreak || kind == CharacterKind::kWideLetter) break;
    }
    if (kind == CharacterKind::kLineBreak) {
      new_line();
    } else if (kind != CharacterKind::kInvisible) {
      if (kind == CharacterKind::kWideLetter) word_ = pieces_.size();
      add_piece(text, {.token = static_cast<std::uint32_t>(token),
                       .begin = static_cast<std::uint32_t>(begin),
                       .end = static_cast<std::uint32_t>(at),
                       .is_space = kind == CharacterKind::kSpace});
      if (kind == CharacterKind::kSpace || kind == CharacterKind::kWideLetter) word_ = pieces_.size();
    }
  }
  // A token without anything to draw still has a place.
  if (pieces_.size() == first_piece) pieces_.push_back({.token = static_cast<std::uint32_t>(token), .x = x_});
}

void TokenText::add_piece(std::string_view text, Piece piece) {
  piece.width = face_.width(text.substr(piece.begin, piece.end - piece.begin));
  if (!piece.is_space && x_ + piece.width > width_ && x_ > 0) {
    const std::size_t first = lines_.back();
    const float word_x = word_ < pieces_.size() ? pieces_[word_].x : x_;
    if (word_ > first && word_x > 0) {  // the word goes to the next line as a whole
      lines_.push_back(word_);
      for (std::size_t i = word_; i < pieces_.size(); ++i) pieces_[i].x -= word_x;
      x_ -= word_x;
    }
  }
  if (!piece.is_space && x_ + piece.width > width_) return break_word(text, piece);
  piece.x = x_;
  x_ += piece.width;
  pieces_.push_back(piece);
}

// A word that is wider than a line is cut wherever the line ends.
void TokenText::break_word(std::string_view text, Piece piece) {
  while (piece.begin < piece.end) {
    const char* const begin = text.data() + piece.begin;
    const char* rest = begin;
    const float room = std::max(width_ - x_, 0.0f);
    ImVec2 extent = face_.font->CalcTextSizeA(face_.size, room, 0.0f, begin, text.data() + piece.end, &rest);
    if (rest == begin && x_ > 0) {
      new_line();
      continue;
    }
    if (rest == begin) {  // not even one character: it hangs over
      rest = begin + decode_utf8(text, piece.begin).length;
      extent = face_.font->CalcTextSizeA(face_.size, FLT_MAX, 0.0f, begin, rest);
    }
    Piece part = piece;
    part.end = piece.begin + static_cast<std::uint32_t>(rest - begin);
    part.x = x_;
    part.width = extent.x;
    x_ += part.width;
    pieces_.push_back(part);
    piece.begin = part.end;
    if (piece.begin < piece.end) new_line();
  }
}

void TokenText::new_line() {
  lines_.push_back(pieces_.size());
  word_ = pieces_.size();
  x_ = 0;
}

std::optional<std::size_t> TokenText::token_at(ImVec2 point) const {
  if (point.y < 0 || point.x < 0 || line_height_ <= 0) return std::nullopt;
  const auto line = static_cast<std::size_t>(point.y / line_height_);
  if (line >= lines_.size()) return std::nullopt;
  for (std::size_t i = lines_[line]; i < end_of(line); ++i) {
    if (point.x >= pieces_[i].x && point.x < pieces_[i].x + pieces_[i].width) return pieces_[i].token;
  }
  return std::nullopt;
}

float TokenText::top_of(std::size_t token) const {
  const auto piece =
      std::lower_bound(pieces_.begin(), pieces_.end(), token,
                       [](const Piece& each, std::size_t wanted) { return each.token < wanted; });
  const auto index = static_cast<std::size_t>(piece - pieces_.begin());
  const auto line = std::upper_bound(lines_.begin(), lines_.end(), index);
  return static_cast<float>(line - lines_.begin() - 1) * line_height_;
}

}  // namespace octavo::ui
