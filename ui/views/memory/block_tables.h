// A row for each sequence, its blocks in logical order: the n-th block of every row stands in the same
// column, so that shared prefixes line up.
#pragma once

#include "ui/memory_state.h"
#include "ui/views/memory/memory_parts.h"

namespace octavo::ui {

void draw_block_tables(const Frame& frame, const MemoryWorkspaceState& state, Pointing& pointing);

}  // namespace octavo::ui
