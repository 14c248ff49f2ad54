// The pools of the tour: every block as a large cell with its slots and the words in them, so that the cells
// fill the pane; whose a block is, what this step wrote and read, and what it copied where.
#pragma once

#include "ui/memory_state.h"
#include "ui/views/memory/memory_parts.h"

namespace octavo::ui {

// REQUIRES: state.slots and state.snapshot
void draw_slot_map(const Frame& frame, const MemoryWorkspaceState& state, ImVec2 extent, Pointing& pointing);

// What a sequence's chips say: the first letter of its request, and the number of its output. "C2" of
// "Cat · sample 2".
std::string sequence_tag(std::string_view label);

}  // namespace octavo::ui
