// What happened to blocks lately, told a line each, and the words of single events.
#pragma once

#include <cstddef>

#include "ui/frame.h"
#include "ui/memory_state.h"

namespace octavo::ui {

// At most `limit` lines, oldest first, at the cursor.
void draw_event_lines(const Frame& frame, const TimelineState& timeline, std::size_t limit, float width);

// "reused 38 blocks of Poems", behind the name of who did.
std::string story_text(const Story& story, const TimelineState& timeline);
// What has its colour.
BlockEventKind kind_of(StoryKind kind);

// For words and marks on a panel.
ImU32 event_colour(const Theme& theme, BlockEventKind kind);
// "61 blocks, Poems", "38 → 417, Poems": what happened, behind its word.
std::string event_text(const LogLine& line, const TimelineState& timeline);
std::string_view event_word(BlockEventKind kind);

}  // namespace octavo::ui
