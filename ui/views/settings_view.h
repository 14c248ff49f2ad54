// The settings of the window, over everything else.
#pragma once

#include "ui/frame.h"

namespace octavo::ui {

void draw_settings_view(const Frame& frame, const UiState& state);

}  // namespace octavo::ui
