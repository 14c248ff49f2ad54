// One sentence above a workspace: a notice, or what went wrong. It takes its own space and covers nothing.
#pragma once

#include "ui/frame.h"

namespace octavo::ui {

// From the cursor, `width` wide; the cursor stands below it afterwards. How high it is; 0: there is no
// banner.
float draw_banner_view(const Frame& frame, const UiState& state, float width);

}  // namespace octavo::ui
