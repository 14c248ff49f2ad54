// The saturated queue of the paper: the same stream of requests under four memory managers, and what their
// slots hold, live.
#pragma once

#include "ui/memory_state.h"
#include "ui/views/memory/memory_parts.h"

namespace octavo::ui {

// Inside a card, from the cursor.
void draw_saturated_queue(const Frame& frame, const MemoryWorkspaceState& state, float width);

}  // namespace octavo::ui
