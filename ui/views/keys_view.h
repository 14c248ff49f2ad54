// Every key of the window, with what it does, over everything else.
#pragma once

#include "ui/frame.h"

namespace octavo::ui {

void draw_keys_view(const Frame& frame, const UiState& state);

}  // namespace octavo::ui
