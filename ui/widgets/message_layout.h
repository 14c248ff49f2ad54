// A message laid out as lines of runs, kept from frame to frame. Blocks that are closed are laid out once;
// text that grows at its end costs only the end (see markdown.h). What is off screen is not drawn.
//
// Positions are pixels from the layout's top left corner; places in the text are byte offsets of the message.
#pragma once

#include <imgui.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "ui/frame.h"
#include "ui/widgets/code_lexer.h"
#include "ui/widgets/markdown.h"

namespace octavo::ui {

// Characters for which no installed font has a picture; they are drawn as empty boxes.
struct MissingGlyphs {
  bool ideographic = false;
  bool emoji = false;
  bool other = false;
  bool any() const { return ideographic || emoji || other; }
};

// What is drawn over the text.
struct TextMarks {
  TextRange selection = {};
  std::span<const TextRange> matches = {};     // ascending, apart from each other
  TextRange current_match = {};                // one of them, or empty
  std::span<const TextRange> highlights = {};  // of blocks that are pointed at elsewhere
  ImU32 highlight_colour = 0;
};

// The colour of each kind of token on a code block's background, readable on it (contrast 4.5 or more).
ImU32 code_colour(const Theme& theme, CodeKind kind);

class MessageLayout {
 public:
  // Lays out what changed since the last call. `text` may only have grown while format, width, scale and
  // fonts are the same.
  void update(const Frame& frame, std::string_view text, TextFormat format, float width);
  // Forgets everything: for a text that is not the old one with more behind it.
  void clear();

  float height() const { return height_; }
  float width() const;  // of the widest line
  // Where the last character ends, top of its line.
  ImVec2 end_position() const { return end_; }
  const MissingGlyphs& missing_glyphs() const { return missing_; }

  // Draws the lines between the clip's edges, with its top left corner at `top_left` (screen). Returns code
  // that its button asks to copy.
  std::optional<std::string> draw(const Frame& frame, std::string_view text, ImVec2 top_left, float clip_top,
                                  float clip_bottom, ImU32 colour, const TextMarks& marks = {}) const;

  // The place between two characters that is nearest to a position.
  std::uint32_t offset_at(const Frame& frame, std::string_view text, ImVec2 position) const;
  // The address under a position; empty when there is none.
  std::string_view link_at(ImVec2 position) const;
  // Whether there is text to select under a position, give or take a line's end.
  bool is_over_text(ImVec2 position) const;
  // Where a character begins, top of its line.
  ImVec2 position_of(const Frame& frame, std::string_view text, std::uint32_t offset) const;
  // What a double and a triple click take.
  TextRange word_at(std::string_view text, std::uint32_t offset) const;
  TextRange paragraph_at(std::string_view text, std::uint32_t offset) const;

  // Work done so far, also again: what growth costs.
  std::uint64_t num_blocks_laid_out() const { return num_blocks_laid_out_; }
  std::uint64_t num_bytes_parsed() const { return document_.num_bytes_parsed(); }

 private:
  enum class RunKind : std::uint8_t { kText, kLiteral, kMark, kMissing };
  struct Run {
    TextRange range;  // of the message
    TextRange part;   // of what is shown: the message, or of a literal its own bytes
    float x = 0, width = 0;
    std::int32_t link = -1;
    std::int32_t literal = -1;  // of the document, or of labels_ for a mark
    RunKind kind = RunKind::kText;
    std::uint8_t style = 0;
    CodeKind code = CodeKind::kPlain;
  };
  struct Line {
    float y = 0;  // relative to the block's top
    std::uint32_t first_run = 0, num_runs = 0;
    TextRange range;
  };
  struct Block {
    float y = 0, height = 0, x = 0;  // relative to the layout's top left
    float line_height = 0;
    float width = 0;  // of the room for its lines
    float gap_above = 0;
    float widest_so_far = 0;  // of this block's lines and of those before
    CodeState code_state_after = {};
    std::uint32_t first_column = 0;  // of a table row, in columns_
    TextRange range;
    std::vector<Line> lines = {};
    std::vector<Run> runs = {};
  };
  struct Column {
    float x = 0, width = 0;
  };
  class LineFiller;

  void lay_out_from(const Frame& frame, std::string_view text, std::size_t first_block);
  void lay_out_block(const Frame& frame, std::string_view text, std::size_t index);
  void lay_out_code(const Frame& frame, std::string_view text, std::size_t index);
  void lay_out_row(const Frame& frame, std::string_view text, std::size_t index);
  void choose_columns(const Frame& frame, std::string_view text, std::size_t first_row);
  float natural_width(const Frame& frame, std::string_view text, const MarkdownBlock& row,
                      const TableCell& cell);
  void place_block(const Frame& frame, std::size_t index);
  void finish(const Frame& frame);

  void draw_block(const Frame& frame, std::string_view text, std::size_t index, ImVec2 top_left,
                  float clip_top, float clip_bottom, ImU32 colour, const TextMarks& marks) const;
  bool draw_code_card(const Frame& frame, std::string_view text, std::size_t index, ImVec2 top_left) const;
  void draw_containers(const Frame& frame, std::size_t index, ImVec2 top_left) const;
  void draw_row(const Frame& frame, std::size_t index, ImVec2 top_left) const;
  void draw_marks(const Frame& frame, std::string_view text, const Block& block, const Line& line,
                  ImVec2 origin, const TextMarks& marks) const;
  void draw_range(const Frame& frame, std::string_view text, const Block& block, const Line& line,
                  ImVec2 origin, TextRange range, ImU32 colour) const;
  void draw_run(const Frame& frame, std::string_view text, std::size_t index, const Run& run, ImVec2 origin,
                ImU32 colour) const;

  std::string_view shown(std::string_view text, const Run& run) const;
  float x_in_run(const Frame& frame, std::string_view text, std::size_t block, const Run& run,
                 std::uint32_t offset) const;
  std::size_t block_at(float y) const;
  std::size_t block_of(std::uint32_t offset) const;
  std::pair<std::size_t, const Line*> line_near(ImVec2 position) const;
  const Run* run_under(ImVec2 position) const;
  bool card_goes_on(std::size_t index) const;

  MarkdownDocument document_;
  TextFormat format_ = TextFormat::kPlain;
  std::size_t laid_out_bytes_ = 0;
  float width_limit_ = 0;
  float scale_ = 0;
  std::vector<Block> blocks_;  // as many as the document has
  std::vector<Column> columns_;
  std::vector<std::string> labels_;  // of marks
  std::unordered_map<char32_t, std::int32_t> label_of_;
  MissingGlyphs missing_;
  float height_ = 0;
  ImVec2 end_{};
  std::uint64_t num_blocks_laid_out_ = 0;
};

}  // namespace octavo::ui
