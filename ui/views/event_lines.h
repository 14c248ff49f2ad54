// The newest things that happened to blocks, a line each.
#pragma once

#include <cstddef>

#include "ui/frame.h"
#include "ui/memory_state.h"

namespace octavo::ui {

// At most `limit` lines, oldest first, at the cursor.
void draw_event_lines(const Frame& frame, const MemoryState& memory, std::size_t limit, float width);

ImU32 event_colour(const Theme& theme, BlockEventKind kind);
// "hit 61 blocks", "copy 38 → 417"
std::string event_text(const EventLine& event);
std::string_view event_word(BlockEventKind kind);

}  // namespace octavo::ui
