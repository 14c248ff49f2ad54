// The left column: which workspace, the chats and how each is doing, and the model with its pool.
#pragma once

#include <string>

#include "ui/frame.h"
#include "ui/state.h"

namespace octavo::ui {

class SidebarView {
 public:
  void draw(const Frame& frame, const UiState& state);

 private:
  void draw_top(const Frame& frame, const UiState& state, float width);
  void draw_sessions(const Frame& frame, const UiState& state, float width, float height);
  void draw_session(const Frame& frame, const SessionState& session, bool active, float width);
  void draw_session_buttons(const Frame& frame, const SessionState& session, ImVec2 row_high);
  void draw_rename(const Frame& frame, const SessionState& session, ImVec2 low, float width);

  SessionId renaming_{};  // 0: none
  bool focus_rename_ = false;
  std::string rename_text_;
};

}  // namespace octavo::ui
