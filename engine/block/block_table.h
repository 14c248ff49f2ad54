// Which physical block holds the i-th block of a sequence, how far its keys and values are computed, and
// where its sealed (full, findable) part ends in the prefix cache. A value that only the BlockManager
// changes: dropping one that still names blocks would leak them. Engine thread.
//
// Invariants: num_sealed * block_size <= num_computed_tokens <= num_assigned_tokens <= blocks().size() *
// block_size. The last block holds at least one assigned token, unless the blocks are a contiguous
// reservation. While swapped out, blocks() are those of the host pool and hold computed tokens only.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/base/ids.h"
#include "engine/block/block.h"
#include "engine/block/prefix_cache.h"

namespace octavo::block {

class BlockTable {
 public:
  explicit BlockTable(SequenceId owner) : owner_(owner) {}

  SequenceId owner() const { return owner_; }
  std::span<const BlockId> blocks() const { return blocks_; }
  std::int32_t num_blocks() const { return static_cast<std::int32_t>(blocks_.size()); }
  std::int32_t num_computed_tokens() const { return num_computed_tokens_; }  // KV exists
  std::int32_t num_assigned_tokens() const { return num_assigned_tokens_; }  // has a slot
  bool empty() const { return blocks_.empty(); }
  bool is_swapped_out() const { return is_swapped_out_; }
  // What recurrent layers know of the computed tokens, in the pool of states (swapped out: in the host's);
  // kNoBlock: there are no such layers, or nothing is computed.
  BlockId state() const { return state_; }

 private:
  friend class BlockManager;

  SequenceId owner_;
  std::vector<BlockId> blocks_;
  std::int32_t num_computed_tokens_ = 0;
  std::int32_t num_assigned_tokens_ = 0;
  std::int32_t num_sealed_blocks_ = 0;
  PrefixNodeId last_sealed_ = kNoNode;  // node of block num_sealed_blocks - 1
  bool is_swapped_out_ = false;
  BlockId state_ = kNoBlock;
  std::int32_t last_checkpoint_ = 0;  // position of the newest one that is known of these tokens

  // What match() found behind the sealed part when it was asked last, by serial: whoever waits for blocks
  // asks in every step, and looks up only what is new. Of a table without a sealed part.
  struct KnownNode {
    PrefixNodeId node;
    std::uint64_t serial = 0;
  };
  std::vector<KnownNode> known_;
};

}  // namespace octavo::block
