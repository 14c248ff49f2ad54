// The prefix cache as a tree of runs of blocks, each with its text and what it is worth.
#pragma once

#include "ui/memory_state.h"
#include "ui/views/memory/memory_parts.h"

namespace octavo::ui {

void draw_prefix_tree(const Frame& frame, const MemoryWorkspaceState& state, Pointing& pointing);

}  // namespace octavo::ui
