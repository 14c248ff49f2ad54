// The states of recurrent layers as the strip, the tables and the card draw them. Plain functions.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "app/window/memory/memory_history.h"
#include "app/window/memory/memory_rows.h"
#include "ui/memory_state.h"

namespace octavo::app {

struct StateRows {
  std::vector<ui::ShownState> states;           // parallel to the snapshot's
  std::vector<ui::ShownHostState> host_states;  // of the host pool
};
// `names`: of every sequence that was seen, as a checkpoint outlives its own.
StateRows state_rows(const KvSnapshot& snapshot, const metrics::PoolStory& story,
                     const std::vector<ui::ShownSequence>& sequences, const SequenceNames& names,
                     std::int32_t num_host_states);

// Blocks that end where a checkpoint stands know its state.
void mark_checkpoints(const KvSnapshot& snapshot, std::vector<ui::ShownBlock>& blocks);

// The states that know tokens of these blocks.
std::vector<BlockId> states_of_blocks(const std::vector<BlockId>& blocks,
                                      const std::vector<ui::ShownState>& states);

// What is known of one state at the moment that `state` shows. REQUIRES: `history` was asked for that moment,
// and the state is in it
ui::StateCard state_card(BlockId of, const MemoryHistory& history, const ui::MemoryWorkspaceState& state);

}  // namespace octavo::app
