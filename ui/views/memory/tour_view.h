// The tour's words: chapters, the sentence of this step, and the way on.
#pragma once

#include "ui/memory_state.h"
#include "ui/views/memory/memory_parts.h"

namespace octavo::ui {

void draw_tour(const Frame& frame, const MemoryWorkspaceState& state, float width);
// Design pixels that it takes.
inline constexpr float kTourHeight = 118;

}  // namespace octavo::ui
