// The settings of the window, over everything else.
//
// UI thread. Keeps the system prompt for new chats while it is written.
#pragma once

#include <string>

#include "ui/frame.h"

namespace octavo::ui {

class SettingsView {
 public:
  // `shown_zoom`: what this window has room for of the zoom that is wanted.
  void draw(const Frame& frame, const UiState& state, float shown_zoom);

 private:
  void draw_new_chats(const Frame& frame, const UiState& state, float width);
  void keep_system_prompt(const Frame& frame, const UiState& state) const;

  std::string system_prompt_;
  bool was_open_ = false;
};

}  // namespace octavo::ui
