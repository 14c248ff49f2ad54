// The pool of layers with a window, a cell for each place: which block's window part lies there, and whether
// somebody reads it. Cells light and choose the block. Where they do not fit they become smaller, then they
// scroll.
#pragma once

#include "ui/memory_state.h"
#include "ui/views/memory/memory_parts.h"

namespace octavo::ui {

// How high the strip is; 0 where no layer has a pool for its window.
float window_part_strip_height(const Frame& frame, const MemoryWorkspaceState& state, float width);
void draw_window_part_strip(const Frame& frame, const MemoryWorkspaceState& state, float width,
                            Pointing& pointing);

}  // namespace octavo::ui
