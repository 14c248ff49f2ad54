// The paper's comparison: the same stream of requests under four memory managers, and what their slots hold.
#pragma once

#include "ui/memory_state.h"
#include "ui/views/memory/memory_parts.h"

namespace octavo::ui {

void draw_paper(const Frame& frame, const MemoryWorkspaceState& state, ImVec2 extent);

}  // namespace octavo::ui
