// What the cards of the Memory workspace have in common: of a block (block_card_view.h) and of a state of
// recurrent layers (state_card_view.h).
#pragma once

#include <span>
#include <string>

#include "ui/memory_state.h"
#include "ui/views/memory/memory_parts.h"

namespace octavo::ui {

// With a button at the right. True: it was pressed, and the card shall close.
bool draw_card_heading(const Frame& frame, const std::string& heading, const char* button_id);

// A line in the colour of each owner: its label and `index_text` of its index.
void draw_card_owners(const Frame& frame, const char* heading, std::span<const BlockOwner> owners,
                      std::string (*index_text)(std::int32_t index), float width);

// The newest events, newest first; a click goes to the moment behind one.
void draw_card_history(const Frame& frame, const MemoryWorkspaceState& state,
                       std::span<const BlockHistoryLine> history, float width);

}  // namespace octavo::ui
