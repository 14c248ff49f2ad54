// The block and those before it in the prefix cache, as a snapshot has them.
#pragma once

#include <vector>

#include "engine/api/kv_snapshot.h"
#include "engine/base/ids.h"

namespace octavo::app {

// The last one first; none for an id that the snapshot does not hold. Ends also where a history that
// contradicts itself would go round.
std::vector<BlockId> chain_from(BlockId last, const KvSnapshot& snapshot);

}  // namespace octavo::app
