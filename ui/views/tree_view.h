// All branches of the chat that is shown, as a tree: a row for each message, the shown path marked. A click
// or Enter goes to a message's branch; arrows move along rows, to the parent and to the first child.
//
// Only the rows in sight are drawn: a chat of ten thousand messages costs what a short one does.
#pragma once

#include <cstddef>
#include <cstdint>

#include "ui/chat_state.h"
#include "ui/frame.h"

namespace octavo::ui {

class TreeView {
 public:
  // In the rectangle from the cursor, `extent` large.
  void draw(const Frame& frame, const UiState& state, ImVec2 extent);
  // The keyboard goes to the tree in the next frame.
  void focus() { focus_ = true; }

 private:
  void choose_selected(const BranchTree& tree);
  void take_keys(const Frame& frame, const BranchTree& tree);
  void draw_rows(const Frame& frame, const BranchTree& tree, ImVec2 extent);
  void draw_row(const Frame& frame, const BranchTree& tree, std::size_t index, ImVec2 low, float width);
  void draw_lines(const Frame& frame, const BranchTree& tree, std::size_t index, ImVec2 low) const;
  float lane_x(const Frame& frame, std::int32_t lane) const;
  void go_to(const Frame& frame, const BranchTree& tree, std::size_t index);

  ChatId shown_chat_{};
  MessageId selected_id_;        // a message; 0: none
  std::size_t selected_ = 0;     // its index
  std::int32_t first_lane_ = 0;  // what is further left is not drawn
  bool focus_ = true;
  bool focused_ = false;  // in the frame before
  bool scroll_to_selected_ = false;
};

}  // namespace octavo::ui
