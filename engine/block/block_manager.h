// Keeps the block tables of all sequences over one pool: growing, forking with copy-on-write, releasing, and
// finding computed blocks again by content. Policy only: ids and counts, no tensors. After Kwon et al. 2023
// (arXiv:2309.06180) sections 4.2 to 4.4, with prefix caching. Engine thread; deterministic.
//
// The life of a table in a step:
//   grow()    slots for all known tokens; a shared block that will be written is replaced by a copy
//   (the runner copies blocks, then computes)
//   commit()  the slots up to here hold KV; blocks that became full are sealed: never written again, findable
//
// Only sealing makes a block findable, so nobody can be given a block whose contents are not there yet.
// Cached blocks (no reference, still findable) count as available: they are evicted, leaves first, when no
// free block is left.
//
// Invariants, recounted by broken_invariant():
//   1. free + cached + used = num_blocks, and a reference count is the number of table entries that name the
//   block.
//   2. No block is free and referenced.
//   3. A partly filled block that is written has one owner.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/api/kv_snapshot.h"
#include "engine/api/metrics.h"
#include "engine/base/ids.h"
#include "engine/block/block.h"
#include "engine/block/block_event_log.h"
#include "engine/block/block_pool.h"
#include "engine/block/block_table.h"
#include "engine/block/prefix_cache.h"

namespace octavo::block {

struct BlockManagerOptions {
  std::int32_t block_size = 16;
  std::int32_t num_blocks = 0;
  std::int64_t bytes_per_block = 0;  // for figures only
  bool enable_prefix_caching = true;
  HashFunction hash = &hash_tokens;
};

// What the blocks of a sequence are found by: its tokens, and the salt that separates users.
struct SequenceContent {
  std::span<const TokenId> token_ids;
  std::string_view salt;
};

// A table and how many tokens it shall have slots for.
struct Growth {
  const BlockTable* table = nullptr;
  std::int32_t num_tokens = 0;
};

// A table beside what its sequence holds: for checks and views.
struct OwnedTable {
  const BlockTable* table = nullptr;
  SequenceContent content;
};

class BlockManager {
 public:
  explicit BlockManager(const BlockManagerOptions& options);

  // ---- asking: nothing changes ----

  // Blocks that can be taken: free ones and cached ones.
  std::int32_t num_available() const { return pool_.num_free() + pool_.num_cached(); }

  // The computed blocks that continue a table's sealed part, as far as the first `max_tokens` tokens reach.
  struct PrefixMatch {
    std::int32_t num_blocks = 0;
    std::int32_t num_used_blocks = 0;  // of these, blocks that running sequences hold: they cost nothing
  };
  PrefixMatch match(const BlockTable& table, const SequenceContent& content, std::int32_t max_tokens) const;

  // Blocks that grow() takes for all of these together, copies of shared blocks included: the last owner of a
  // shared block writes in place. Exact, so that nobody is preempted for a block that would not have been
  // taken.
  std::int32_t num_blocks_to_grow(std::span<const Growth> growths);

  // ---- acting ----

  // Puts what match() finds into the table; a partly filled last block that it covers is let go. Returns the
  // tokens that have KV by it.
  std::int32_t append_match(BlockTable& table, const SequenceContent& content, std::int32_t max_tokens);

  // Slots for `num_tokens` tokens, all from num_computed_tokens on writable by this table alone.
  // REQUIRES: num_blocks_to_grow() <= num_available().
  void grow(BlockTable& table, std::int32_t num_tokens, std::vector<BlockCopy>& copies);

  // Undoes the copy-on-write of a step that was not executed. REQUIRES: `copy` was made for this table by the
  // newest grow() and the source's other owners still hold it.
  void undo_copy(BlockTable& table, const BlockCopy& copy);

  // Keys and values of the first `num_computed` tokens exist now.
  void commit(BlockTable& table, const SequenceContent& content, std::int32_t num_computed);

  // `child` (empty) shares all blocks of `parent`. REQUIRES: all of parent's slots are computed.
  void fork(const BlockTable& parent, BlockTable& child);

  // `heir` (empty) takes all blocks of `table`, which is left empty: for an output that ends while it
  // computes the prompt of its siblings.
  void hand_over(BlockTable& table, BlockTable& heir);

  // Lets all blocks go, the last one first, so that the tail of a chain is evicted before its head.
  void release(BlockTable& table);

  // Evicts everything that nobody uses.
  void reset_prefix_cache();

  BlockEventLog& events() { return events_; }

  // ---- figures ----

  const BlockPool& pool() const { return pool_; }
  const KvTotals& totals() const { return totals_; }
  KvTotals& totals() { return totals_; }  // the scheduler adds what it alone knows
  KvFigures figures() const;              // definitions: kv_snapshot.h
  // Blocks as the Memory view shows them; owners are filled from `tables`.
  std::vector<BlockSnapshot> snapshot(std::span<const OwnedTable> tables) const;

  // The first broken invariant as a sentence, recounted from `tables`, which must be all that exist.
  // O(everything).
  std::optional<std::string> broken_invariant(std::span<const OwnedTable> tables) const;

 private:
  BlockId take_block(SequenceId owner);
  void let_go(BlockId block, SequenceId owner);
  std::optional<PrefixNodeId> next_match(PrefixNodeId parent, std::int32_t block_index,
                                         const SequenceContent& content, std::int32_t max_tokens) const;
  bool writes_shared_block(const BlockTable& table) const;
  std::size_t write_index(const BlockTable& table) const;
  void copy_on_write(BlockTable& table, std::vector<BlockCopy>& copies);
  void seal_next(BlockTable& table, const SequenceContent& content);
  void append(BlockTable& table, BlockId block);
  void share_all(const BlockTable& table, BlockTable& other);
  void pop_back(BlockTable& table);
  void note_peaks();
  std::optional<std::string> broken_table(const OwnedTable& owned) const;

  const BlockManagerOptions options_;
  BlockPool pool_;
  PrefixCache prefix_cache_;
  BlockEventLog events_;
  KvTotals totals_;
  std::int32_t num_logical_blocks_ = 0;  // sum of table lengths
  std::vector<BlockId> shared_scratch_;  // of num_blocks_to_grow
};

}  // namespace octavo::block
