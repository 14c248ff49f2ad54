// All pools as a value: who names which block, what is filled, what can be found, what is swapped out; of
// models with recurrent layers, who owns which state, and which are checkpoints; and of models whose layers
// with a window have a pool of their own, which blocks have a window part, where, and who reads it. Events
// move it, so that the state at any time is a keyframe (a copy of this value) and the events after it. It
// equals the engine's own state whenever the engine says what it is (KvSnapshot): a property test holds that.
//
// apply() trusts nothing: events come from files as well. An event that cannot be is one sentence, and leaves
// the state as it was.
//
// A sequence's table is in order: kAlloc, kHit and kShare append to it, kCopyOnWrite gives the target the
// source's place, kUnref takes the newest entry of that block out.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "engine/api/block_event.h"
#include "engine/api/kv_snapshot.h"
#include "engine/base/ids.h"
#include "engine/base/result.h"

namespace octavo::metrics {

struct PoolShape {
  std::int32_t block_size = 16;  // tokens, 1..256
  std::int32_t num_blocks = 0;
  std::int32_t num_host_blocks = 0;
  std::int32_t num_states = 0;  // of recurrent layers, mostly none
  std::int32_t num_host_states = 0;
  std::int32_t window = 0;  // tokens, of layers that keep theirs in a pool of their own; mostly none do
  std::int32_t num_window_blocks = 0;
  std::int32_t num_host_window_blocks = 0;
  friend bool operator==(const PoolShape&, const PoolShape&) = default;
};

class KvState {
 public:
  struct Block {
    BlockState state = BlockState::kFree;
    bool is_findable = false;     // by content
    std::int16_t num_filled = 0;  // slots with KV
    std::int32_t ref_count = 0;   // table entries and pins
    std::int32_t num_pins = 0;
    friend bool operator==(const Block&, const Block&) = default;
  };
  struct HostBlock {
    bool is_used = false;
    std::int16_t num_filled = 0;
    bool has_window = false;  // a window part
    friend bool operator==(const HostBlock&, const HostBlock&) = default;
  };

  // Free without an owner and a checkpoint, cached with a checkpoint alone.
  struct State {
    std::int32_t num_owners = 0;
    bool is_checkpoint = false;
    CheckpointReason reason = CheckpointReason::kEnd;  // of a checkpoint, as the next
    std::int32_t position = 0;                         // tokens before it
    std::int32_t num_saved_tokens = 0;                 // 0: not known
    RetentionClass retention = RetentionClass::kScratch;
    BlockState state() const {
      if (num_owners > 0) return BlockState::kUsed;
      return is_checkpoint ? BlockState::kCached : BlockState::kFree;
    }
    friend bool operator==(const State&, const State&) = default;
  };
  // Where the state of a sequence is.
  struct StatePlace {
    BlockId state = {};
    bool is_on_host = false;
    friend bool operator==(const StatePlace&, const StatePlace&) = default;
  };

  // What layers with a window have of a block: kNone without a place, else as somebody reads it or not.
  struct WindowPlace {
    BlockId place = {-1};
    std::int32_t num_readers = 0;                         // table entries that are not left behind, and pins
    RetentionClass retention = RetentionClass::kScratch;  // of a part that nobody reads
    WindowPart part() const {
      if (place.value < 0) return WindowPart::kNone;
      return num_readers > 0 ? WindowPart::kUsed : WindowPart::kCached;
    }
    friend bool operator==(const WindowPlace&, const WindowPlace&) = default;
  };

  // Everything is free.
  explicit KvState(const PoolShape& shape);
  static KvState from(const KvSnapshot& snapshot);

  Result<void> apply(const BlockEvent& event);

  // Events that lead from a free pool to this state. They stand for no history.
  std::vector<BlockEvent> as_events() const;

  const PoolShape& shape() const { return shape_; }
  std::int64_t step() const { return step_; }  // of the last event

  std::int32_t num_used() const { return num_used_; }
  std::int32_t num_cached() const { return num_cached_; }
  std::int32_t num_free() const { return shape_.num_blocks - num_used_ - num_cached_; }
  std::int32_t num_logical() const { return num_logical_; }            // table entries
  std::int64_t num_filled_slots() const { return num_filled_slots_; }  // of used blocks
  std::int32_t num_host_used() const { return num_host_used_; }

  // REQUIRES: 0 <= id < num_blocks, and num_host_blocks
  Block block(BlockId id) const;
  HostBlock host_block(BlockId id) const;

  // REQUIRES: 0 <= id < num_states, and num_host_states
  State state(BlockId id) const;
  std::int32_t num_host_state_owners(BlockId id) const;
  std::optional<StatePlace> state_of(SequenceId sequence) const;
  const std::map<std::uint64_t, StatePlace>& state_places() const { return state_places_; }  // by sequence

  // REQUIRES: 0 <= id < num_blocks
  WindowPlace window(BlockId id) const;
  std::int32_t num_used_windows() const { return num_used_windows_; }
  std::int32_t num_cached_windows() const { return num_open_windows_ - num_used_windows_; }
  // Entries at the start of its table whose window parts it does not read. 0 without a table.
  std::int32_t num_left_behind(SequenceId sequence) const;

  std::vector<SequenceId> sequences() const;  // that have a table, ascending
  std::span<const BlockId> table_of(SequenceId sequence) const;
  std::vector<SequenceId> owners_of(BlockId block) const;  // ascending. O(table entries)

  // Where `other` differs, as a sentence about the first block or table; the step does not count.
  std::optional<std::string> difference(const KvState& other) const;

 private:
  using Table = std::vector<BlockId>;

  Result<void> check_named(const BlockEvent& event) const;
  Result<void> check_host(const BlockEvent& event) const;
  Result<void> allocate(const BlockEvent& event);
  Result<void> reference(const BlockEvent& event);
  Result<void> release(const BlockEvent& event);
  Result<void> discard(const BlockEvent& event);
  Result<void> fill(const BlockEvent& event);
  Result<void> seal(const BlockEvent& event);
  Result<void> copy(const BlockEvent& event);
  Result<void> swap_out(const BlockEvent& event);
  Result<void> swap_in(const BlockEvent& event);
  Result<void> drop_host(const BlockEvent& event);
  Result<void> end_step(const BlockEvent& event) const;
  Result<void> apply_to_states(const BlockEvent& event);
  Result<void> check_state(const BlockEvent& event) const;
  Result<void> check_owns(const BlockEvent& event, StatePlace place) const;
  Result<void> own_state(const BlockEvent& event);
  Result<void> copy_state(const BlockEvent& event);
  Result<void> release_state(const BlockEvent& event);
  Result<void> swap_state_out(const BlockEvent& event);
  Result<void> swap_state_in(const BlockEvent& event);
  Result<void> keep_state(const BlockEvent& event);
  Result<void> forget_state(const BlockEvent& event);
  Result<void> value_state(const BlockEvent& event);
  Result<void> apply_to_windows(const BlockEvent& event);
  Result<void> leave_window(const BlockEvent& event);
  Result<void> skip_windows(const BlockEvent& event);
  Result<void> open_window(const BlockEvent& event);
  Result<void> keep_window(const BlockEvent& event);
  Result<void> close_window(const BlockEvent& event);
  Result<void> swap_window(const BlockEvent& event);
  void count_reader(BlockId block, std::int32_t change);
  void append_entry(std::uint64_t sequence, BlockId block);
  void erase_entry(std::uint64_t sequence, Table& table, Table::iterator entry);
  void move_state(std::uint64_t sequence, std::optional<StatePlace> place);
  void count_owner(StatePlace place, std::int32_t change);

  Block& block_at(std::int32_t id);
  HostBlock& host_at(std::int32_t id);
  void set_filled(Block& block, std::int16_t num_filled);
  void take_place(std::uint64_t sequence, BlockId source, BlockId target);

  PoolShape shape_;
  std::int64_t step_ = 0;
  // Up to the highest block that was ever named: a large pool costs what of it is used.
  std::vector<Block> blocks_;
  std::vector<HostBlock> host_blocks_;
  std::unordered_map<std::uint64_t, Table> tables_;  // none is empty
  std::vector<State> states_;
  std::vector<std::int32_t> host_state_owners_;
  std::map<std::uint64_t, StatePlace> state_places_;  // by sequence; counted in the two above
  // The next three stay empty where no layer has a pool for its window.
  std::vector<WindowPlace> windows_;                          // by block
  std::vector<bool> is_window_taken_;                         // by place
  std::unordered_map<std::uint64_t, std::int32_t> num_left_;  // by sequence
  std::int32_t num_open_windows_ = 0, num_used_windows_ = 0;
  std::int32_t num_used_ = 0, num_cached_ = 0, num_logical_ = 0, num_host_used_ = 0;
  std::int64_t num_filled_slots_ = 0;
};

}  // namespace octavo::metrics
