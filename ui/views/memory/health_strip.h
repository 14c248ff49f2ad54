// The figures of the pools with a minute's curves, and what happened lately in plain sentences. A figure
// tells its definition under the pointer.
#pragma once

#include "ui/memory_state.h"
#include "ui/views/memory/memory_parts.h"

namespace octavo::ui {

// As many figures as fit in a row, and a button for the others; with `all`, rows for every one. Returns
// whether all are wanted from now on.
bool draw_health_strip(const Frame& frame, const MemoryWorkspaceState& state, float width, bool all);
void draw_health_sentences(const Frame& frame, const MemoryWorkspaceState& state, float width);

}  // namespace octavo::ui
