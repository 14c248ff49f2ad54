// The left column: which workspace, the chats and how each is doing or what a search found in them, and the
// model with its pool.
#pragma once

#include "ui/frame.h"
#include "ui/views/chat_list.h"
#include "ui/views/search_view.h"

namespace octavo::ui {

class SidebarView {
 public:
  void draw(const Frame& frame, const UiState& state);
  // As ChatList::take_ended, also of the search.
  bool take_ended();

 private:
  void draw_top(const Frame& frame, const UiState& state, float width);

  ChatList chats_;
  SearchView search_;
};

}  // namespace octavo::ui
