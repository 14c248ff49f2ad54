// One state of recurrent layers looked at closely: what it knows, where it stands, whose it is.
#pragma once

#include "ui/frame.h"
#include "ui/memory_state.h"

namespace octavo::ui {

// REQUIRES: state.state_card
void draw_state_card(const Frame& frame, const MemoryWorkspaceState& state);

}  // namespace octavo::ui
