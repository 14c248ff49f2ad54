// A panel in the middle of the window that takes the keyboard until it is closed.
#pragma once

#include "ui/frame.h"

namespace octavo::ui {

struct DialogOptions {
  const char* id = "";  // of the popup
  const char* title = "";
  float width = 560;    // design pixels; less in a narrow window
  float height = 0;     // design pixels; 0: as high as its content
  bool scrolls = true;  // as a whole, when its content does not fit
};

// Follows `open`. True while it is shown; then end_dialog must follow.
bool begin_dialog(const Frame& frame, const DialogOptions& options, bool open);

// Draws the button that closes it. True when the person closed it, which `open` must follow.
bool end_dialog(const Frame& frame, bool open);

}  // namespace octavo::ui
