// The physical blocks: which are free, how often each is used, how full it is. It never touches KV memory.
//
//   kFree --take--> kUsed --unref to 0--> kCached --discard--> kFree
//                     ^----------- ref ------'
//
// A block whose last reference went keeps its contents until they are discarded: the manager decides at once
// whether they are worth keeping. Free blocks are taken last in, first out, so that a small working set stays
// small; from a fresh pool in ascending order. Nothing is allocated after construction. Engine thread; the
// same calls give the same ids.
//
// Invariants (broken_invariant() recounts them):
//   1. num_free + num_cached + num_used = num_blocks.
//   2. A block is in the free list exactly once when its state is kFree, and else not at all.
//   3. ref_count > 0 exactly when the state is kUsed; num_pins <= ref_count; num_filled <= num_assigned <=
//   block_size.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/block/block.h"

namespace octavo::block {

class BlockPool {
 public:
  // REQUIRES: num_blocks >= 0, block_size >= 1
  BlockPool(std::int32_t num_blocks, std::int32_t block_size);

  // Changes from now on happen in this step: Block::last_step.
  void begin_step(std::int64_t step) { step_ = step; }

  // kFree -> kUsed with one reference and no filled slot. REQUIRES: num_free() > 0
  BlockId take();
  // The same for a certain block, in O(num_free()): for contiguous reservations. REQUIRES: it is free.
  void take(BlockId block);
  // One reference more: kCached or kUsed -> kUsed. Returns the count after.
  std::int32_t ref(BlockId block);
  // One reference less; the last one leaves the block kCached. Returns the count after.
  std::int32_t unref(BlockId block);
  // One reference more that no table has, and its end.
  std::int32_t pin(BlockId block);
  std::int32_t unpin(BlockId block);
  // kCached -> kFree.
  void discard(BlockId block);

  // Slots in use grow from the front; filled ones shrink only by discard(). REQUIRES: the block is kUsed.
  void set_assigned(BlockId block, std::int32_t num_slots);
  void set_filled(BlockId block, std::int32_t num_slots);
  // Takes back the slots that were assigned and not filled.
  void unassign_unfilled(BlockId block);

  const Block& at(BlockId block) const { return blocks_[index_of(block)]; }
  std::int32_t num_blocks() const { return static_cast<std::int32_t>(blocks_.size()); }
  std::int32_t block_size() const { return block_size_; }
  std::int32_t num_free() const { return static_cast<std::int32_t>(free_.size()); }
  std::int32_t num_cached() const { return num_blocks() - num_free() - num_used_; }
  std::int32_t num_used() const { return num_used_; }
  // Slots of used blocks by what they are: with KV; for a token that has none yet; for no token (internal
  // fragmentation).
  std::int64_t num_filled_slots() const { return num_filled_slots_; }
  std::int64_t num_reserved_slots() const { return num_assigned_slots_ - num_filled_slots_; }
  std::int64_t num_unfilled_slots() const {
    return std::int64_t{num_used_} * block_size_ - num_assigned_slots_;
  }

  // The first broken invariant as a sentence. O(blocks).
  std::optional<std::string> broken_invariant() const;

 private:
  Block& block_at(BlockId block);
  void make_used(Block& block);

  const std::int32_t block_size_;
  std::vector<Block> blocks_;  // index = block id
  std::vector<BlockId> free_;  // taken from the back
  std::int32_t num_used_ = 0;
  std::int64_t num_assigned_slots_ = 0;  // of used blocks
  std::int64_t num_filled_slots_ = 0;    // of used blocks
  std::int64_t step_ = 0;
};

}  // namespace octavo::block
