// One answer: its head, its text with colours, its blocks, and what can be done with it.
//
// Keeps layouts and scroll positions of its column.
#pragma once

#include <cstdint>
#include <string>

#include "ui/compare_state.h"
#include "ui/frame.h"
#include "ui/views/compare/compare_look.h"
#include "ui/views/compare/token_text.h"
#include "ui/views/compare/word_diff.h"
#include "ui/widgets/message_layout.h"

namespace octavo::ui {

// Its last digits, by which a person tells seeds apart: "…4711".
std::string seed_suffix(std::uint64_t seed);

class ColumnView {
 public:
  // In the rectangle from the cursor.
  void draw(const Frame& frame, const UiState& state, const ComparedColumn& column, CompareLook& look,
            ImVec2 extent);

  const TokenText& text() const { return text_; }

 private:
  void draw_head(const Frame& frame, const UiState& state, const ComparedColumn& column, CompareLook& look,
                 float width);
  void draw_body(const Frame& frame, const UiState& state, const ComparedColumn& column, CompareLook& look,
                 ImVec2 extent);
  void draw_tokens(const Frame& frame, const UiState& state, const ComparedColumn& column, CompareLook& look,
                   ImVec2 origin, float from, float to) const;
  void draw_formatted(const Frame& frame, const ComparedColumn& column, ImVec2 origin, float from,
                      float to) const;
  void draw_difference(const Frame& frame, ImVec2 origin, float from, float to) const;
  void point_at(const Frame& frame, const UiState& state, const ComparedColumn& column, CompareLook& look,
                ImVec2 origin);
  void draw_foot(const Frame& frame, const UiState& state, const ComparedColumn& column, CompareLook& look,
                 float width);
  void choose_scroll(const ComparedColumn& column, const CompareLook& look, float view_height);
  void follow_scroll(const Frame& frame, const ComparedColumn& column, CompareLook& look);
  void update_formatted(const Frame& frame, const ComparedColumn& column, float width);
  void update_difference(const ComparedColumn& reference, const ComparedColumn& column);

  TokenText text_;
  MessageLayout formatted_;
  std::uint32_t formatted_rewritten_ = 0;
  float scroll_ = 0, end_ = 0;
  bool following_ = true;
  // The words of both answers in reading order, laid out as tokens.
  ComparedColumn difference_;
  WordDiff words_;
  TokenText difference_text_;
  std::size_t compared_bytes_ = 0, reference_bytes_ = 0;
  ColumnId compared_with_{};
  double compared_at_ = 0;  // ImGui's clock
};

}  // namespace octavo::ui
