// In which order cached contents would be given up: what engine/block does when room
// is needed, derived from a snapshot.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/api/kv_snapshot.h"

namespace octavo::metrics {

// [block]: the findable blocks that continue it in the prefix cache, ascending. A snapshot of an untrusted
// recording may name any parents.
std::vector<std::vector<std::int32_t>> prefix_children(const KvSnapshot& snapshot);

// For each block, how many cached ones would be given up before it: leaves before parents, the lowest class
// first, within it the least recently used; blocks in use and free ones: -1. Nothing else is taken meanwhile.
std::vector<std::int32_t> eviction_places(const KvSnapshot& snapshot);

}  // namespace octavo::metrics
