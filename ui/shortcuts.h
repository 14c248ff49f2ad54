// The keyboard shortcuts that count everywhere in the window.
#pragma once

#include "ui/frame.h"
#include "ui/state.h"

namespace octavo::ui {

void apply_shortcuts(const Frame& frame, const UiState& state);

}  // namespace octavo::ui
