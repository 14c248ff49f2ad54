// One sentence over the top of the window: a notice, or what went wrong.
#pragma once

#include "ui/frame.h"

namespace octavo::ui {

void draw_banner_view(const Frame& frame, const UiState& state);

}  // namespace octavo::ui
