// What is shown while there is no model: that it loads, or what to do to get one.
#pragma once

#include "ui/frame.h"

namespace octavo::ui {

void draw_welcome_view(const Frame& frame, const UiState& state);

}  // namespace octavo::ui
