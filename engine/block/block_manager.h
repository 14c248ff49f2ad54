// Keeps the block tables of all sequences over a device pool and a host pool: growing, forking with
// copy-on-write, swapping, releasing, and finding computed blocks again by content. Policy only: ids and
// counts, no tensors. After Kwon et al. 2023 (arXiv:2309.06180) sections 4.2 to 4.5, with prefix caching.
// Engine thread; deterministic.
//
// The life of a table in a step:
//   swap_in(), append_match(), grow()   slots for all known tokens; a shared block that will be written is
//                                       replaced by a copy
//   (the runner moves and copies blocks, then computes)
//   commit()                            the slots up to here hold KV; blocks that became full are sealed:
//                                       never written again, findable
//   trim()                              where less was computed than there are slots for: the rest goes back
//
// Only sealing makes a block findable, so no sequence can get a block whose contents are not there yet.
// Cached blocks (no reference, still findable) count as available: they are evicted, leaves first, when no
// free block is left. Blocks that a copy of the step reads are pinned until end_step().
//
// Recurrent layers. Where a model has any, a table also has a state (state_manager.h), which belongs to all
// computed tokens and to no fewer. So a prefix is found as far as both its blocks and a checkpoint are there,
// a table is continued from the cache only while it is empty, and grow() makes the state writable.
//
// Windows. Where layers see the last tokens only, a block has a window part beside it (window_manager.h). Who
// names a block reads that part until its window has passed; a prefix is found as far as the window in front
// of its end is there too. open_window() gives places to what a step will write.
//
// Invariants, recounted by broken_invariant():
//   1. free + cached + used = num_blocks, and a reference count is the number of table entries and pins that
//      name the block. Of the host pool the same, with nothing cached.
//   2. No block is free and referenced.
//   3. A partly filled block that is written has one owner.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/api/kv_snapshot.h"
#include "engine/api/metrics.h"
#include "engine/base/ids.h"
#include "engine/block/block.h"
#include "engine/block/block_event_log.h"
#include "engine/block/block_pool.h"
#include "engine/block/block_table.h"
#include "engine/block/buddy_allocator.h"
#include "engine/block/prefix_cache.h"
#include "engine/block/state_manager.h"
#include "engine/block/window_manager.h"

namespace octavo::block {

// A prefix that ends inside a block is copied from it when at least so many tokens are alike: fewer are as
// quickly computed.
inline constexpr std::int32_t kLeastPartialMatch = 4;

// A state weighs as much as the keys and values of some thousand tokens, and copying it takes as long as
// computing a few.
inline constexpr std::int32_t kLeastSavedTokens = 16;

struct BlockManagerOptions {
  std::int32_t block_size = 16;
  std::int32_t num_blocks = 0;
  std::int32_t num_host_blocks = 0;
  std::int64_t bytes_per_block = 0;  // for figures only
  bool enable_prefix_caching = true;
  // Above 0: blocks are given out by reserve() only, in runs of at most so many. REQUIRES: a power of two;
  // no prefix caching.
  std::int32_t largest_run = 0;
  HashFunction hash = &hash_tokens;
  // Of recurrent layers; 0: the model has none. REQUIRES: at least as many as sequences that run.
  std::int32_t num_states = 0;
  std::int32_t num_host_states = 0;
  std::int64_t bytes_per_state = 0;  // for figures only
  // Tokens that layers see that keep their keys and values in a pool of their own; 0: there are none.
  // REQUIRES: no states, no runs; places for all that may run (window_manager.h).
  std::int32_t window = 0;
  std::int32_t num_window_blocks = 0;
  std::int32_t num_host_window_blocks = 0;
  std::int64_t bytes_per_window_block = 0;  // for figures only
};

// What the blocks of a sequence are found by: its tokens, and the salt that separates users. And how long
// they are worth keeping.
struct SequenceContent {
  std::span<const TokenId> token_ids;
  std::string_view salt;
  RetentionClass retention = RetentionClass::kScratch;
  std::int32_t num_system_tokens = 0;     // at the start: blocks of these alone are kept as a system prompt
  std::int32_t num_next_turn_tokens = 0;  // with which the next turn is expected to start; 0: not known
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

// The same, to be changed.
struct MovingTable {
  BlockTable* table = nullptr;
  SequenceContent content;
};

class BlockManager {
 public:
  explicit BlockManager(const BlockManagerOptions& options);

  // A step's copies are read, and its peaks noted, between these two.
  void begin_step(std::int64_t step);
  void end_step();

  // ---- asking: nothing changes

  // Blocks that can be taken: free ones and cached ones that are not pinned.
  std::int32_t num_available() const {
    return pool_.num_free() + pool_.num_cached() - prefix_cache_.num_pinned_unused();
  }

  // The computed blocks that continue a table's sealed part, as far as the first `max_tokens` tokens reach.
  // The table keeps them, so that asking again hashes nothing that was found before. REQUIRES: from a first
  // question on, the content of a table without a sealed part only grows, until it gets blocks.
  struct PrefixMatch {
    std::int32_t num_blocks = 0;
    std::int32_t num_used_blocks = 0;  // of these, blocks that running sequences hold: they cost nothing
  };
  PrefixMatch match(BlockTable& table, const SequenceContent& content, std::int32_t max_tokens) const;

  // Blocks that grow() takes for all of these together, copies of shared blocks included: the last owner of a
  // shared block writes in place. Exact, so that no group is preempted for a block that would not have been
  // taken. For swapped tables: what it would take after swap_in() of them all, which for itself takes
  // num_swapped_blocks().
  std::int32_t num_blocks_to_grow(std::span<const Growth> growths);

  // Physical blocks that these tables name, each once, as far as they hold KV.
  std::int32_t num_distinct_blocks(std::span<const MovingTable> tables);
  std::int32_t num_free_host_blocks() const { return host_pool_.num_free(); }

  // Whether reserve() of all of these would succeed now, and in an empty pool.
  bool can_reserve(std::span<const std::int32_t> runs) const { return buddies_->can_take(runs); }
  bool could_ever_reserve(std::span<const std::int32_t> runs) const {
    return BuddyAllocator(options_.num_blocks, options_.largest_run).can_take(runs);
  }

  // ---- acting

  // What append_match() found: tokens, and why it ended where it did.
  struct AppendedMatch {
    std::int32_t num_hit_live = 0;
    std::int32_t num_hit_cached = 0;
    std::int32_t num_copied_partial = 0;
    PrefixMiss miss = {};
    std::int32_t num_tokens() const { return num_hit_live + num_hit_cached + num_copied_partial; }
  };
  // Puts what match() finds into the table; a partly filled last block that it covers is released. Then, with
  // `copies`, the start of one more block where at least kLeastPartialMatch tokens or all of a partial node
  // match: its source stays pinned until end_step(). Of a table with a state, only where it is empty, and
  // then exactly to a checkpoint. REQUIRES: `copies` where there are states.
  AppendedMatch append_match(BlockTable& table, const SequenceContent& content, std::int32_t max_tokens,
                             std::vector<BlockCopy>* copies = nullptr);

  // Slots for `num_tokens` tokens, all from num_computed_tokens on writable by this table alone.
  // REQUIRES: num_blocks_to_grow() <= num_available(); `moves` where there are states.
  void grow(BlockTable& table, std::int32_t num_tokens, std::vector<BlockCopy>& copies,
            std::vector<PoolMove>* moves = nullptr);

  // Gives an empty table a run of blocks in which it will grow. REQUIRES: can_reserve().
  void reserve(BlockTable& table, std::int32_t num_blocks);

  // Places for the window parts of what is written up to this token, and the list of those that are read.
  void open_window(BlockTable& table, std::int32_t num_tokens);
  // What has to be done in the pool of window parts, in this order, since it was asked last.
  std::vector<PoolMove> take_window_moves() { return std::exchange(window_moves_, {}); }

  // Keys and values of the first `num_computed` tokens exist now.
  void commit(BlockTable& table, const SequenceContent& content, std::int32_t num_computed);
  // The state of the computed tokens can be found from now on, if that saves at least kLeastSavedTokens.
  void keep_state(BlockTable& table, const SequenceContent& content, CheckpointReason reason);
  // Tokens since the newest checkpoint of these that is known.
  static std::int32_t num_tokens_since_checkpoint(const BlockTable& table) {
    return table.num_computed_tokens_ - table.last_checkpoint_;
  }
  // Slots without KV go back, and blocks without any other: of a draft that was rejected. What a rejected
  // token left in a slot is nothing: it is overwritten before anybody reads it.
  void trim(BlockTable& table);
  // Full blocks that came back by swap_in() are findable from now on: their contents are there.
  void seal_full(BlockTable& table, const SequenceContent& content);

  // `child` (empty) shares all blocks of `parent`. REQUIRES: all of parent's slots are computed.
  void fork(const BlockTable& parent, BlockTable& child);

  // `child` (empty) shares the first `num_blocks` blocks of `source`, whose tokens it starts with.
  // REQUIRES: they are full and computed; where there are states, nothing behind them is.
  void share_start(const BlockTable& source, BlockTable& child, std::int32_t num_blocks);

  // Moves the tables of a group to the host pool, shared blocks once: the copies to be made are appended.
  // False, and nothing changes, when the host pool has not enough blocks. Contents stay findable on the
  // device as long as their place is not needed.
  bool swap_out(std::span<const MovingTable> tables, std::vector<BlockSwap>& swaps,
                std::vector<PoolMove>* moves = nullptr);

  // Brings them back with the sharing that they had. What is still found on the device is not copied;
  // returned is how much of the first table that was.
  // REQUIRES: num_distinct_blocks() <= num_available().
  AppendedMatch swap_in(std::span<const MovingTable> tables, std::vector<BlockSwap>& swaps,
                        std::vector<PoolMove>* moves = nullptr);

  // Lets all blocks go, the last one first, so that the tail of a chain is evicted before its head.
  void release(BlockTable& table);
  // The same, and a partly filled last block stays findable too, so that a request that continues from here
  // resumes exactly.
  void release_findable(BlockTable& table, const SequenceContent& content);

  // Pinned contents are worth a system prompt from now on.
  void release_pins() { prefix_cache_.release_pins(); }
  // Forgets everything that nobody uses, pinned or not.
  void reset_prefix_cache();

  BlockEventLog& events() { return events_; }

  // ---- figures

  const BlockPool& pool() const { return pool_; }
  const BlockPool& host_pool() const { return host_pool_; }
  const PrefixCache& prefix_cache() const { return prefix_cache_; }
  const StateManager& states() const { return states_; }
  const WindowManager& windows() const { return windows_; }
  const KvTotals& totals() const { return totals_; }
  KvTotals& totals() { return totals_; }  // the scheduler adds what it alone knows
  KvFigures figures() const;              // definitions: kv_snapshot.h
  // Blocks as the Memory view shows them; owners are filled from `tables`.
  std::vector<BlockSnapshot> snapshot(std::span<const OwnedTable> tables) const;
  std::vector<StateSnapshot> state_snapshot(std::span<const OwnedTable> tables) const;

  // The first broken invariant as a sentence, recounted from `tables`, which must be all that exist.
  // O(everything).
  std::optional<std::string> broken_invariant(std::span<const OwnedTable> tables) const;

 private:
  struct Recount;

  BlockId take_block(SequenceId owner);
  void let_go(BlockId block, SequenceId owner);
  void note_reference_gone(BlockId block, SequenceId owner, std::int32_t ref_count);
  void drop_contents(BlockId block, SequenceId owner);
  void note_inserted(const PrefixCache::Inserted& inserted, BlockId block, SequenceId owner);
  bool evict_one(SequenceId by);
  std::span<const TokenId> tokens_of_block(const SequenceContent& content, std::int32_t block_index,
                                           std::int32_t max_tokens) const;
  std::optional<PrefixNodeId> next_match(PrefixNodeId parent, std::int32_t block_index,
                                         const SequenceContent& content, std::int32_t max_tokens) const;
  void find_known(BlockTable& table, const SequenceContent& content, std::int32_t max_tokens) const;
  BlockId find_checkpoint(BlockTable& table, const SequenceContent& content, std::int32_t max_tokens) const;
  bool can_resume(const BlockTable& table, const SequenceContent& content, std::int32_t max_tokens,
                  const CheckpointPlace& place) const;
  void append_hit(BlockTable& table, const SequenceContent& content, PrefixNodeId node);
  void append_hits(BlockTable& table, const SequenceContent& content, std::int32_t max_tokens,
                   AppendedMatch& appended);
  AppendedMatch resume(BlockTable& table, const SequenceContent& content, std::int32_t max_tokens,
                       std::vector<BlockCopy>& copies);
  void continue_from(BlockId state, BlockTable& table, const SequenceContent& content,
                     std::span<const TokenId> next, std::vector<BlockCopy>& copies, AppendedMatch& appended);
  void append_partial(BlockTable& table, const SequenceContent& content, std::int32_t max_tokens,
                      std::vector<BlockCopy>* copies, AppendedMatch& appended);
  PrefixMiss miss_after(const BlockTable& table, const SequenceContent& content,
                        std::span<const TokenId> token_ids, const PrefixCache::Closest& closest) const;
  void copy_start(BlockTable& table, const SequenceContent& content, PrefixNodeId node,
                  std::int32_t num_tokens, std::vector<BlockCopy>& copies);
  std::optional<PrefixMiss> remembered_miss(const BlockTable& table, std::span<const TokenId> token_ids,
                                            const SequenceContent& content) const;
  bool is_evictable(BlockId block) const;
  bool can_copy_partial(const BlockTable& table, BlockId source, std::int32_t max_tokens) const;
  RetentionClass retention_of(const SequenceContent& content, std::int32_t block_index) const;
  const BlockPool& pool_of(const BlockTable& table) const {
    return table.is_swapped_out_ ? host_pool_ : pool_;
  }
  bool writes_shared_block(const BlockTable& table) const;
  std::size_t write_index(const BlockTable& table) const;
  BlockId copy_block(BlockId source, SequenceId owner, BlockEventKind kind, std::vector<BlockCopy>& copies);
  void copy_on_write(BlockTable& table, std::vector<BlockCopy>& copies);
  void end_copies();
  void seal_next(BlockTable& table, const SequenceContent& content);
  std::int32_t most_tokens_with_window(BlockTable& table, const SequenceContent& content,
                                       std::int32_t max_tokens) const;
  RetentionClass window_retention(const SequenceContent& content, std::int32_t block_index) const;
  void note_skipped(const BlockTable& table);
  void leave_window(BlockId block);
  void leave_behind(BlockTable& table, const SequenceContent& content, std::int32_t num_tokens);
  void drop_window(BlockId block);
  void copy_window(BlockId source, BlockId target, SequenceId owner);
  std::int32_t num_windows_to_move(std::span<const MovingTable> tables);
  void move_window_out(const BlockTable& table);
  void move_windows_in(std::span<const MovingTable> tables, std::span<const std::vector<BlockId>> device);
  std::optional<std::string> broken_windows(std::span<const OwnedTable> tables) const;
  void append(BlockTable& table, BlockId block);
  void share_first(const BlockTable& table, BlockTable& other, std::int32_t num_blocks);
  void pop_back(BlockTable& table);
  std::vector<StateOwner> state_owners(std::span<const MovingTable> tables);
  void move_out(const BlockTable& table, std::vector<BlockSwap>& swaps);
  AppendedMatch find_on_device(BlockTable& table, const SequenceContent& content,
                               std::vector<BlockId>& device);
  void move_in(BlockTable& table, std::vector<BlockId>& device, std::vector<BlockSwap>& swaps);
  void let_host_go(BlockId host_block);
  void release_host(BlockTable& table);
  std::optional<std::string> broken_table(const OwnedTable& owned) const;

  const BlockManagerOptions options_;
  BlockPool pool_;
  BlockPool host_pool_;
  PrefixCache prefix_cache_;
  BlockEventLog events_;
  StateManager states_;
  WindowManager windows_;
  std::vector<PoolMove> window_moves_;
  std::optional<BuddyAllocator> buddies_;
  KvTotals totals_;
  std::int64_t step_ = 0;
  std::int32_t num_logical_blocks_ = 0;  // sum of the lengths of tables that are not swapped out
  std::vector<BlockId> copy_sources_;    // pinned, of this step
  std::vector<BlockId> shared_scratch_;  // of num_blocks_to_grow
  std::vector<BlockId> moved_to_;        // of a swap: by block of the one pool, its place in the other
};

}  // namespace octavo::block
