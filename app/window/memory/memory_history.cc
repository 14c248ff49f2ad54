#include "app/window/memory/memory_history.h"

#include <algorithm>
#include <utility>

namespace octavo::app {
namespace {

using metrics::KvState;

constexpr std::size_t kLeastKeyframeEvents = std::size_t{1} << 13;
constexpr std::size_t kMostFacts = 16'384;

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
  if (index >= 0) story.sequences[event.sequence].host_blocks[index] = host->second;
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

}  // namespace

void tell(PoolStory& story, const KvState& state, const BlockEvent& event) {
  const auto kind = static_cast<std::size_t>(event.kind);
  if (kind < story.num_events_of.size()) ++story.num_events_of[kind];
  const bool names_block = event.block >= 0 && static_cast<std::size_t>(event.block) < story.blocks.size();
  const auto table = state.table_of(SequenceId{event.sequence});
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

MemoryHistory::MemoryHistory(const metrics::PoolShape& shape, std::int64_t bytes_per_block,
                             const metrics::HistorySizes& sizes)
    : shape_(shape), bytes_per_block_(bytes_per_block), sizes_(sizes) {
  begin_with(KvState(shape));
}

void MemoryHistory::begin_with(const KvState& state) {
  first_mark_ = newest_mark();
  events_.clear();
  keyframes_.clear();
  replay_.reset();
  recorder_ = std::make_unique<metrics::StepRecorder>(shape_, sizes_);
  const std::vector<BlockEvent> stand_in = state.as_events();
  recorder_->record(std::nullopt, stand_in);
  state_marks_ = stand_in.size();
  recorder_first_mark_ = first_mark_;
  PoolStory story;
  story.blocks.resize(static_cast<std::size_t>(shape_.num_blocks));
  KvState rebuilt(shape_);
  for (const BlockEvent& event : stand_in) {
    tell(story, rebuilt, event);
    (void)rebuilt.apply(event);
  }
  for (BlockStory& block : story.blocks) block.born_us = block.last_us = -1;
  story.num_events_of = {};
  story.num_hit_tokens = 0;
  keyframes_.push_back({first_mark_, story});
  newest_ = std::make_unique<Replay>(Replay{first_mark_, state, std::move(story)});
}

void MemoryHistory::append(const BlockEvent& event) {
  tell(newest_->story, newest_->state, event);
  (void)newest_->state.apply(event);
  events_.push_back(event);
  ++newest_->mark;
  const std::size_t apart =
      std::max(kLeastKeyframeEvents, 2 * static_cast<std::size_t>(std::max(0, shape_.num_blocks)));
  if (newest_->mark - keyframes_.back().mark >= apart) keyframes_.push_back({newest_->mark, newest_->story});
  while (keyframes_.size() > 1 && newest_->mark - keyframes_[1].mark >= sizes_.num_events) {
    keyframes_.pop_front();
    while (first_mark_ < keyframes_.front().mark) {
      events_.pop_front();
      ++first_mark_;
    }
  }
}

void MemoryHistory::add(const metrics::Trace& trace, const std::optional<KvState>& state) {
  if (trace.num_lost > 0 && state) begin_with(*state);
  const std::uint64_t trace_mark = trace.next_event_mark - trace.block_events.size();
  std::size_t next = 0;
  // Steps and events go to the recorder as they came, so that its marks of steps are right.
  for (std::size_t i = 0; i <= trace.steps.size(); ++i) {
    const bool is_step = i < trace.steps.size();
    std::size_t end = trace.block_events.size();
    if (is_step) {
      const std::uint64_t mark =
          i < trace.step_event_marks.size() ? trace.step_event_marks[i] : trace_mark + end;
      end = std::clamp<std::size_t>(mark > trace_mark ? mark - trace_mark : 0, next, end);
    }
    const std::span<const BlockEvent> events(trace.block_events.data() + next, end - next);
    for (const BlockEvent& event : events) append(event);
    if (is_step) {
      recorder_->record(trace.steps[i], events);
    } else if (!events.empty()) {
      recorder_->record(std::nullopt, events);
    }
    next = end;
  }
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

std::uint64_t MemoryHistory::oldest_mark() const {
  const std::uint64_t oldest = recorder_->oldest_event_mark();
  const std::uint64_t ours =
      recorder_first_mark_ + (oldest > state_marks_ ? oldest - state_marks_ : std::uint64_t{0});
  for (const Keyframe& keyframe : keyframes_) {
    if (keyframe.mark >= ours) return keyframe.mark;
  }
  return newest_mark();
}

Result<void> MemoryHistory::move_to(std::uint64_t mark) {
  if (mark == newest_mark()) {
    replay_.reset();
    return {};
  }
  if (mark < oldest_mark() || mark > newest_mark()) {
    return Error{ErrorCode::kInvalidArgument, "that moment is not kept any more; choose a later one"};
  }
  auto keyframe = keyframes_.begin();
  while (std::next(keyframe) != keyframes_.end() && std::next(keyframe)->mark <= mark) ++keyframe;
  const bool goes_on = replay_ != nullptr && replay_->mark <= mark && replay_->mark >= keyframe->mark;
  if (!goes_on) {
    OCTAVO_TRY(KvState state, recorder_->state_at(keyframe->mark - recorder_first_mark_ + state_marks_));
    replay_ = std::make_unique<Replay>(Replay{keyframe->mark, std::move(state), keyframe->story});
  }
  for (; replay_->mark < mark; ++replay_->mark) {
    const BlockEvent& event = this->event(replay_->mark);
    tell(replay_->story, replay_->state, event);
    OCTAVO_TRY_VOID(replay_->state.apply(event));
  }
  return {};
}

Result<MemoryHistory::Moment> MemoryHistory::at(std::uint64_t mark) {
  OCTAVO_TRY_VOID(move_to(mark));
  Moment moment;
  moment.snapshot = std::make_shared<const KvSnapshot>(make_snapshot(shown()));
  for (std::int32_t i = 0; i < shape_.num_host_blocks; ++i) {
    moment.host.push_back(shown().state.host_block(BlockId{i}));
  }
  return moment;
}

KvSnapshot MemoryHistory::make_snapshot(const Replay& replay) const {
  KvSnapshot snapshot;
  const bool has_past = replay.mark > first_mark_ && has_event(replay.mark - 1);
  snapshot.step = has_past ? event(replay.mark - 1).step : replay.state.step();
  snapshot.time_us = has_past ? event(replay.mark - 1).time_us : 0;
  const auto count = [&](BlockEventKind kind) {
    return replay.story.num_events_of[static_cast<std::size_t>(kind)];
  };
  KvTotals& totals = snapshot.totals;
  totals.block_size = shape_.block_size;
  totals.num_blocks = shape_.num_blocks;
  totals.num_host_blocks = shape_.num_host_blocks;
  totals.bytes_per_block = bytes_per_block_;
  totals.partial_copies = count(BlockEventKind::kCopyPartial);
  totals.cow_copies = count(BlockEventKind::kCopyOnWrite) + totals.partial_copies;
  totals.swapped_out_blocks = count(BlockEventKind::kSwapOut);
  totals.swapped_in_blocks = count(BlockEventKind::kSwapIn);
  totals.evicted_cached_blocks = count(BlockEventKind::kEvict);
  totals.prefix_hit_tokens = replay.story.num_hit_tokens;
  totals.host_used_blocks = replay.state.num_host_used();
  snapshot.blocks.resize(static_cast<std::size_t>(shape_.num_blocks));
  for (std::int32_t i = 0; i < shape_.num_blocks; ++i) {
    const KvState::Block block = replay.state.block(BlockId{i});
    const BlockStory& story = replay.story.blocks[static_cast<std::size_t>(i)];
    snapshot.blocks[static_cast<std::size_t>(i)] = {.state = block.state,
                                                    .ref_count = block.ref_count,
                                                    .num_pins = block.num_pins,
                                                    .filled = block.num_filled,
                                                    .parent = block.is_findable ? story.parent : -1,
                                                    .findable = block.is_findable,
                                                    .last_step = story.last_step};
  }
  add_sequences(replay, snapshot);
  snapshot.figures = metrics::recount_figures(snapshot);
  return snapshot;
}

void MemoryHistory::add_sequences(const Replay& replay, KvSnapshot& snapshot) const {
  for (const auto& [id, story] : replay.story.sequences) {
    SequenceSnapshot sequence;
    sequence.sequence_id = SequenceId{id};
    sequence.state = story.state;
    if (const auto facts = facts_.find(id); facts != facts_.end()) {
      sequence.request_id = facts->second.request_id;
      sequence.output_index = facts->second.output_index;
      sequence.num_prompt_tokens = facts->second.num_prompt_tokens;
    }
    std::int32_t last_filled = 0;
    if (story.state == SequenceState::kSwapped) {
      for (const auto& [index, host] : story.host_blocks) sequence.block_table.push_back(host);
      if (!sequence.block_table.empty())
        last_filled = replay.state.host_block(sequence.block_table.back()).num_filled;
    } else {
      const auto table = replay.state.table_of(SequenceId{id});
      sequence.block_table.assign(table.begin(), table.end());
      if (!table.empty()) last_filled = replay.state.block(table.back()).num_filled;
    }
    const auto num_blocks = static_cast<std::int32_t>(sequence.block_table.size());
    if (num_blocks > 0) sequence.num_computed_tokens = (num_blocks - 1) * shape_.block_size + last_filled;
    sequence.num_tokens = sequence.num_computed_tokens;
    if (story.state == SequenceState::kRunning) {
      for (const BlockId block : sequence.block_table) {
        BlockSnapshot& cell = snapshot.blocks[static_cast<std::size_t>(block.value)];
        if (cell.first_owner.value == 0) cell.first_owner = sequence.sequence_id;
      }
    }
    const bool is_over = story.state == SequenceState::kRunning && num_blocks == 0;
    if (!is_over) snapshot.sequences.push_back(std::move(sequence));
  }
}

}  // namespace octavo::app
