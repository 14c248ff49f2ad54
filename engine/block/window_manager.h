// Where the layers with a sliding window keep the keys and values of a block, and which of these are given
// up. Policy only: ids and counts, no tensors. Engine thread; deterministic.
//
// Such a layer reads the last `window` tokens and nothing before them. So a block has two parts: that of the
// layers that see everything, which stands as long as the block does, and that of the layers with a window,
// its window part, which has a place of its own in a second pool. A sequence reads the window parts of its
// last tokens; those that it has left behind are free for others. (vLLM and SGLang keep a table for each kind
// of layer. Here one table names both parts, so that sharing, forks and copies are counted once.)
//
// A window part that nobody reads is kept as long as its place is not needed and its block can be found: who
// starts with the same tokens resumes only where all window parts before that position are still there. Given
// up first is the lowest retention class, and of a class what was left longest ago.
//
// So many places as the sequences that run can read and write at a time always suffice:
// num_places_for_sequence() for each, and num_places_for_step() for all of a step.
//
// Invariants, recounted by broken_invariant():
//   1. A place belongs to at most one block, and a free one to none.
//   2. The count of readers is the number of table entries that are not left behind, and of copies that read.
//   3. Given up can be exactly what nobody reads.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "engine/api/kv_snapshot.h"
#include "engine/api/metrics.h"
#include "engine/base/ids.h"
#include "engine/block/block.h"
#include "engine/block/block_event_log.h"

namespace octavo::block {

// What one sequence takes at most while it runs: its window, a block that it begins in the middle of, one
// that it ends in the middle of, and one that it copies from.
constexpr std::int32_t num_places_for_sequence(std::int32_t window, std::int32_t block_size) {
  return blocks_for(window - 1, block_size) + 3;
}
// What the rows of a step take beside that.
constexpr std::int32_t num_places_for_step(std::int32_t max_num_batched_tokens, std::int32_t block_size) {
  return blocks_for(max_num_batched_tokens, block_size);
}

// As many sequences as may run beside each other. A place for every block is enough for any number.
constexpr std::int32_t most_sequences_with_windows(std::int32_t window, std::int32_t block_size,
                                                   std::int32_t num_places, std::int32_t num_blocks,
                                                   std::int32_t max_num_batched_tokens) {
  if (num_places >= num_blocks) return std::numeric_limits<std::int32_t>::max();
  const std::int32_t num_left = num_places - num_places_for_step(max_num_batched_tokens, block_size);
  return std::max(0, num_left) / num_places_for_sequence(window, block_size);
}

class WindowManager {
 public:
  // window 0: no layer has one, or those that have one keep theirs beside the others'; then nothing here is
  // ever asked. Places are named as blocks are, each in its own pool. `events` takes what happens to parts,
  // and outlives this object.
  WindowManager(std::int32_t window, std::int32_t block_size, std::int32_t num_blocks,
                std::int32_t num_places, std::int32_t num_host_blocks, std::int32_t num_host_places,
                BlockEventLog& events);

  bool is_used() const { return window_ > 0; }

  // ---- asking

  // Index of the first block that the row behind `num_tokens` tokens reads.
  std::int32_t first_block_read(std::int32_t num_tokens) const;
  // Where a block's window part lies; kNoBlock: it has none.
  BlockId place_of(BlockId block) const { return part_of(block).place; }
  bool has_part(BlockId block) const { return place_of(block) != kNoBlock; }
  std::int32_t num_readers(BlockId block) const { return part_of(block).num_readers; }
  // How long to keep one that nobody reads. REQUIRES: it has one, without a reader
  RetentionClass retention_of(BlockId block) const { return part_of(block).retention; }
  BlockId host_place_of(BlockId host_block) const { return host_places_[index_of(host_block)]; }
  std::int32_t num_free_host() const { return static_cast<std::int32_t>(free_host_.size()); }

  std::int32_t num_places() const { return num_places_; }
  std::int32_t num_used() const { return num_places_ - num_free() - num_cached(); }
  std::int32_t num_cached() const { return static_cast<std::int32_t>(unread_.size()); }
  std::int32_t num_free() const { return static_cast<std::int32_t>(free_.size()); }

  // ---- acting

  // One reader more; the part may have to be opened yet.
  void read(BlockId block);
  // One reader less. `retention`: how long to keep what nobody reads now; nothing: not at all.
  void leave(BlockId block, std::optional<RetentionClass> retention);
  // Gives a block that is read a place, whose contents are undefined, for `owner`. Another's part is given up
  // where no place is free. REQUIRES: it has none; one can be had.
  BlockId open(BlockId block, SequenceId owner);
  // The block's contents are gone. REQUIRES: nobody reads it.
  void drop(BlockId block);

  // The same in the host pool, where everything is read. REQUIRES: num_free_host() > 0
  BlockId open_host(BlockId host_block);
  void drop_host(BlockId host_block);

  // ---- figures and checks

  void describe(KvFigures& figures) const;
  const WindowTotals& totals() const { return totals_; }
  WindowTotals& totals() { return totals_; }

  // `num_readers`: of each block. O(everything).
  std::optional<std::string> broken_invariant(std::span<const std::int32_t> num_readers) const;

 private:
  struct Part {
    BlockId place = kNoBlock;
    std::int32_t num_readers = 0;
    RetentionClass retention = RetentionClass::kScratch;  // of one that nobody reads, as the next
    std::uint64_t left_at = 0;
  };
  // First of these goes first.
  using Key = std::tuple<RetentionClass, std::uint64_t, BlockId>;

  Part& part_of(BlockId block) { return parts_[index_of(block)]; }
  const Part& part_of(BlockId block) const { return parts_[index_of(block)]; }
  Key key_of(BlockId block) const {
    const Part& part = part_of(block);
    return {part.retention, part.left_at, block};
  }
  enum class Closing : std::uint8_t { kUnfindable, kEvicted };
  void close(BlockId block, Closing why, SequenceId by = {});

  const std::int32_t window_, block_size_, num_places_, num_host_places_;
  BlockEventLog& events_;
  std::vector<Part> parts_;  // index = block id
  std::vector<BlockId> free_;
  std::set<Key> unread_;
  std::vector<BlockId> host_places_;  // index = host block
  std::vector<BlockId> free_host_;
  std::uint64_t num_left_ = 0;
  WindowTotals totals_;
};

}  // namespace octavo::block
