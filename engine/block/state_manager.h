// The states of recurrent layers: who owns which, which are kept after their sequences went on or ended, and
// which are given up. Policy only: ids and counts, no tensors. Engine thread; deterministic.
//
// A state is what a model's recurrent layers know of all tokens before one position. It is of one size, and
// exactly of that position: it can neither be cut nor be shortened. Each sequence that has computed anything
// owns one; a fork shares it, and whoever writes next takes a copy. A checkpoint is a state that can be found
// again by the tokens before it. Taking one costs nothing until its owner goes on, which then copies it.
//
// A state of no owner stays as long as its checkpoint is worth its place. That is what recomputing would
// cost, the tokens since the checkpoint before it, weighed by retention class and aged by use (GreedyDual:
// Young 1994, The k-server dual and loose competitiveness for paging). All states have the same size, so
// bytes decide nothing. A checkpoint whose blocks were evicted can not be found any more and goes first.
//
// Every sequence owns at most one state. So a pool with as many states as sequences run always has one for
// whoever must write: in the last resort the writer's own, whose checkpoint ends.
//
// Invariants, recounted by broken_invariant():
//   1. A reference count is the number of sequences that own the state.
//   2. A state without an owner has a checkpoint, or is free. A free one has none.
//   3. No two checkpoints stand at the same place.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/api/kv_snapshot.h"
#include "engine/api/metrics.h"
#include "engine/base/ids.h"
#include "engine/block/block_event_log.h"
#include "engine/block/block_pool.h"
#include "engine/block/prefix_cache.h"

namespace octavo::block {

// States are named by their place in the pool of states, as blocks are; their pool has blocks of one slot.

// The tokens before a checkpoint: those of a chain of full blocks, and fewer than a block behind them.
struct CheckpointPlace {
  PrefixNodeId node = kNoNode;  // of the last full block; kNoNode: there is none
  std::uint64_t serial = 0;     // of that node, which may be another one later
  std::string salt = {};        // where there is no full block
  std::vector<TokenId> tail = {};
  std::int32_t position = 0;  // how many tokens all of these are
  friend bool operator==(const CheckpointPlace&, const CheckpointPlace&) = default;
};

struct Checkpoint {
  CheckpointPlace place;
  CheckpointReason reason = CheckpointReason::kEnd;
  RetentionClass retention = RetentionClass::kScratch;
  std::int32_t num_saved_tokens = 0;  // between the checkpoint before it and this one
};

// A sequence and its place for the state that it owns.
struct StateOwner {
  BlockId* state = nullptr;
  SequenceId sequence = {};
};

class StateManager {
 public:
  // `prefix_cache` tells which chains still stand, and `events` takes what happens; both outlive this object.
  // No states: the model has no recurrent layers, and nothing here is ever asked.
  StateManager(std::int32_t num_states, std::int32_t num_host_states, const PrefixCache& prefix_cache,
               BlockEventLog& events);

  bool is_used() const { return pool_.num_blocks() > 0; }
  void begin_step(std::int64_t step);

  // ---- asking

  const BlockPool& pool() const { return pool_; }
  const BlockPool& host_pool() const { return host_pool_; }
  const std::optional<Checkpoint>& checkpoint_of(BlockId state) const { return kept_of(state).checkpoint; }
  std::int32_t num_checkpoints() const { return num_checkpoints_; }

  // The checkpoint of the largest position of all that `fits` accepts; kNoBlock: none. O(states).
  BlockId find(const std::function<bool(const CheckpointPlace&)>& fits) const;

  // Whether the chain that a place continues still stands.
  bool is_reachable(const CheckpointPlace& place) const;

  // ---- acting; kNoBlock stands for the state before the first token, which takes no memory

  // One owner more.
  BlockId share(BlockId state, SequenceId owner);
  // The same, of one that was found.
  BlockId resume(BlockId state, SequenceId owner);
  // One owner less.
  void let_go(BlockId state, SequenceId owner);

  // The state that the owner of `state` may write, with the same contents once `moves` were made: the same
  // one if nobody else needs it, else another. REQUIRES: no more sequences own states than there are states.
  BlockId make_writable(BlockId state, SequenceId owner, std::vector<PoolMove>& moves);

  // Keeps an owned state. False where a checkpoint stands there already (which is used now), or the state has
  // one.
  bool keep(BlockId state, SequenceId owner, Checkpoint checkpoint);

  // To the host pool, for all of these owners at once (kNoBlock is passed over); what each owns becomes the
  // place there. False, and nothing changes, when the host pool has not enough room.
  bool swap_out(std::span<const StateOwner> owners, std::vector<PoolMove>& moves);
  void swap_in(std::span<const StateOwner> owners, std::vector<PoolMove>& moves);
  // One owner less of a state in the host pool.
  void let_host_go(BlockId host_state, SequenceId owner);

  // Forgets every checkpoint; states without an owner are free.
  void reset();
  // Of chains that stand no longer.
  void drop_unreachable();

  // Adds its own figures and totals.
  void describe(KvFigures& figures) const;
  const StateTotals& totals() const { return totals_; }

  // `owners`: the states of all sequences on the device and in the host pool. O(everything).
  std::optional<std::string> broken_invariant(std::span<const BlockId> owners,
                                              std::span<const BlockId> host_owners) const;

 private:
  struct Kept {
    std::optional<Checkpoint> checkpoint;
    std::int64_t worth = 0;  // the least goes first
  };

  Kept& kept_of(BlockId state) { return kept_[index_of(state)]; }
  const Kept& kept_of(BlockId state) const { return kept_[index_of(state)]; }
  enum class Forgetting : std::uint8_t { kGivenUp, kEvicted };
  void use(BlockId state);
  void note_worth(BlockId state);
  void unref(BlockId state);
  void unref_host(BlockId host_state);
  void forget(BlockId state, Forgetting why, SequenceId by = {});
  bool evict_one(SequenceId by);
  BlockId take(SequenceId owner);

  const PrefixCache& prefix_cache_;
  BlockEventLog& events_;
  BlockPool pool_, host_pool_;
  std::vector<Kept> kept_;  // [num_states]
  std::int64_t age_ = 0;    // worth of what was evicted last: what is used later is worth more
  std::int32_t num_checkpoints_ = 0;
  StateTotals totals_;
  std::vector<BlockId> moved_to_;  // of a swap: by state of the one pool, its place in the other
};

}  // namespace octavo::block
