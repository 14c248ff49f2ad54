#include "engine/block/block_pool.h"

#include <algorithm>

#include "engine/base/check.h"

namespace octavo::block {

BlockPool::BlockPool(std::int32_t num_blocks, std::int32_t block_size)
    : block_size_(block_size), blocks_(static_cast<std::size_t>(num_blocks)) {
  OCTAVO_CHECK(block_size >= 1, "block size %d", block_size);
  free_.reserve(blocks_.size());
  for (std::int32_t id = num_blocks - 1; id >= 0; --id) free_.push_back(BlockId{id});
}

Block& BlockPool::block_at(BlockId block) {
  OCTAVO_CHECK(block.value >= 0 && block.value < num_blocks(), "block %d of %d", block.value, num_blocks());
  return blocks_[index_of(block)];
}

BlockId BlockPool::take() {
  OCTAVO_CHECK(!free_.empty(), "no free block among %d", num_blocks());
  const BlockId id = free_.back();
  free_.pop_back();
  make_used(block_at(id));
  return id;
}

void BlockPool::take(BlockId id) {
  const auto found = std::ranges::find(free_, id);
  OCTAVO_CHECK(found != free_.end(), "block %d is not free", id.value);
  free_.erase(found);
  make_used(block_at(id));
}

void BlockPool::make_used(Block& block) {
  OCTAVO_CHECK(block.state == BlockState::kFree && block.ref_count == 0, "a free block has %d references",
               block.ref_count);
  block.state = BlockState::kUsed;
  block.ref_count = 1;
  block.last_step = step_;
  ++num_used_;
}

std::int32_t BlockPool::ref(BlockId id) {
  Block& block = block_at(id);
  OCTAVO_CHECK(block.state != BlockState::kFree, "block %d is free", id.value);
  if (block.ref_count == 0) {
    block.state = BlockState::kUsed;
    ++num_used_;
    num_assigned_slots_ += block.num_assigned;
    num_filled_slots_ += block.num_filled;
  }
  block.last_step = step_;
  return ++block.ref_count;
}

std::int32_t BlockPool::unref(BlockId id) {
  Block& block = block_at(id);
  OCTAVO_CHECK(block.ref_count > block.num_pins, "block %d has no reference", id.value);
  block.last_step = step_;
  if (--block.ref_count > 0) return block.ref_count;
  block.state = BlockState::kCached;
  --num_used_;
  num_assigned_slots_ -= block.num_assigned;
  num_filled_slots_ -= block.num_filled;
  block.num_assigned = block.num_filled;  // nobody is left who would fill the rest
  return 0;
}

std::int32_t BlockPool::pin(BlockId id) {
  ++block_at(id).num_pins;
  return ref(id);
}

std::int32_t BlockPool::unpin(BlockId id) {
  OCTAVO_CHECK(block_at(id).num_pins > 0, "block %d is not pinned", id.value);
  --block_at(id).num_pins;
  return unref(id);
}

void BlockPool::discard(BlockId id) {
  Block& block = block_at(id);
  OCTAVO_CHECK(block.state == BlockState::kCached, "block %d is not cached", id.value);
  block = Block{};
  free_.push_back(id);
}

void BlockPool::set_assigned(BlockId id, std::int32_t num_slots) {
  Block& block = block_at(id);
  OCTAVO_CHECK(
      block.state == BlockState::kUsed && num_slots >= block.num_assigned && num_slots <= block_size_,
      "block %d: %d slots after %d", id.value, num_slots, block.num_assigned);
  num_assigned_slots_ += num_slots - block.num_assigned;
  block.num_assigned = num_slots;
}

void BlockPool::set_filled(BlockId id, std::int32_t num_slots) {
  Block& block = block_at(id);
  OCTAVO_CHECK(
      block.state == BlockState::kUsed && num_slots >= block.num_filled && num_slots <= block.num_assigned,
      "block %d: %d slots after %d, %d assigned", id.value, num_slots, block.num_filled, block.num_assigned);
  num_filled_slots_ += num_slots - block.num_filled;
  block.num_filled = num_slots;
  block.last_step = step_;
}

void BlockPool::unassign_unfilled(BlockId id) {
  Block& block = block_at(id);
  OCTAVO_CHECK(block.state == BlockState::kUsed, "nobody uses block %d", id.value);
  num_assigned_slots_ -= block.num_assigned - block.num_filled;
  block.num_assigned = block.num_filled;
}

std::optional<std::string> BlockPool::broken_invariant() const {
  const auto broken = [](std::size_t block, const char* what) {
    return "block " + std::to_string(block) + what;
  };
  std::vector<bool> is_listed(blocks_.size());
  for (const BlockId id : free_) {
    const auto index = index_of(id);
    if (is_listed[index]) return broken(index, " is twice in the free list");
    is_listed[index] = true;
  }
  std::int32_t num_used = 0;
  std::int64_t num_assigned_slots = 0, num_filled_slots = 0;
  for (std::size_t i = 0; i < blocks_.size(); ++i) {
    const Block& block = blocks_[i];
    if (is_listed[i] != (block.state == BlockState::kFree)) {
      return broken(i, ": free list and state disagree");
    }
    if ((block.ref_count > 0) != (block.state == BlockState::kUsed) || block.num_pins > block.ref_count) {
      return broken(i, ": reference count and state disagree");
    }
    if (block.num_filled > block.num_assigned || block.num_assigned > block_size_) {
      return broken(i, " holds more than its slots");
    }
    if (block.state != BlockState::kUsed) continue;
    ++num_used;
    num_assigned_slots += block.num_assigned;
    num_filled_slots += block.num_filled;
  }
  if (num_used != num_used_) return "the count of used blocks is wrong";
  if (num_assigned_slots != num_assigned_slots_) return "the count of assigned slots is wrong";
  if (num_filled_slots != num_filled_slots_) return "the count of filled slots is wrong";
  return std::nullopt;
}

}  // namespace octavo::block
