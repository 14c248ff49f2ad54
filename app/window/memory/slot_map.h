// What every slot of a small pool holds, and what the step at a mark did with it: written, read, copied,
// swapped. Told from the events alone, replayed from the first one, so that a word stands where its KV was
// really put. Plain functions; for the tour and for lessons, which are short.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "app/window/memory/memory_history.h"
#include "engine/api/kv_snapshot.h"
#include "ui/tour_state.h"

namespace octavo::app {

// Of sequences, a word for each token.
using WordsOfSequences = std::map<std::uint64_t, std::vector<std::string>>;

// The state before the event of this mark; `snapshot` is that moment's. The history begins with free pools.
ui::SlotMap slot_map(const MemoryHistory& history, std::uint64_t mark, const KvSnapshot& snapshot,
                     const WordsOfSequences& words);

// "This step: computed 1 word, reused 12 · 13 words computed so far"
std::string slot_figures(const ui::SlotMap& map);

}  // namespace octavo::app
