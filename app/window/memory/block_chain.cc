#include "app/window/memory/block_chain.h"

#include <cstddef>

namespace octavo::app {

std::vector<BlockId> chain_from(BlockId last, const KvSnapshot& snapshot) {
  std::vector<BlockId> chain;
  const auto is_held = [&](BlockId block) {
    return block.value >= 0 && static_cast<std::size_t>(block.value) < snapshot.blocks.size();
  };
  for (BlockId block = last; is_held(block) && chain.size() <= snapshot.blocks.size();) {
    chain.push_back(block);
    block = BlockId{snapshot.blocks[static_cast<std::size_t>(block.value)].parent};
  }
  return chain;
}

}  // namespace octavo::app
