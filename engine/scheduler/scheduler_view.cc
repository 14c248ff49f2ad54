#include <algorithm>
#include <string>

#include "engine/base/check.h"
#include "engine/base/format.h"
#include "engine/scheduler/scheduler_state.h"

namespace octavo::scheduler {
namespace {

SequenceState state_of(const Sequence& sequence) {
  switch (sequence.status) {
    case SequenceStatus::kRunning: return SequenceState::kRunning;
    case SequenceStatus::kSwapped: return SequenceState::kSwapped;
    default: return SequenceState::kWaiting;
  }
}

SequenceSnapshot snapshot_of(const SequenceGroup& group, const Sequence& sequence) {
  const auto table = sequence.table.blocks();
  return {.sequence_id = sequence.sequence_id,
          .request_id = group.request_id,
          .output_index = static_cast<std::int32_t>(sequence.output_index),
          .state = state_of(sequence),
          .num_prompt_tokens = sequence.num_prompt_tokens(),
          .num_tokens = sequence.num_tokens(),
          .num_computed_tokens = sequence.num_computed_tokens(),
          .block_table = {table.begin(), table.end()},
          .num_blocks_left_behind = sequence.table.num_blocks_left_behind(),
          .state_slot = sequence.table.state()};
}

// Why the block is where it is, in the order of what decides.
std::string reason_for(const BlockDetail& detail) {
  const BlockSnapshot& state = detail.state;
  if (state.state == BlockState::kFree) return "free: not in use, and it holds nothing that can be reused";
  if (state.state == BlockState::kUsed) {
    std::string why = "in use by " + count_text(detail.owners.size(), "sequence");
    if (state.num_pins > 0) why += ", and being copied in this step";
    return why;
  }
  if (state.retention == RetentionClass::kPinned) return "cached and pinned: it stays until it is unpinned";
  const std::string kept = "cached as " + std::string(retention_class_name(state.retention));
  if (detail.num_children == 0)
    return kept + ": it will be evicted when memory is needed, least recently used first";
  return kept + ": it stays until the " +
         count_text(static_cast<std::size_t>(detail.num_children), "cached block") +
         " that continue it are evicted";
}

}  // namespace

bool Scheduler::has_work() const { return !state_->queue.all().empty(); }
std::int32_t Scheduler::num_waiting() const {
  return static_cast<std::int32_t>(state_->queue.waiting().size());
}
std::int32_t Scheduler::num_running() const {
  return static_cast<std::int32_t>(state_->queue.running().size());
}
std::int32_t Scheduler::num_swapped_out() const {
  return static_cast<std::int32_t>(std::ranges::count_if(
      state_->queue.waiting(), [](const auto& group) { return group->is_swapped_out(); }));
}

std::vector<Scheduler::SequenceView> Scheduler::sequences_of(RequestId request_id) const {
  std::vector<SequenceView> views;
  for (const auto& group : state_->queue.groups_of(request_id)) {
    for (const Sequence& sequence : group->sequences) {
      views.push_back({sequence.sequence_id, request_id, sequence.output_index, sequence.token_ids(),
                       sequence.num_prompt_tokens(), sequence.num_computed_tokens()});
    }
  }
  return views;
}

const KvTotals& Scheduler::totals() const { return state_->blocks.totals(); }
KvFigures Scheduler::figures() const { return state_->blocks.figures(); }

std::vector<block::OwnedTable> Scheduler::State::owned_tables() const {
  std::vector<block::OwnedTable> tables;
  for (const SequenceGroup* const group : queue.by_arrival()) {
    for (const Sequence& sequence : group->live()) {
      tables.push_back({&sequence.table, group->content(sequence)});
    }
  }
  return tables;
}

KvSnapshot Scheduler::snapshot(SnapshotScope scope) const {
  KvSnapshot snapshot;
  snapshot.step = state_->step - (state_->has_step_ahead ? 1 : 0);
  snapshot.totals = totals();
  snapshot.figures = figures();
  if (scope == SnapshotScope::kPool) snapshot.blocks = state_->blocks.snapshot(state_->owned_tables());
  if (state_->blocks.states().is_used())
    snapshot.states = state_->blocks.state_snapshot(state_->owned_tables());
  for (const SequenceGroup* const group : state_->queue.by_arrival()) {
    for (const Sequence& sequence : group->live()) {
      snapshot.sequences.push_back(snapshot_of(*group, sequence));
    }
  }
  return snapshot;
}

BlockDetail Scheduler::describe_block(BlockId block) const {
  const block::BlockManager& blocks = state_->blocks;
  OCTAVO_CHECK(block.value >= 0 && block.value < blocks.pool().num_blocks(), "block %d of %d", block.value,
               blocks.pool().num_blocks());
  BlockDetail detail{.block = block};
  const std::vector<block::OwnedTable> tables = state_->owned_tables();
  detail.state = blocks.snapshot(tables)[index_of(block)];
  const std::int32_t block_size = state_->options.block_size;
  const auto show = [&](std::int32_t index, std::span<const TokenId> token_ids) {
    detail.first_position = index * block_size;
    const std::int32_t num_slots = detail.state.filled + detail.state.reserved;
    const auto begin = token_ids.begin() + detail.first_position;
    detail.token_ids.assign(begin, begin + std::min<std::ptrdiff_t>(num_slots, token_ids.end() - begin));
  };
  for (const block::OwnedTable& owned : tables) {
    if (owned.table->is_swapped_out()) continue;
    const auto entries = owned.table->blocks();
    const auto entry = std::ranges::find(entries, block);
    if (entry == entries.end()) continue;
    detail.owners.push_back(owned.table->owner());
    if (detail.owners.size() == 1) {
      show(static_cast<std::int32_t>(entry - entries.begin()), owned.content.token_ids);
    }
  }
  const block::PrefixCache& cache = blocks.prefix_cache();
  if (const block::PrefixNodeId node = cache.node_of(block); node != block::kNoNode) {
    detail.num_children = cache.num_children(node);
    BlockId parent = cache.parent_block(block);
    for (; parent != block::kNoBlock; parent = cache.parent_block(parent)) detail.chain.push_back(parent);
    std::ranges::reverse(detail.chain);
    const auto token_ids = cache.tokens(node);
    detail.token_ids.assign(token_ids.begin(), token_ids.end());
    detail.first_position = static_cast<std::int32_t>(detail.chain.size()) * block_size;
  }
  detail.why = reason_for(detail);
  return detail;
}

std::optional<std::string> Scheduler::broken_invariant() const {
  const State& state = *state_;
  if (auto broken = state.queue.broken_invariant()) return broken;
  if (auto broken = state.blocks.broken_invariant(state.owned_tables())) return broken;
  for (const auto& group : state.queue.running()) {
    if (auto broken = state.broken_group(*group, /*is_running=*/true)) return broken;
  }
  for (const auto& group : state.queue.waiting()) {
    if (auto broken = state.broken_group(*group, /*is_running=*/false)) return broken;
  }
  if (state.queue.running().size() > 1 &&
      state.level().num_running_sequences > state.most_running_sequences()) {
    return "more sequences run than may";
  }
  return std::nullopt;
}

std::optional<std::string> Scheduler::State::broken_group(const SequenceGroup& group, bool is_running) const {
  const bool is_swapped_out = group.is_swapped_out();
  for (const Sequence& sequence : group.sequences) {
    const auto broken = [&](const char* what) {
      return "sequence " + std::to_string(sequence.sequence_id.value) + what;
    };
    const bool may_hold_blocks = sequence.is_live() && sequence.is_attached && (is_running || is_swapped_out);
    if (!may_hold_blocks && !sequence.table.empty()) return broken(" holds blocks that it may not have");
    if (!sequence.is_live()) continue;
    if ((sequence.status == SequenceStatus::kRunning) != is_running ||
        (sequence.status == SequenceStatus::kSwapped) != is_swapped_out) {
      return broken(": its status is not that of its group");
    }
    if (sequence.table.is_swapped_out() && !is_swapped_out) return broken(" has blocks in the host pool");
    if (is_swapped_out && !sequence.table.is_swapped_out() && !sequence.table.empty()) {
      return broken(" was left on the device");
    }
    if (sequence.num_computed_tokens() > sequence.num_tokens()) {
      return broken(" has KV of tokens that it does not have");
    }
    if (sequence.num_draft_tokens() > 0 && !step_in_flight) return broken(" keeps a draft after its step");
    const std::int32_t num_undrawn = step_in_flight && has_step_ahead ? 1 : 0;
    if (sequence.table.num_assigned_tokens() >
        sequence.num_tokens() + sequence.num_draft_tokens() + num_undrawn) {
      return broken(" has slots for tokens that it does not have");
    }
  }
  return std::nullopt;
}

}  // namespace octavo::scheduler
