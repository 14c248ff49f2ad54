// Tokens as wrapped text: laid out once when they come, drawn as often as wanted, visible lines only.
//
// UI thread. Holds byte ranges of the text and no copy: what is drawn is the text that was last laid out.
#pragma once

#include <imgui.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "ui/compare_state.h"
#include "ui/frame.h"

namespace octavo::ui {

class TokenText {
 public:
  // A stretch of one token on one line. Words wrap as a whole, whatever tokens spell them.
  struct Piece {
    std::uint32_t token = 0;
    std::uint32_t begin = 0, end = 0;  // of the column's text; empty where nothing is to be drawn
    float x = 0, width = 0;
    bool is_space = false;
  };

  // Brings the layout up to date; tokens that were laid out before cost nothing.
  void update(const Frame& frame, const ComparedColumn& column, float width);
  // The same of a text whose tokens end at these bytes. Another `id` is another text.
  void update(const Frame& frame, std::uint64_t id, std::string_view text,
              std::span<const std::uint32_t> ends, float width);

  float height() const { return static_cast<float>(lines_.size()) * line_height_; }
  float line_height() const { return line_height_; }
  std::size_t num_lines() const { return lines_.size(); }
  std::size_t num_tokens_laid_out() const { return num_laid_out_; }  // since the last start from nothing

  // Calls `visit(piece, y)` for the pieces of lines between two heights, relative to the layout's top.
  template <class Visit>
  void for_each_piece(float from, float to, Visit visit) const {
    if (lines_.empty() || line_height_ <= 0) return;
    const auto first = static_cast<std::size_t>(std::max(0.0f, from / line_height_));
    for (std::size_t line = first; line < lines_.size(); ++line) {
      const float y = static_cast<float>(line) * line_height_;
      if (y > to) return;
      for (std::size_t i = lines_[line]; i < end_of(line); ++i) visit(pieces_[i], y);
    }
  }

  // The token at a point relative to the layout's top left.
  std::optional<std::size_t> token_at(ImVec2 point) const;
  // Top of the line on which a token begins.
  float top_of(std::size_t token) const;

 private:
  struct Source {
    std::uint64_t id = 0;
    std::uint32_t rewritten = 0;
    std::string_view text;
    std::size_t num_tokens = 0;
  };
  // Begins anew where it is another text, or another width.
  void follow(const Frame& frame, const Source& source, float width);
  void add_token(std::string_view text, std::size_t begin, std::size_t end, std::size_t token);
  void add_piece(std::string_view text, Piece piece);
  void break_word(std::string_view text, Piece piece);
  void new_line();
  std::size_t end_of(std::size_t line) const {
    return line + 1 < lines_.size() ? lines_[line + 1] : pieces_.size();
  }

  Face face_{};
  float width_ = 0;
  float line_height_ = 0;
  std::uint64_t id_ = 0;
  std::uint32_t rewritten_ = 0;
  std::size_t num_laid_out_ = 0;
  std::size_t text_bytes_ = 0;
  std::vector<Piece> pieces_;
  std::vector<std::size_t> lines_;  // first piece of each
  std::size_t word_ = 0;            // first piece of the word that may still grow
  float x_ = 0;
};

}  // namespace octavo::ui
