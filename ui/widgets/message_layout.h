// A message laid out once and drawn many times: blocks, lines and runs of text with their places. Only what
// grew is laid out again, and only visible lines are drawn.
//
// UI thread. Holds byte ranges of the message's text and no copy of it: `draw` is given the same text as
// `update`.
#pragma once

#include <imgui.h>

#include <cstdint>
#include <string_view>
#include <vector>

#include "ui/frame.h"
#include "ui/widgets/markdown.h"

namespace octavo::ui {

enum class TextFormat { kPlain, kMarkdown };

class MessageLayout {
 public:
  // Brings the layout up to date. Text that was laid out before may only have grown at its end.
  void update(const Frame& frame, std::string_view text, TextFormat format, float width);

  float height() const { return height_; }
  // Of the widest line.
  float width() const { return widest_; }
  // Where a caret behind the last character stands, its line's top left, relative to the layout's.
  ImVec2 end_position() const { return end_; }

  // Draws the lines between `clip_top` and `clip_bottom` (screen). Code blocks carry a button; the code to
  // copy when it was pressed in this frame, else an empty range.
  TextRange draw(const Frame& frame, std::string_view text, ImVec2 top_left, float clip_top,
                 float clip_bottom, ImU32 colour) const;

 private:
  struct Run {
    TextRange range;
    float x = 0;
    float width = 0;
    SpanStyle style = SpanStyle::kPlain;
  };
  struct Line {
    float y = 0;  // relative to the block's top
    std::uint32_t first_run = 0, num_runs = 0;
  };
  struct Block {
    MarkdownBlock markdown;
    float y = 0, height = 0, x = 0;  // relative to the layout's top left
    float padding = 0;
    float line_height = 0;
    std::vector<Line> lines = {};
    std::vector<Run> runs = {};
  };
  class LineFiller;

  void lay_out_from(const Frame& frame, std::string_view text, std::size_t first_block);
  void lay_out_block(const Frame& frame, std::string_view text, Block& block) const;
  void place_block(const Frame& frame, std::size_t index);
  void finish(const Frame& frame);
  void draw_block(const Frame& frame, std::string_view text, const Block& block, ImVec2 top_left,
                  float clip_top, float clip_bottom, ImU32 colour) const;
  bool draw_code_header(const Frame& frame, std::string_view text, const Block& block, ImVec2 top_left) const;

  TextFormat format_ = TextFormat::kPlain;
  std::size_t laid_out_bytes_ = 0;
  float width_limit_ = 0;
  float scale_ = 0;
  std::vector<Block> blocks_;
  float height_ = 0;
  float widest_ = 0;
  ImVec2 end_{};
};

}  // namespace octavo::ui
