#include "app/window/memory/memory_history.h"

#include <utility>

#include "engine/metrics/kv_figures.h"

namespace octavo::app {
namespace {

using metrics::KvState;
using metrics::PoolMoment;

constexpr std::size_t kMostFacts = 16'384;

// Up to the first slot without KV: a prompt has blocks for more than is computed of it.
std::int32_t count_filled(const KvState& state, const SequenceSnapshot& sequence) {
  std::int32_t num_tokens = 0;
  for (const BlockId block : sequence.block_table) {
    const std::int32_t num_filled = sequence.state == SequenceState::kSwapped
                                        ? state.host_block(block).num_filled
                                        : state.block(block).num_filled;
    num_tokens += num_filled;
    if (num_filled < state.shape().block_size) break;
  }
  return num_tokens;
}

}  // namespace

MemoryHistory::MemoryHistory(std::shared_ptr<const metrics::StepRecorder> recorder, const Sizes& sizes)
    : recorder_(std::move(recorder)), sizes_(sizes) {}

void MemoryHistory::follow_to(std::uint64_t mark) {
  newest_mark_ = mark;
  (void)recorder_->move_to(newest_, mark);  // whoever asks for it is told what is wrong
}

void MemoryHistory::learn(const KvSnapshot& snapshot) {
  for (const SequenceSnapshot& sequence : snapshot.sequences) {
    learn(sequence.sequence_id.value,
          {sequence.request_id, sequence.output_index, sequence.num_prompt_tokens});
  }
}

void MemoryHistory::learn(std::uint64_t sequence, const SequenceFacts& facts) {
  facts_.insert_or_assign(sequence, facts);
  while (facts_.size() > kMostFacts) facts_.erase(facts_.begin());
}

std::optional<BlockEvent> MemoryHistory::event(std::uint64_t mark) const {
  const auto found = events_between(mark, mark + 1);
  return found.empty() ? std::nullopt : std::optional(found.front().events.front());
}

Result<MemoryHistory::Moment> MemoryHistory::at(std::uint64_t mark) {
  if (mark < oldest_mark() || mark > newest_mark_) {
    return Error{ErrorCode::kInvalidArgument, "that moment is no longer in the history; choose a later one"};
  }
  if (mark == newest_mark_) past_.reset();
  auto& moment = mark == newest_mark_ ? newest_ : past_;
  OCTAVO_TRY_VOID(recorder_->move_to(moment, mark));
  std::vector<KvState::HostBlock> host;
  for (std::int32_t i = 0; i < recorder_->shape().num_host_blocks; ++i)
    host.push_back(moment->state.host_block(BlockId{i}));
  return Moment{std::make_shared<const KvSnapshot>(make_snapshot(*moment)), std::move(host)};
}

const metrics::PoolStory& MemoryHistory::story() const {
  static const metrics::PoolStory kNothing;
  if (past_) return past_->story;
  return newest_ ? newest_->story : kNothing;
}

KvSnapshot MemoryHistory::make_snapshot(const PoolMoment& moment) const {
  KvSnapshot snapshot;
  const metrics::PoolShape& shape = moment.state.shape();
  const auto last = moment.mark > 0 ? event(moment.mark - 1) : std::nullopt;
  snapshot.step = moment.state.step();
  snapshot.time_us = last ? last->time_us : 0;
  const auto count = [&](BlockEventKind kind) {
    return moment.story.num_events_of[static_cast<std::size_t>(kind)];
  };
  KvTotals& totals = snapshot.totals;
  totals.block_size = shape.block_size;
  totals.num_blocks = shape.num_blocks;
  totals.num_host_blocks = shape.num_host_blocks;
  totals.bytes_per_block = sizes_.bytes_per_block;
  totals.partial_copies = count(BlockEventKind::kCopyPartial);
  totals.cow_copies = count(BlockEventKind::kCopyOnWrite) + totals.partial_copies;
  totals.swapped_out_blocks = count(BlockEventKind::kSwapOut);
  totals.swapped_in_blocks = count(BlockEventKind::kSwapIn);
  totals.evicted_cached_blocks = count(BlockEventKind::kEvict);
  totals.prefix_hit_tokens = moment.story.num_hit_tokens;
  totals.host_used_blocks = moment.state.num_host_used();
  totals.num_states = shape.num_states;
  totals.num_host_states = shape.num_host_states;
  totals.bytes_per_state = sizes_.bytes_per_state;
  totals.states.num_taken = count(BlockEventKind::kStateKeep);
  totals.states.num_resumed = count(BlockEventKind::kStateResume);
  totals.states.num_copied = count(BlockEventKind::kStateCopy);
  totals.states.num_evicted = moment.story.num_evicted_states;
  totals.states.num_swapped_out = moment.story.num_states_out;
  totals.states.num_swapped_in = moment.story.num_states_in;
  totals.window = shape.window;
  totals.num_window_blocks = shape.num_window_blocks;
  totals.num_host_window_blocks = shape.num_host_window_blocks;
  totals.bytes_per_window_block = sizes_.bytes_per_window_block;
  totals.windows.num_left = shape.num_window_blocks > 0 ? count(BlockEventKind::kLeaveWindow) : 0;
  totals.windows.num_evicted = moment.story.num_evicted_windows;
  totals.windows.num_swapped_out = count(BlockEventKind::kWindowSwapOut);
  totals.windows.num_swapped_in = count(BlockEventKind::kWindowSwapIn);
  snapshot.blocks.resize(static_cast<std::size_t>(shape.num_blocks));
  for (std::int32_t i = 0; i < shape.num_blocks; ++i) {
    const KvState::Block block = moment.state.block(BlockId{i});
    const metrics::BlockStory& story = moment.story.blocks[static_cast<std::size_t>(i)];
    const KvState::WindowPlace window = moment.state.window(BlockId{i});
    snapshot.blocks[static_cast<std::size_t>(i)] = {.state = block.state,
                                                    .ref_count = block.ref_count,
                                                    .num_pins = block.num_pins,
                                                    .filled = block.num_filled,
                                                    .parent = block.is_findable ? story.parent : -1,
                                                    .findable = block.is_findable,
                                                    .last_step = story.last_step,
                                                    .window = window.part(),
                                                    .window_place = window.place,
                                                    .window_retention = window.retention};
  }
  add_states(moment, snapshot);
  add_sequences(moment, snapshot);
  snapshot.figures = metrics::recount_figures(snapshot);
  return snapshot;
}

void MemoryHistory::add_states(const PoolMoment& moment, KvSnapshot& snapshot) {
  snapshot.states.resize(static_cast<std::size_t>(moment.state.shape().num_states));
  for (std::size_t i = 0; i < snapshot.states.size(); ++i) {
    const KvState::State state = moment.state.state(BlockId{static_cast<std::int32_t>(i)});
    const metrics::StateStory& story = moment.story.states[i];
    snapshot.states[i] = {.state = state.state(),
                          .ref_count = state.num_owners,
                          .is_checkpoint = state.is_checkpoint,
                          .reason = state.reason,
                          .position = state.position,
                          .retention = state.retention,
                          .num_saved_tokens = state.num_saved_tokens,
                          .last_block = BlockId{story.last_block},
                          .last_step = story.last_step};
  }
  for (const auto& [sequence, place] : moment.state.state_places()) {
    if (place.is_on_host) continue;
    StateSnapshot& state = snapshot.states[index_of(place.state)];
    if (state.first_owner == SequenceId{}) state.first_owner = SequenceId{sequence};
  }
}

void MemoryHistory::add_sequences(const PoolMoment& moment, KvSnapshot& snapshot) const {
  for (const auto& [id, story] : moment.story.sequences) {
    SequenceSnapshot sequence;
    sequence.sequence_id = SequenceId{id};
    sequence.state = story.state;
    if (const auto facts = facts_.find(id); facts != facts_.end()) {
      sequence.request_id = facts->second.request_id;
      sequence.output_index = facts->second.output_index;
      sequence.num_prompt_tokens = facts->second.num_prompt_tokens;
    }
    if (story.state == SequenceState::kSwapped) {
      for (const auto& [index, host] : story.host_blocks) sequence.block_table.push_back(host);
      sequence.num_blocks_left_behind = story.num_left_behind;
    } else {
      const auto table = moment.state.table_of(SequenceId{id});
      sequence.block_table.assign(table.begin(), table.end());
      sequence.num_blocks_left_behind = moment.state.num_left_behind(SequenceId{id});
    }
    if (const auto place = moment.state.state_of(SequenceId{id})) sequence.state_slot = place->state;
    sequence.num_computed_tokens = count_filled(moment.state, sequence);
    sequence.num_tokens = sequence.num_computed_tokens;
    if (story.state == SequenceState::kRunning) {
      for (const BlockId block : sequence.block_table) {
        BlockSnapshot& cell = snapshot.blocks[index_of(block)];
        if (cell.first_owner.value == 0) cell.first_owner = sequence.sequence_id;
      }
    }
    const bool is_over = story.state == SequenceState::kRunning && sequence.block_table.empty();
    if (!is_over) snapshot.sequences.push_back(std::move(sequence));
  }
}

}  // namespace octavo::app
