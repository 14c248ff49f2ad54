// What the pool knows about one physical block, and a copy between two. Ids and counts only: the keys and
// values themselves lie in the runner's KV cache.
#pragma once

#include <cstdint>

#include "engine/api/kv_snapshot.h"
#include "engine/base/ids.h"

namespace octavo::block {

inline constexpr BlockId kNoBlock{-1};

struct Block {
  BlockState state = BlockState::kFree;
  std::int32_t ref_count = 0;     // table entries that name it
  std::int32_t num_filled = 0;    // slots whose KV was computed
  std::int32_t num_assigned = 0;  // slots that belong to a known token, computed or not; >= num_filled
};

// Contents of `source` go to `target`, on the device, before anything of the step is written.
struct BlockCopy {
  BlockId source;
  BlockId target;
};

constexpr std::int32_t blocks_for(std::int32_t num_tokens, std::int32_t block_size) {
  return (num_tokens + block_size - 1) / block_size;
}

}  // namespace octavo::block
