// The search over all chats: a field, and what was found, each hit with the words around it.
#pragma once

#include <string>
#include <utility>

#include "ui/chat_state.h"
#include "ui/frame.h"

namespace octavo::ui {

class SearchView {
 public:
  void draw_field(const Frame& frame, const UiState& state, float width);
  // Whether the field was left by a key since the last call.
  bool take_ended() { return std::exchange(ended_, false); }
  void draw_hits(const Frame& frame, const UiState& state, ImVec2 extent);

 private:
  void draw_hit(const Frame& frame, const SearchHitState& hit, float width);
  static void open_hit(const Frame& frame, const SearchHitState& hit);

  int last_frame_ = -2;  // in which the field was drawn
  std::string query_;
  bool ended_ = false;
  bool opens_first_ = false;  // of what is found: Enter was pressed
};

}  // namespace octavo::ui
