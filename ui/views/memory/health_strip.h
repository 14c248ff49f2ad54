// The figures of the pools with a minute's curves, and what happened lately in plain sentences. A figure
// tells its definition under the pointer.
#pragma once

#include "ui/memory_state.h"
#include "ui/views/memory/memory_parts.h"

namespace octavo::ui {

// As many figures as fit in a row; with `all`, rows for every one.
void draw_health_strip(const Frame& frame, const MemoryWorkspaceState& state, float width, bool all);
void draw_health_sentences(const Frame& frame, const MemoryWorkspaceState& state, float width);

}  // namespace octavo::ui
