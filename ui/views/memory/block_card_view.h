// One block looked at closely: what it holds, whose it is, what happened to its place.
#pragma once

#include "ui/memory_state.h"
#include "ui/views/memory/memory_parts.h"

namespace octavo::ui {

// REQUIRES: state.card
void draw_block_card(const Frame& frame, const MemoryWorkspaceState& state);

}  // namespace octavo::ui
