// What layers with a window keep, as the strip and the card of a block draw it. Plain functions.
#pragma once

#include <vector>

#include "app/window/memory/memory_history.h"
#include "ui/memory_state.h"

namespace octavo::app {

std::vector<ui::ShownWindowPart> window_parts(const KvSnapshot& snapshot);

// Of one block at the moment that `state` shows. REQUIRES: `history` was asked for that moment, and the block
// is in it
ui::WindowCard window_card(BlockId block, const MemoryHistory& history,
                           const ui::MemoryWorkspaceState& state);

}  // namespace octavo::app
