#include "engine/metrics/pool_story.h"

#include <algorithm>
#include <cstddef>
#include <span>

namespace octavo::metrics {
namespace {

std::int32_t place_of(std::span<const BlockId> table, std::int32_t block) {
  for (std::size_t i = table.size(); i-- > 0;) {
    if (table[i].value == block) return static_cast<std::int32_t>(i);
  }
  return -1;
}

// The block gets contents of its own: those of `sequence` at the end of its table.
void begin_contents(BlockStory& story, const BlockEvent& event, std::span<const BlockId> table) {
  story = {.sequence = event.sequence,
           .index = static_cast<std::int32_t>(table.size()),
           .parent = table.empty() ? -1 : table.back().value,
           .born_us = event.time_us};
}

void leave(PoolStory& story, const KvState& state, const BlockEvent& event) {
  const auto host = story.leaving.find(event.block);
  if (host == story.leaving.end() || event.sequence == 0) return;
  const std::int32_t index = place_of(state.table_of(SequenceId{event.sequence}), event.block);
  if (index < 0) return;
  SequenceStory& sequence = story.sequences[event.sequence];
  sequence.host_blocks[index] = host->second;
  sequence.num_left_behind = state.num_left_behind(SequenceId{event.sequence});
}

// Copies in the host pool that are given up: by who came back, or by who ended while swapped out.
void drop_host(PoolStory& story, std::int32_t host_block) {
  std::erase_if(story.sequences, [&](const auto& entry) {
    const SequenceStory& sequence = entry.second;
    if (sequence.state != SequenceState::kSwapped) return false;
    return std::any_of(sequence.host_blocks.begin(), sequence.host_blocks.end(),
                       [&](const auto& host) { return host.second.value == host_block; });
  });
}

void preempt(PoolStory& story, const BlockEvent& event) {
  SequenceStory& sequence = story.sequences[event.sequence];
  sequence.state = event.aux == 1 ? SequenceState::kSwapped : SequenceState::kWaiting;
  if (event.aux != 1) sequence.host_blocks.clear();
}

void fork(PoolStory& story, const BlockEvent& event) {
  story.sequences[forked_child(event)].parent = event.sequence;
}

// A sequence whose last block goes has ended, unless it was preempted: by recompute it was told before, by
// swap its blocks are leaving.
bool ends(const PoolStory& story, const KvState& state, const BlockEvent& event) {
  if (event.sequence == 0 || state.table_of(SequenceId{event.sequence}).size() != 1) return false;
  const auto sequence = story.sequences.find(event.sequence);
  return sequence != story.sequences.end() && sequence->second.state == SequenceState::kRunning &&
         !story.leaving.contains(event.block);
}

void copy(PoolStory& story, const BlockEvent& event) {
  if (event.aux < 0 || static_cast<std::size_t>(event.aux) >= story.blocks.size()) return;
  const BlockStory& source = story.blocks[static_cast<std::size_t>(event.block)];
  BlockStory& target = story.blocks[static_cast<std::size_t>(event.aux)];
  target.copied_from = event.block;
  if (event.kind == BlockEventKind::kCopyOnWrite) {
    target.sequence = event.sequence;
    target.index = source.index;
    target.parent = source.parent;
  }
}

// Chains go by contents, tables by blocks: where two sequences computed the same, who follows the one's block
// may belong behind the other's.
void seal(PoolStory& story, const BlockEvent& event) {
  const auto count = static_cast<std::int32_t>(story.blocks.size());
  std::int32_t& parent = story.blocks[static_cast<std::size_t>(event.block)].parent;
  if (!is_instead_of(event.aux)) {
    if (event.aux != 0) parent = sealed_after(event.aux);
    return;
  }
  const std::int32_t predecessor = sealed_instead_of(event.aux);
  if (predecessor >= count) return;
  parent = story.blocks[static_cast<std::size_t>(predecessor)].parent;
  for (BlockStory& block : story.blocks) {
    if (block.parent == predecessor) block.parent = event.block;
  }
}

// The full block that ends at the position, or before it.
std::int32_t last_block_before(const KvState& state, const BlockEvent& event) {
  const auto table = state.table_of(SequenceId{event.sequence});
  const std::int32_t num_full = checkpoint_position(event.aux) / state.shape().block_size;
  if (num_full == 0 || static_cast<std::size_t>(num_full) > table.size()) return -1;
  return table[static_cast<std::size_t>(num_full - 1)].value;
}

void begin_state(StateStory& story, const BlockEvent& event, std::int32_t copied_from) {
  story = {.sequence = event.sequence, .copied_from = copied_from, .born_us = event.time_us};
}

void count_state_swaps(PoolStory& story, const KvState& state, const BlockEvent& event) {
  if (event.kind == BlockEventKind::kStateSwapOut && event.aux >= 0)
    story.num_states_out += state.num_host_state_owners(BlockId{event.aux}) == 0 ? 1 : 0;
  if (event.kind == BlockEventKind::kStateSwapIn)
    story.num_states_in += state.state(BlockId{event.block}).state() == BlockState::kFree ? 1 : 0;
}

void tell_of_state(PoolStory& story, const KvState& state, const BlockEvent& event) {
  const auto find = [&](std::int32_t id) -> StateStory* {
    const bool is_there = id >= 0 && static_cast<std::size_t>(id) < story.states.size();
    return is_there ? &story.states[static_cast<std::size_t>(id)] : nullptr;
  };
  const bool is_on_host = event.kind == BlockEventKind::kStateRelease && event.aux == 1;
  StateStory* const of = is_on_host ? nullptr : find(event.block);
  if (of == nullptr) return;
  count_state_swaps(story, state, event);
  switch (event.kind) {
    case BlockEventKind::kStateTake: begin_state(*of, event, /*copied_from=*/-1); break;
    case BlockEventKind::kStateSwapIn:
      if (state.state(BlockId{event.block}).state() == BlockState::kFree) begin_state(*of, event, -1);
      break;
    case BlockEventKind::kStateCopy:
      if (StateStory* const target = find(event.aux)) {
        begin_state(*target, event, event.block);
        target->last_us = event.time_us;
        target->last_step = event.step;
      }
      break;
    case BlockEventKind::kStateResume: ++of->num_resumed; break;
    case BlockEventKind::kStateKeep:
      of->sequence = event.sequence;
      of->last_block = last_block_before(state, event);
      break;
    case BlockEventKind::kStateForget:
      story.num_evicted_states += event.aux;
      of->last_block = -1;
      break;
    default: break;
  }
  of->last_us = event.time_us;
  of->last_step = event.step;
}

void tell_of_window(PoolStory& story, BlockStory& block, const BlockEvent& event) {
  if (event.kind == BlockEventKind::kWindowOpen) {
    block.window_gone_us = -1;
    block.window_gone_for = 0;
  }
  if (event.kind != BlockEventKind::kWindowClose) return;
  story.num_evicted_windows += event.aux;
  block.window_gone_us = event.time_us;
  block.window_gone_for = event.sequence;
}

}  // namespace

PoolStory story_of(const KvState& state) {
  PoolStory story;
  story.blocks.resize(static_cast<std::size_t>(state.shape().num_blocks));
  story.states.resize(static_cast<std::size_t>(state.shape().num_states));
  KvState rebuilt(state.shape());
  for (const BlockEvent& event : state.as_events()) {
    tell(story, rebuilt, event);
    (void)rebuilt.apply(event);
  }
  for (BlockStory& block : story.blocks) block.born_us = block.last_us = block.window_gone_us = -1;
  for (StateStory& of : story.states) of.born_us = of.last_us = -1;
  story.num_events_of = {};
  story.num_hit_tokens = story.num_evicted_windows = story.num_evicted_states = story.num_states_out =
      story.num_states_in = 0;
  return story;
}

void tell(PoolStory& story, const KvState& state, const BlockEvent& event) {
  const auto kind = static_cast<std::size_t>(event.kind);
  if (kind < story.num_events_of.size()) ++story.num_events_of[kind];
  if (is_of_states(event.kind)) return tell_of_state(story, state, event);
  const bool names_block = event.block >= 0 && static_cast<std::size_t>(event.block) < story.blocks.size();
  const auto table = state.table_of(SequenceId{event.sequence});
  if (is_of_windows(event.kind)) {  // they are no use of the block
    if (names_block) tell_of_window(story, story.blocks[static_cast<std::size_t>(event.block)], event);
    return;
  }
  if (names_block) {
    BlockStory& block = story.blocks[static_cast<std::size_t>(event.block)];
    if (event.kind == BlockEventKind::kAlloc) {
      begin_contents(block, event, table);
      story.leaving.erase(event.block);
    }
    if (event.kind == BlockEventKind::kHit) {
      ++block.num_hits;
      story.num_hit_tokens += state.block(BlockId{event.block}).num_filled;
    }
    if (event.kind == BlockEventKind::kEvict || event.kind == BlockEventKind::kFree) block = {};
    block.last_us = event.time_us;
    block.last_step = event.step;
  }
  switch (event.kind) {
    case BlockEventKind::kAlloc:
    case BlockEventKind::kHit:
    case BlockEventKind::kShare:
      if (event.sequence != 0) story.sequences[event.sequence].state = SequenceState::kRunning;
      break;
    case BlockEventKind::kSeal:
      if (names_block) seal(story, event);
      break;
    case BlockEventKind::kUnref:
      leave(story, state, event);
      if (ends(story, state, event)) story.sequences.erase(event.sequence);
      break;
    case BlockEventKind::kCopyOnWrite:
    case BlockEventKind::kCopyPartial:
      if (names_block) copy(story, event);
      break;
    case BlockEventKind::kSwapOut: story.leaving[event.block] = BlockId{event.aux}; break;
    case BlockEventKind::kSwapDrop: drop_host(story, event.aux); break;
    case BlockEventKind::kPreempt: preempt(story, event); break;
    case BlockEventKind::kResume: {
      SequenceStory& sequence = story.sequences[event.sequence];
      sequence.state = SequenceState::kRunning;
      sequence.host_blocks.clear();
      break;
    }
    case BlockEventKind::kFork: fork(story, event); break;
    case BlockEventKind::kStepEnd: story.leaving.clear(); break;
    default: break;
  }
}

}  // namespace octavo::metrics
