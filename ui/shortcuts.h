// The keyboard shortcuts that count everywhere in the window.
#pragma once

#include "ui/frame.h"

namespace octavo::ui {

// `escape_is_taken`: something in front of the answer is closed by Escape first.
void apply_shortcuts(const Frame& frame, const UiState& state, bool escape_is_taken = false);

}  // namespace octavo::ui
