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
  std::int32_t ref_count = 0;     // table entries that name it, and pins
  std::int32_t num_pins = 0;      // of ref_count, references that no table has: a copy reads it in this step
  std::int32_t num_filled = 0;    // slots whose KV was computed
  std::int32_t num_assigned = 0;  // slots that belong to a known token, computed or not; >= num_filled
  std::int64_t last_step = 0;     // when it last changed
};

// Contents of `source` go to `target`, on the device, before anything of the step is written.
struct BlockCopy {
  BlockId source;
  BlockId target;
};

// Contents move between the pools, in the direction of the list that this stands in.
struct BlockSwap {
  BlockId device_block;
  BlockId host_block;  // index in the host pool
};

// A change of whole places of a pool beside that of the blocks, made in a step before anything is computed
// and in the order given: a later one may write what an earlier one has read.
enum class PoolMoveKind : std::uint8_t {
  kClear,    // target becomes the state before the first token
  kCopy,     // within the device
  kSwapOut,  // source on the device, target in the host pool
  kSwapIn,   // the other way
};
struct PoolMove {
  PoolMoveKind kind = PoolMoveKind::kClear;
  BlockId source = kNoBlock;
  BlockId target = kNoBlock;
};

constexpr std::int32_t blocks_for(std::int32_t num_tokens, std::int32_t block_size) {
  return (num_tokens + block_size - 1) / block_size;
}

}  // namespace octavo::block
