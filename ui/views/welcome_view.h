// What is shown while there is no model: that it loads, or what to do to get one.
#pragma once

#include "ui/frame.h"

namespace octavo::ui {

// In the middle of what is left of the window.
void draw_welcome_view(const Frame& frame, const UiState& state);

// The same in one line above a chat, which can be read without a model: from the cursor, `width` wide; the
// cursor stands below it afterwards. How high it is.
float draw_no_model_strip(const Frame& frame, const UiState& state, float width);

}  // namespace octavo::ui
