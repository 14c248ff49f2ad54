// Contiguous runs of a power of two of blocks, as the systems before paging gave out KV memory: the baseline
// of Kwon et al. 2023 (arXiv:2309.06180) section 6.1, where Orca (Yu et al., OSDI 2022) is given a buddy
// allocator (Knuth, The Art of Computer Programming, volume 1, section 2.5). Only for comparison. Engine
// thread; deterministic, no clock.
//
// A pool that is no multiple of the largest run is cut from block 0 on, always into the largest run that
// still fits: 983 blocks with runs up to 128 are 7 x 128, 64, 16, 4, 2, 1. A run is always aligned to its own
// length, so its buddy is the run at first XOR length, and those of the tail never meet.
//
// Invariants (broken_invariant() recounts them):
//   1. Each block is in exactly one run, free or taken; num_free_blocks() counts those of free runs.
//   2. A run is a power of two long, at most largest_chunk_blocks, and aligned to its length.
//   3. No two buddies below the largest length are both free: they would be one run.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "engine/base/ids.h"

namespace octavo::block {

// The blocks first, first + 1, ... first + num_blocks - 1.
struct BlockRun {
  BlockId first;
  std::int32_t num_blocks = 0;
  friend constexpr bool operator==(const BlockRun&, const BlockRun&) = default;
};

class BuddyAllocator {
 public:
  // REQUIRES: num_blocks >= 0; largest_chunk_blocks is a power of two
  BuddyAllocator(std::int32_t num_blocks, std::int32_t largest_chunk_blocks);

  // A run of `num_blocks`, rounded up to a power of two: from the shortest free run that holds it, there the
  // one with the lowest address, split in halves and its front taken. Nullopt when no free run is long
  // enough. REQUIRES: num_blocks >= 1
  std::optional<BlockRun> take(std::int32_t num_blocks);

  // Free again, and one with its buddy as often as that is free too. REQUIRES: take() gave exactly this run.
  void give_back(BlockRun run);

  // Whether take() of all of these would succeed, in whatever order: for the outputs of a group, which start
  // together.
  bool can_take(std::span<const std::int32_t> sizes) const;

  std::int32_t num_blocks() const { return static_cast<std::int32_t>(taken_length_.size()); }
  std::int32_t num_free_blocks() const { return num_free_blocks_; }
  std::int32_t largest_free_chunk() const;  // blocks; 0: nothing is free

  // The first broken invariant as a sentence. O(blocks).
  std::optional<std::string> broken_invariant() const;

 private:
  std::optional<std::string> broken_free_run(std::int32_t first, std::size_t order) const;

  std::vector<std::set<std::int32_t>> free_;  // [order]: first blocks of the free runs of 1 << order blocks
  std::vector<std::int32_t> taken_length_;    // [block]: of the taken run that begins there, else 0
  std::int32_t num_free_blocks_ = 0;
};

}  // namespace octavo::block
