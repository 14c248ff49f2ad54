// The states of recurrent layers, a cell each: who owns it, or where a checkpoint stands. A flag in
// a cell is a checkpoint, with the letter of its place. Where the cells do not fit they scroll.
#pragma once

#include "ui/memory_state.h"
#include "ui/views/memory/memory_parts.h"

namespace octavo::ui {

// How high the strip is; 0 for a model without recurrent layers.
float state_strip_height(const Frame& frame, const MemoryWorkspaceState& state, float width);
void draw_state_strip(const Frame& frame, const MemoryWorkspaceState& state, float width, Pointing& pointing);

// A corner of a cell behind which a checkpoint stands.
void draw_checkpoint_flag(const Frame& frame, ImDrawList* list, ImVec2 low, ImVec2 high, ImU32 ground);
// The mark of a sequence's state, beside its row in the tables.
void draw_state_mark(const Frame& frame, const MemoryWorkspaceState& state, const TableLine& line,
                     ImVec2 centre, Pointing& pointing);

// A few lines for a tooltip.
std::string state_summary(const MemoryWorkspaceState& state, int state_slot);

}  // namespace octavo::ui
