// A snapshot as the map and the tables draw it: owners, sharing groups, rows under their parents. Plain
// functions.
#pragma once

#include <map>
#include <vector>

#include "engine/api/kv_snapshot.h"
#include "ui/chat_state.h"
#include "ui/memory_state.h"

namespace octavo::app {

using SequenceNames = std::map<std::uint64_t, ui::ShownSequence>;

// Parallel to the snapshot's sequences.
std::vector<ui::ShownSequence> sequences_of(const KvSnapshot& snapshot, const SequenceNames& names);

struct BlockOwners {
  std::vector<ui::ShownBlock> blocks;    // parallel to the snapshot's
  std::vector<ui::SharingGroup> groups;  // most blocks first
};
BlockOwners owners_of(const KvSnapshot& snapshot, const std::vector<ui::ShownSequence>& sequences);

// Requests in order of arrival; several outputs stand under a heading.
std::vector<ui::TableLine> table_lines(const KvSnapshot& snapshot,
                                       const std::vector<ui::ShownSequence>& sequences);

// Of chats that hold blocks without an answer under way: what they left in the cache.
void add_ghost_lines(const std::vector<ui::ChatState>& chats, std::vector<ui::TableLine>& lines);

}  // namespace octavo::app
