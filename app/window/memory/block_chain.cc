#include "app/window/memory/block_chain.h"

#include <cstddef>

namespace octavo::app {

std::vector<BlockId> chain_from(BlockId last, const KvSnapshot& snapshot) {
  std::vector<BlockId> chain;
  const auto is_held = [&](BlockId block) {
    return block.value >= 0 && index_of(block) < snapshot.blocks.size();
  };
  for (BlockId block = last; is_held(block) && chain.size() <= snapshot.blocks.size();) {
    chain.push_back(block);
    block = BlockId{snapshot.blocks[index_of(block)].parent};
  }
  return chain;
}

}  // namespace octavo::app
