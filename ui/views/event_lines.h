// The newest things that happened to blocks, a line each.
#pragma once

#include <cstddef>

#include "ui/frame.h"
#include "ui/memory_state.h"

namespace octavo::ui {

// At most `limit` lines, oldest first, at the cursor.
void draw_event_lines(const Frame& frame, const TimelineState& timeline, std::size_t limit, float width);

ImU32 event_colour(const Theme& theme, BlockEventKind kind);
// "61 blocks, Poems", "38 → 417, Poems": what happened, behind its word.
std::string event_text(const LogLine& line, const TimelineState& timeline);
std::string_view event_word(BlockEventKind kind);

}  // namespace octavo::ui
