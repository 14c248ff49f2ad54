// The prefix cache as runs of blocks: chains of parents without a fork in them, with what each is worth and
// in which order they would go.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "engine/api/kv_snapshot.h"
#include "engine/metrics/pool_story.h"
#include "ui/memory_state.h"

namespace octavo::app {

using TextOfBlock = std::function<std::string(BlockId)>;

// The text of a block, of contents that were computed by some sequence; `story` is of the snapshot's moment.
std::vector<ui::PrefixRun> make_prefix_tree(const KvSnapshot& snapshot, const metrics::PoolStory& story,
                                            const TextOfBlock& text_of);

}  // namespace octavo::app
