#include "engine/block/state_manager.h"

#include <algorithm>
#include <utility>

#include "engine/base/check.h"

namespace octavo::block {
namespace {

// How much more a token of a higher class is worth: a system prompt serves every chat that starts with it.
std::int64_t weight_of(RetentionClass retention) { return std::int64_t{1} << static_cast<int>(retention); }

// [state]: how often it is named.
std::vector<std::int32_t> counts_of(std::span<const BlockId> owners, std::int32_t num_states) {
  std::vector<std::int32_t> counts(static_cast<std::size_t>(num_states));
  for (const BlockId state : owners) {
    if (state != kNoBlock) ++counts[index_of(state)];
  }
  return counts;
}

}  // namespace

StateManager::StateManager(std::int32_t num_states, std::int32_t num_host_states,
                           const PrefixCache& prefix_cache, BlockEventLog& events)
    : prefix_cache_(prefix_cache),
      events_(events),
      pool_(num_states, 1),
      host_pool_(num_host_states, 1),
      kept_(static_cast<std::size_t>(num_states)),
      moved_to_(static_cast<std::size_t>(std::max(num_states, num_host_states)), kNoBlock) {}

void StateManager::begin_step(std::int64_t step) {
  pool_.begin_step(step);
  host_pool_.begin_step(step);
}

// ---- asking

bool StateManager::is_reachable(const CheckpointPlace& place) const {
  return place.node == kNoNode || prefix_cache_.serial(place.node) == place.serial;
}

BlockId StateManager::find(const std::function<bool(const CheckpointPlace&)>& fits) const {
  BlockId best = kNoBlock;
  for (std::int32_t id = 0; id < pool_.num_blocks(); ++id) {
    const auto& checkpoint = checkpoint_of(BlockId{id});
    if (!checkpoint || !is_reachable(checkpoint->place)) continue;
    const bool is_longer =
        best == kNoBlock || checkpoint->place.position > checkpoint_of(best)->place.position;
    if (is_longer && fits(checkpoint->place)) best = BlockId{id};
  }
  return best;
}

// ---- owners

BlockId StateManager::share(BlockId state, SequenceId owner) {
  if (state == kNoBlock) return state;
  pool_.ref(state);
  events_.record(BlockEventKind::kStateShare, owner, state);
  return state;
}

BlockId StateManager::resume(BlockId state, SequenceId owner) {
  use(state);
  ++totals_.num_resumed;
  pool_.ref(state);
  events_.record(BlockEventKind::kStateResume, owner, state, checkpoint_of(state)->place.position);
  return state;
}

void StateManager::let_go(BlockId state, SequenceId owner) {
  if (state == kNoBlock) return;
  events_.record(BlockEventKind::kStateRelease, owner, state);
  unref(state);
}

void StateManager::unref(BlockId state) {
  if (pool_.unref(state) == 0 && !checkpoint_of(state)) pool_.discard(state);
}

BlockId StateManager::take(SequenceId owner) {
  if (pool_.num_free() == 0) {
    const bool evicted = evict_one(owner);
    OCTAVO_CHECK(evicted, "all %d states are in use", pool_.num_blocks());
  }
  const BlockId state = pool_.take();
  totals_.peak_held = std::max(totals_.peak_held, pool_.num_blocks() - pool_.num_free());
  return state;
}

BlockId StateManager::make_writable(BlockId state, SequenceId owner, std::vector<PoolMove>& moves) {
  if (state == kNoBlock) {
    const BlockId fresh = take(owner);
    events_.record(BlockEventKind::kStateTake, owner, fresh);
    moves.push_back({.kind = PoolMoveKind::kClear, .target = fresh});
    return fresh;
  }
  const bool is_shared = pool_.at(state).ref_count > 1;
  if (!is_shared && !checkpoint_of(state)) return state;
  if (!is_shared && pool_.num_used() == pool_.num_blocks()) {
    forget(state, Forgetting::kGivenUp);
    return state;
  }
  const BlockId copy = take(owner);
  events_.record(BlockEventKind::kStateCopy, owner, state, copy.value);
  moves.push_back({.kind = PoolMoveKind::kCopy, .source = state, .target = copy});
  ++totals_.num_copied;
  unref(state);
  return copy;
}

// ---- checkpoints

void StateManager::use(BlockId state) {
  Kept& kept = kept_of(state);
  kept.worth = age_ + kept.checkpoint->num_saved_tokens * weight_of(kept.checkpoint->retention);
}

bool StateManager::keep(BlockId state, SequenceId owner, Checkpoint checkpoint) {
  if (checkpoint_of(state)) return false;
  const BlockId same = find([&](const CheckpointPlace& place) { return place == checkpoint.place; });
  if (same != kNoBlock) {
    Checkpoint& known = *kept_of(same).checkpoint;
    if (checkpoint.retention > known.retention) {
      known.retention = checkpoint.retention;
      note_worth(same);
    }
    use(same);
    return false;
  }
  events_.record(BlockEventKind::kStateKeep, owner, state,
                 checkpoint_aux(checkpoint.place.position, checkpoint.reason));
  kept_of(state).checkpoint = std::move(checkpoint);
  note_worth(state);
  use(state);
  ++num_checkpoints_;
  ++totals_.num_taken;
  return true;
}

void StateManager::note_worth(BlockId state) {
  const Checkpoint& checkpoint = *checkpoint_of(state);
  events_.record(BlockEventKind::kStateWorth, SequenceId{}, state,
                 checkpoint_worth_aux(checkpoint.num_saved_tokens, checkpoint.retention));
}

void StateManager::forget(BlockId state, Forgetting why, SequenceId by) {
  const bool is_evicted = why == Forgetting::kEvicted;
  events_.record(BlockEventKind::kStateForget, by, state, is_evicted ? 1 : 0);
  kept_of(state).checkpoint.reset();
  --num_checkpoints_;
  if (is_evicted) ++totals_.num_evicted;
}

bool StateManager::evict_one(SequenceId by) {
  BlockId victim = kNoBlock;
  for (std::int32_t id = 0; id < pool_.num_blocks(); ++id) {
    const BlockId state{id};
    if (pool_.at(state).state != BlockState::kCached) continue;
    if (victim == kNoBlock || kept_of(state).worth < kept_of(victim).worth) victim = state;
  }
  if (victim == kNoBlock) return false;
  age_ = std::max(age_, kept_of(victim).worth);
  forget(victim, Forgetting::kEvicted, by);
  pool_.discard(victim);
  return true;
}

void StateManager::reset() {
  for (std::int32_t id = 0; id < pool_.num_blocks(); ++id) {
    if (checkpoint_of(BlockId{id})) forget(BlockId{id}, Forgetting::kGivenUp);
    if (pool_.at(BlockId{id}).state == BlockState::kCached) pool_.discard(BlockId{id});
  }
}

void StateManager::drop_unreachable() {
  for (std::int32_t id = 0; id < pool_.num_blocks(); ++id) {
    const auto& checkpoint = checkpoint_of(BlockId{id});
    if (!checkpoint || is_reachable(checkpoint->place)) continue;
    forget(BlockId{id}, Forgetting::kEvicted);
    if (pool_.at(BlockId{id}).state == BlockState::kCached) pool_.discard(BlockId{id});
  }
}

// ---- swapping

bool StateManager::swap_out(std::span<const StateOwner> owners, std::vector<PoolMove>& moves) {
  std::vector<BlockId> distinct;
  for (const StateOwner& owner : owners) {
    if (*owner.state != kNoBlock) distinct.push_back(*owner.state);
  }
  std::ranges::sort(distinct);
  distinct.erase(std::unique(distinct.begin(), distinct.end()), distinct.end());
  if (std::cmp_greater(distinct.size(), host_pool_.num_free())) return false;
  for (const auto& [state, sequence] : owners) {
    if (*state == kNoBlock) continue;
    BlockId& host_state = moved_to_[index_of(*state)];
    if (host_state == kNoBlock) {
      host_state = host_pool_.take();
      moves.push_back({.kind = PoolMoveKind::kSwapOut, .source = *state, .target = host_state});
    } else {
      host_pool_.ref(host_state);
    }
    events_.record(BlockEventKind::kStateSwapOut, sequence, *state, host_state.value);
    unref(std::exchange(*state, host_state));
  }
  for (const BlockId state : distinct) moved_to_[index_of(state)] = kNoBlock;
  totals_.num_swapped_out += std::ssize(distinct);
  return true;
}

void StateManager::swap_in(std::span<const StateOwner> owners, std::vector<PoolMove>& moves) {
  std::vector<BlockId> distinct;
  for (const auto& [state, sequence] : owners) {
    if (*state == kNoBlock) continue;
    const BlockId host_state = *state;
    BlockId& device_state = moved_to_[index_of(host_state)];
    if (device_state == kNoBlock) {
      device_state = take(sequence);
      distinct.push_back(host_state);
      moves.push_back({.kind = PoolMoveKind::kSwapIn, .source = host_state, .target = device_state});
    } else {
      pool_.ref(device_state);
    }
    events_.record(BlockEventKind::kStateSwapIn, sequence, device_state, host_state.value);
    *state = device_state;
    unref_host(host_state);
  }
  for (const BlockId host_state : distinct) moved_to_[index_of(host_state)] = kNoBlock;
  totals_.num_swapped_in += std::ssize(distinct);
}

void StateManager::let_host_go(BlockId host_state, SequenceId owner) {
  if (host_state == kNoBlock) return;
  events_.record(BlockEventKind::kStateRelease, owner, host_state, /*aux=*/1);
  unref_host(host_state);
}

void StateManager::unref_host(BlockId host_state) {
  if (host_pool_.unref(host_state) == 0) host_pool_.discard(host_state);
}

// ---- figures and checks

void StateManager::describe(KvFigures& figures) const {
  figures.used_states = pool_.num_used();
  figures.cached_states = pool_.num_cached();
  figures.free_states = pool_.num_free();
  figures.host_used_states = host_pool_.num_used();
  figures.checkpoints = num_checkpoints_;
}

std::optional<std::string> StateManager::broken_invariant(std::span<const BlockId> owners,
                                                          std::span<const BlockId> host_owners) const {
  if (auto broken = pool_.broken_invariant()) return "states: " + *broken;
  if (auto broken = host_pool_.broken_invariant()) return "states of the host pool: " + *broken;
  const auto counts = counts_of(owners, pool_.num_blocks());
  std::int32_t num_checkpoints = 0;
  for (std::int32_t id = 0; id < pool_.num_blocks(); ++id) {
    const Block& state = pool_.at(BlockId{id});
    const auto& checkpoint = checkpoint_of(BlockId{id});
    const std::string name = "state " + std::to_string(id);
    num_checkpoints += checkpoint ? 1 : 0;
    if (state.ref_count != counts[static_cast<std::size_t>(id)]) {
      return name + " has " + std::to_string(state.ref_count) + " references and " +
             std::to_string(counts[static_cast<std::size_t>(id)]) + " owners";
    }
    if (state.state == BlockState::kFree && checkpoint) return name + " is free and has a checkpoint";
    if (state.state == BlockState::kCached && !checkpoint) return name + " is kept without a checkpoint";
    if (!checkpoint) continue;
    for (std::int32_t other = 0; other < id; ++other) {
      const auto& earlier = checkpoint_of(BlockId{other});
      if (earlier && earlier->place == checkpoint->place)
        return name + " has a checkpoint where another one stands";
    }
  }
  if (num_checkpoints != num_checkpoints_) return "the count of checkpoints is wrong";
  const auto host_counts = counts_of(host_owners, host_pool_.num_blocks());
  for (std::int32_t id = 0; id < host_pool_.num_blocks(); ++id) {
    const Block& state = host_pool_.at(BlockId{id});
    if (state.ref_count != host_counts[static_cast<std::size_t>(id)] || state.state == BlockState::kCached)
      return "state " + std::to_string(id) + " of the host pool is not that of its owners";
  }
  return std::nullopt;
}

}  // namespace octavo::block
