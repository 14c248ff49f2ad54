// What the events tell beside the state of the pools (KvState): whose tokens a block has, where they came
// from, which sequence was forked from which, and who was swapped out where. Like the state it is a value
// that events move, but only readers move it: it costs the engine nothing (EventHistory).
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <unordered_map>
#include <vector>

#include "engine/api/block_event.h"
#include "engine/api/kv_snapshot.h"
#include "engine/base/ids.h"
#include "engine/metrics/kv_state.h"

namespace octavo::metrics {

// What is known of a block beside its KvState::Block.
struct BlockStory {
  std::uint64_t sequence = 0;  // whose tokens it holds; 0: not known
  std::int32_t index = -1;     // logical, in that sequence
  std::int32_t parent = -1;    // the block before it there; of a findable one, in its chain
  std::int32_t copied_from = -1;
  std::int32_t num_hits = 0;
  std::int64_t born_us = -1;
  std::int64_t last_us = -1;
  std::int64_t last_step = 0;
  // How its window part went, if it did: when, and for whose part, 0: nobody could have found it.
  std::int64_t window_gone_us = -1;
  std::uint64_t window_gone_for = 0;
  friend bool operator==(const BlockStory&, const BlockStory&) = default;
};

struct SequenceStory {
  SequenceState state = SequenceState::kRunning;
  std::uint64_t parent = 0;                          // forked from; 0: none
  std::map<std::int32_t, BlockId> host_blocks = {};  // by logical index, while swapped out
  std::int32_t num_left_behind = 0;                  // of these, by its window: from the start
  friend bool operator==(const SequenceStory&, const SequenceStory&) = default;
};

// What is known of a state of recurrent layers beside its KvState::State.
struct StateStory {
  std::uint64_t sequence = 0;    // that took it, or kept the checkpoint; 0: not known
  std::int32_t last_block = -1;  // of a checkpoint: the full block that it continues
  std::int32_t copied_from = -1;
  std::int32_t num_resumed = 0;
  std::int64_t born_us = -1, last_us = -1;
  std::int64_t last_step = 0;
  friend bool operator==(const StateStory&, const StateStory&) = default;
};

struct PoolStory {
  std::vector<BlockStory> blocks;
  std::map<std::uint64_t, SequenceStory> sequences;   // that have blocks, or wait to have them again
  std::unordered_map<std::int32_t, BlockId> leaving;  // device block -> host block, during a swap out
  std::array<std::int64_t, 40> num_events_of = {};    // index = BlockEventKind
  std::int64_t num_hit_tokens = 0;
  std::vector<StateStory> states;
  // Of states: how many checkpoints were evicted, and how many states went to the host pool and back.
  std::int64_t num_evicted_states = 0, num_states_out = 0, num_states_in = 0;
  std::int64_t num_evicted_windows = 0;  // window parts whose place was needed
  friend bool operator==(const PoolStory&, const PoolStory&) = default;
};

// Of a pool about which nothing is known but this state: no times, and nothing has been counted.
PoolStory story_of(const KvState& state);

// Moves the story by one event; `state` is the pools before it. What an impossible event says is left out.
void tell(PoolStory& story, const KvState& state, const BlockEvent& event);

// Everything that is known of the pools before the event of this mark.
struct PoolMoment {
  std::uint64_t mark = 0;
  KvState state;
  PoolStory story;
};

}  // namespace octavo::metrics
