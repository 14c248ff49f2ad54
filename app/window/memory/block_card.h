// What is known of one block at a moment of a history: its state, its owners and what happened to it.
#pragma once

#include <string>

#include "app/window/memory/memory_history.h"
#include "ui/memory_state.h"

namespace octavo::app {

// `text`: of its tokens. REQUIRES: `history` was asked for the moment that `state` shows, and the block is in
// it
ui::BlockCard block_card(BlockId block, const MemoryHistory& history, const ui::MemoryWorkspaceState& state,
                         std::string text);

}  // namespace octavo::app
