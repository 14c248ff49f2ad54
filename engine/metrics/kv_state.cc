#include "engine/metrics/kv_state.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "engine/base/check.h"

namespace octavo::metrics {
namespace {

// The owner of blocks that as_events() takes for a moment.
constexpr std::uint64_t kNobody = std::numeric_limits<std::uint64_t>::max();

// "event unref of block 7 for sequence 3 (aux 1): it has no reference"
Error impossible(const BlockEvent& event, const std::string& why) {
  std::string what = "event " + std::string(block_event_kind_name(event.kind));
  if (event.block >= 0) what += " of block " + std::to_string(event.block);
  if (event.sequence != 0) what += " for sequence " + std::to_string(event.sequence);
  return {.code = ErrorCode::kDamagedFile,
          .message = what + " with " + std::to_string(event.aux) + " in step " + std::to_string(event.step) +
                     " is impossible: " + why};
}

bool names_block(BlockEventKind kind) {
  switch (kind) {
    case BlockEventKind::kStepBegin:
    case BlockEventKind::kStepEnd:
    case BlockEventKind::kSwapDrop:
    case BlockEventKind::kPreempt:
    case BlockEventKind::kResume:
    case BlockEventKind::kFork:
    case BlockEventKind::kWindowSkip:
    case BlockEventKind::kWindowMiss:
    case BlockEventKind::kPrune: return false;
    default: return !is_of_states(kind);
  }
}

bool names_sequence(BlockEventKind kind) {
  switch (kind) {
    case BlockEventKind::kAlloc:
    case BlockEventKind::kHit:
    case BlockEventKind::kShare:
    case BlockEventKind::kFill:
    case BlockEventKind::kLeaveWindow:
    case BlockEventKind::kWindowSkip:
    case BlockEventKind::kCopyOnWrite: return true;
    default: return false;
  }
}

std::string with_noun(std::int64_t count, const char* noun) { return std::to_string(count) + " " + noun; }

// The newest entry of `block`: tables are released from their end.
std::vector<BlockId>::iterator find_last(std::vector<BlockId>& table, BlockId block) {
  const auto found = std::find(table.rbegin(), table.rend(), block);
  return found == table.rend() ? table.end() : std::prev(found.base());
}

// Grown up to it.
template <class Entry>
Entry& entry_at(std::vector<Entry>& entries, std::int32_t id) {
  const auto index = static_cast<std::size_t>(id);
  if (index >= entries.size()) entries.resize(index + 1);
  return entries[index];
}

// Unused entries at the end say nothing.
template <class Entry>
Entry entry_or_none(const std::vector<Entry>& entries, std::size_t index) {
  return index < entries.size() ? entries[index] : Entry{};
}

}  // namespace

KvState::KvState(const PoolShape& shape)
    : shape_(shape), is_window_taken_(static_cast<std::size_t>(shape.num_window_blocks)) {
  OCTAVO_CHECK(shape.block_size >= 1 && shape.num_blocks >= 0 && shape.num_host_blocks >= 0,
               "%d tokens a block, %d and %d blocks", shape.block_size, shape.num_blocks,
               shape.num_host_blocks);
}

// ---- from what the engine says

KvState KvState::from(const KvSnapshot& snapshot) {
  const KvTotals& totals = snapshot.totals;
  KvState state({totals.block_size, static_cast<std::int32_t>(snapshot.blocks.size()), totals.num_host_blocks,
                 static_cast<std::int32_t>(snapshot.states.size()), totals.num_host_states, totals.window,
                 totals.num_window_blocks, totals.num_host_window_blocks});
  state.step_ = snapshot.step;
  for (std::size_t i = 0; i < snapshot.blocks.size(); ++i) {
    const BlockSnapshot& from = snapshot.blocks[i];
    if (from.state == BlockState::kFree) continue;
    Block& block = state.block_at(static_cast<std::int32_t>(i));
    block = {from.state, from.findable, 0, from.ref_count, from.num_pins};
    (from.state == BlockState::kUsed ? state.num_used_ : state.num_cached_) += 1;
    state.set_filled(block, static_cast<std::int16_t>(from.filled));
    if (from.window == WindowPart::kNone) continue;
    entry_at(state.windows_, static_cast<std::int32_t>(i)) = {from.window_place, 0, from.window_retention};
    state.is_window_taken_[index_of(from.window_place)] = true;
    ++state.num_open_windows_;
  }
  for (std::size_t i = 0; i < snapshot.states.size(); ++i) {
    const StateSnapshot& from = snapshot.states[i];
    if (from.is_checkpoint)
      entry_at(state.states_, static_cast<std::int32_t>(i)) = {
          0, true, from.reason, from.position, from.num_saved_tokens, from.retention};
  }
  for (const SequenceSnapshot& sequence : snapshot.sequences) {
    if (sequence.state_slot.value >= 0) {
      state.move_state(sequence.sequence_id.value,
                       StatePlace{sequence.state_slot, sequence.state == SequenceState::kSwapped});
    }
    if (sequence.block_table.empty()) continue;
    if (sequence.state != SequenceState::kSwapped) {
      if (sequence.num_blocks_left_behind > 0)
        state.num_left_[sequence.sequence_id.value] = sequence.num_blocks_left_behind;
      for (const BlockId block : sequence.block_table) state.append_entry(sequence.sequence_id.value, block);
      continue;
    }
    for (std::size_t i = 0; i < sequence.block_table.size(); ++i) {
      HostBlock& host = state.host_at(sequence.block_table[i].value);
      state.num_host_used_ += host.is_used ? 0 : 1;
      const std::int32_t num_filled =
          std::clamp(sequence.num_computed_tokens - static_cast<std::int32_t>(i) * totals.block_size, 0,
                     totals.block_size);
      const bool has_window =
          state.shape_.num_window_blocks > 0 && std::cmp_greater_equal(i, sequence.num_blocks_left_behind);
      host = {true, std::max(host.num_filled, static_cast<std::int16_t>(num_filled)),
              host.has_window || has_window};
    }
  }
  for (std::size_t i = 0; i < snapshot.blocks.size(); ++i) {
    const std::int32_t num_pins = snapshot.blocks[i].num_pins;
    if (num_pins > 0) state.count_reader(BlockId{static_cast<std::int32_t>(i)}, num_pins);
  }
  return state;
}

// ---- events

Result<void> KvState::apply(const BlockEvent& event) {
  if (event.step < step_) return impossible(event, "step " + std::to_string(step_) + " came before");
  OCTAVO_TRY_VOID(check_named(event));
  const auto handle = [&]() -> Result<void> {
    switch (event.kind) {
      case BlockEventKind::kAlloc: return allocate(event);
      case BlockEventKind::kHit:
      case BlockEventKind::kShare:
      case BlockEventKind::kPin: return reference(event);
      case BlockEventKind::kUnref: return release(event);
      case BlockEventKind::kFree:
      case BlockEventKind::kEvict: return discard(event);
      case BlockEventKind::kFill: return fill(event);
      case BlockEventKind::kSeal: return seal(event);
      case BlockEventKind::kCopyOnWrite:
      case BlockEventKind::kCopyPartial: return copy(event);
      case BlockEventKind::kSwapOut: return swap_out(event);
      case BlockEventKind::kSwapIn: return swap_in(event);
      case BlockEventKind::kSwapDrop: return drop_host(event);
      case BlockEventKind::kStepEnd: return end_step(event);
      case BlockEventKind::kStepBegin:
      case BlockEventKind::kPreempt:
      case BlockEventKind::kResume:
      case BlockEventKind::kFork:
      case BlockEventKind::kPrune: return {};
      default: return is_of_windows(event.kind) ? apply_to_windows(event) : apply_to_states(event);
    }
  };
  OCTAVO_TRY_VOID(handle());
  step_ = event.step;
  return {};
}

Result<void> KvState::check_named(const BlockEvent& event) const {
  if (names_block(event.kind) && (event.block < 0 || event.block >= shape_.num_blocks)) {
    return impossible(event, "the pool has " + with_noun(shape_.num_blocks, "blocks"));
  }
  if (names_sequence(event.kind) && event.sequence == 0) return impossible(event, "it names no sequence");
  return {};
}

Result<void> KvState::check_host(const BlockEvent& event) const {
  if (event.aux >= 0 && event.aux < shape_.num_host_blocks) return {};
  return impossible(event, "the host pool has " + with_noun(shape_.num_host_blocks, "blocks"));
}

Result<void> KvState::allocate(const BlockEvent& event) {
  Block& block = block_at(event.block);
  if (block.state != BlockState::kFree) return impossible(event, "the block is not free");
  block = {.state = BlockState::kUsed, .ref_count = 1};
  ++num_used_;
  append_entry(event.sequence, BlockId{event.block});
  return {};
}

Result<void> KvState::reference(const BlockEvent& event) {
  Block& block = block_at(event.block);
  if (block.state == BlockState::kFree) return impossible(event, "the block is free");
  if (event.aux != block.ref_count + 1) {
    return impossible(event, "before it there were " + with_noun(block.ref_count, "references"));
  }
  if (block.state == BlockState::kCached) {
    block.state = BlockState::kUsed;
    --num_cached_;
    ++num_used_;
    num_filled_slots_ += block.num_filled;
  }
  ++block.ref_count;
  if (event.kind == BlockEventKind::kPin) {
    ++block.num_pins;
    count_reader(BlockId{event.block}, 1);
  } else {
    append_entry(event.sequence, BlockId{event.block});
  }
  return {};
}

Result<void> KvState::release(const BlockEvent& event) {
  Block& block = block_at(event.block);
  if (block.ref_count == 0 || event.aux != block.ref_count - 1) {
    return impossible(event, "before it there were " + with_noun(block.ref_count, "references"));
  }
  if (event.sequence == 0) {
    if (block.num_pins == 0) return impossible(event, "no pin names the block");
    --block.num_pins;
    count_reader(BlockId{event.block}, -1);
  } else {
    const auto table = tables_.find(event.sequence);
    if (table == tables_.end()) return impossible(event, "the sequence has no blocks");
    const auto entry = find_last(table->second, BlockId{event.block});
    if (entry == table->second.end()) return impossible(event, "the sequence does not name the block");
    erase_entry(event.sequence, table->second, entry);
    if (table->second.empty()) tables_.erase(table);
  }
  if (--block.ref_count > 0) return {};
  block.state = BlockState::kCached;
  --num_used_;
  ++num_cached_;
  num_filled_slots_ -= block.num_filled;
  return {};
}

Result<void> KvState::discard(const BlockEvent& event) {
  Block& block = block_at(event.block);
  if (block.state != BlockState::kCached) {
    return impossible(event, block.state == BlockState::kFree ? "the block is free" : "the block is in use");
  }
  if (window(BlockId{event.block}).part() != WindowPart::kNone)
    return impossible(event, "the block has a window part");
  block = {};
  --num_cached_;
  return {};
}

Result<void> KvState::fill(const BlockEvent& event) {
  Block& block = block_at(event.block);
  if (block.state != BlockState::kUsed) return impossible(event, "the block is not in use");
  if (event.aux < 0 || event.aux > shape_.block_size) {
    return impossible(event, "a block has " + with_noun(shape_.block_size, "slots"));
  }
  const auto table = tables_.find(event.sequence);
  if (table == tables_.end() || find_last(table->second, BlockId{event.block}) == table->second.end()) {
    return impossible(event, "the sequence does not name the block");
  }
  set_filled(block, static_cast<std::int16_t>(event.aux));
  return {};
}

Result<void> KvState::seal(const BlockEvent& event) {
  Block& block = block_at(event.block);
  if (block.state == BlockState::kFree) return impossible(event, "the block is free");
  block.is_findable = true;
  return {};
}

Result<void> KvState::copy(const BlockEvent& event) {
  if (event.aux < 0 || event.aux >= shape_.num_blocks || event.aux == event.block) {
    return impossible(event, "the target is not another block of the pool");
  }
  Block& target = block_at(event.aux);
  const Block source = block(BlockId{event.block});
  if (source.state == BlockState::kFree) return impossible(event, "the source is free");
  if (target.state != BlockState::kUsed) return impossible(event, "the target is not in use");
  if (event.kind == BlockEventKind::kCopyPartial) return {};
  const auto table = tables_.find(event.sequence);
  if (table == tables_.end()) return impossible(event, "the sequence has no blocks");
  take_place(event.sequence, BlockId{event.block}, BlockId{event.aux});
  set_filled(target, source.num_filled);
  return {};
}

// The source stays in the table, behind everything, until its kUnref.
void KvState::take_place(std::uint64_t sequence, BlockId source, BlockId target) {
  Table& table = tables_[sequence];
  const auto old_place = find_last(table, source);
  const auto new_place = find_last(table, target);
  if (old_place == table.end() || new_place == table.end()) return;
  const auto first_read =
      table.begin() +
      std::min(std::ssize(table), static_cast<std::ptrdiff_t>(num_left_behind(SequenceId{sequence})));
  const int change = (new_place >= first_read ? 1 : 0) - (old_place >= first_read ? 1 : 0);
  if (change != 0) count_reader(source, change);
  if (change != 0) count_reader(target, -change);
  std::iter_swap(old_place, new_place);
}

Result<void> KvState::swap_out(const BlockEvent& event) {
  OCTAVO_TRY_VOID(check_host(event));
  const Block from = block(BlockId{event.block});
  if (from.state == BlockState::kFree) return impossible(event, "the block is free");
  HostBlock& host = host_at(event.aux);
  if (host.is_used) return impossible(event, "the host block is taken");
  host = {.is_used = true, .num_filled = from.num_filled};
  ++num_host_used_;
  return {};
}

Result<void> KvState::swap_in(const BlockEvent& event) {
  OCTAVO_TRY_VOID(check_host(event));
  Block& block = block_at(event.block);
  const HostBlock host = host_block(BlockId{event.aux});
  if (!host.is_used) return impossible(event, "the host block is free");
  if (block.state != BlockState::kUsed) return impossible(event, "the block is not in use");
  set_filled(block, host.num_filled);
  return {};
}

Result<void> KvState::drop_host(const BlockEvent& event) {
  OCTAVO_TRY_VOID(check_host(event));
  HostBlock& host = host_at(event.aux);
  if (!host.is_used) return impossible(event, "the host block is free");
  host = {};
  --num_host_used_;
  return {};
}

Result<void> KvState::end_step(const BlockEvent& event) const {
  if (event.aux == num_used_) return {};
  return impossible(event, with_noun(num_used_, "blocks are in use by the events before it"));
}

// ---- states of recurrent layers

Result<void> KvState::apply_to_states(const BlockEvent& event) {
  if (event.kind == BlockEventKind::kStateMiss) return {};
  OCTAVO_TRY_VOID(check_state(event));
  switch (event.kind) {
    case BlockEventKind::kStateTake:
    case BlockEventKind::kStateShare:
    case BlockEventKind::kStateResume: return own_state(event);
    case BlockEventKind::kStateCopy: return copy_state(event);
    case BlockEventKind::kStateRelease: return release_state(event);
    case BlockEventKind::kStateKeep: return keep_state(event);
    case BlockEventKind::kStateForget: return forget_state(event);
    case BlockEventKind::kStateWorth: return value_state(event);
    case BlockEventKind::kStateSwapOut: return swap_state_out(event);
    case BlockEventKind::kStateSwapIn: return swap_state_in(event);
    default: return impossible(event, "the kind of event is unknown");
  }
}

Result<void> KvState::check_state(const BlockEvent& event) const {
  const bool is_released_on_host = event.kind == BlockEventKind::kStateRelease && event.aux == 1;
  const std::int32_t num_states = is_released_on_host ? shape_.num_host_states : shape_.num_states;
  if (event.block < 0 || event.block >= num_states)
    return impossible(event, "the pool has " + with_noun(num_states, "states"));
  const bool names_host =
      event.kind == BlockEventKind::kStateSwapOut || event.kind == BlockEventKind::kStateSwapIn;
  if (names_host && (event.aux < 0 || event.aux >= shape_.num_host_states))
    return impossible(event, "the host pool has " + with_noun(shape_.num_host_states, "states"));
  const bool names_owner =
      event.kind != BlockEventKind::kStateForget && event.kind != BlockEventKind::kStateWorth;
  if (names_owner && event.sequence == 0) return impossible(event, "it names no sequence");
  return {};
}

Result<void> KvState::check_owns(const BlockEvent& event, StatePlace place) const {
  if (state_of(SequenceId{event.sequence}) == place) return {};
  return impossible(event, "the sequence does not own the state");
}

Result<void> KvState::own_state(const BlockEvent& event) {
  const BlockState now = state(BlockId{event.block}).state();
  const bool is_taken = event.kind == BlockEventKind::kStateTake;
  if (is_taken != (now == BlockState::kFree))
    return impossible(event, is_taken ? "the state is not free" : "the state is free");
  if (state_of(SequenceId{event.sequence})) return impossible(event, "the sequence owns a state already");
  move_state(event.sequence, StatePlace{BlockId{event.block}});
  return {};
}

Result<void> KvState::copy_state(const BlockEvent& event) {
  OCTAVO_TRY_VOID(check_owns(event, {BlockId{event.block}}));
  const bool is_there = event.aux >= 0 && event.aux < shape_.num_states;
  if (!is_there || state(BlockId{event.aux}).state() != BlockState::kFree)
    return impossible(event, "the target is not a free state of the pool");
  move_state(event.sequence, StatePlace{BlockId{event.aux}});
  return {};
}

Result<void> KvState::release_state(const BlockEvent& event) {
  OCTAVO_TRY_VOID(check_owns(event, {BlockId{event.block}, event.aux == 1}));
  move_state(event.sequence, std::nullopt);
  return {};
}

Result<void> KvState::swap_state_out(const BlockEvent& event) {
  OCTAVO_TRY_VOID(check_owns(event, {BlockId{event.block}}));
  move_state(event.sequence, StatePlace{BlockId{event.aux}, /*is_on_host=*/true});
  return {};
}

Result<void> KvState::swap_state_in(const BlockEvent& event) {
  OCTAVO_TRY_VOID(check_owns(event, {BlockId{event.aux}, /*is_on_host=*/true}));
  move_state(event.sequence, StatePlace{BlockId{event.block}});
  return {};
}

Result<void> KvState::keep_state(const BlockEvent& event) {
  OCTAVO_TRY_VOID(check_owns(event, {BlockId{event.block}}));
  if (event.aux < 0) return impossible(event, "it stands nowhere");
  State& state = entry_at(states_, event.block);
  if (state.is_checkpoint) return impossible(event, "the state is a checkpoint already");
  state.is_checkpoint = true;
  state.reason = checkpoint_reason(event.aux);
  state.position = checkpoint_position(event.aux);
  return {};
}

Result<void> KvState::forget_state(const BlockEvent& event) {
  State& state = entry_at(states_, event.block);
  if (!state.is_checkpoint) return impossible(event, "the state is no checkpoint");
  state = {.num_owners = state.num_owners};
  return {};
}

Result<void> KvState::value_state(const BlockEvent& event) {
  if (event.aux < 0) return impossible(event, "it saves nothing");
  State& state = entry_at(states_, event.block);
  if (!state.is_checkpoint) return impossible(event, "the state is no checkpoint");
  state.num_saved_tokens = checkpoint_saved_tokens(event.aux);
  state.retention = checkpoint_retention(event.aux);
  return {};
}

void KvState::move_state(std::uint64_t sequence, std::optional<StatePlace> place) {
  if (const auto before = state_of(SequenceId{sequence})) count_owner(*before, -1);
  if (!place) {
    state_places_.erase(sequence);
    return;
  }
  count_owner(*place, 1);
  state_places_.insert_or_assign(sequence, *place);
}

void KvState::count_owner(StatePlace place, std::int32_t change) {
  std::int32_t& count = place.is_on_host ? entry_at(host_state_owners_, place.state.value)
                                         : entry_at(states_, place.state.value).num_owners;
  count += change;
}

KvState::State KvState::state(BlockId id) const { return entry_or_none(states_, index_of(id)); }

std::int32_t KvState::num_host_state_owners(BlockId id) const {
  return entry_or_none(host_state_owners_, index_of(id));
}

std::optional<KvState::StatePlace> KvState::state_of(SequenceId sequence) const {
  const auto found = state_places_.find(sequence.value);
  return found == state_places_.end() ? std::nullopt : std::optional(found->second);
}

// ---- window parts

Result<void> KvState::apply_to_windows(const BlockEvent& event) {
  // Older recordings tell who left a part, and not of which pool.
  if (shape_.num_window_blocks == 0) {
    if (event.kind == BlockEventKind::kLeaveWindow) return {};
    return impossible(event, "the pool has no window parts");
  }
  switch (event.kind) {
    case BlockEventKind::kLeaveWindow: return leave_window(event);
    case BlockEventKind::kWindowSkip: return skip_windows(event);
    case BlockEventKind::kWindowOpen: return open_window(event);
    case BlockEventKind::kWindowKeep: return keep_window(event);
    case BlockEventKind::kWindowClose: return close_window(event);
    case BlockEventKind::kWindowMiss: return {};
    default: return swap_window(event);
  }
}

// The next one in the order of the table.
Result<void> KvState::leave_window(const BlockEvent& event) {
  const auto table = tables_.find(event.sequence);
  const std::int32_t index = num_left_behind(SequenceId{event.sequence});
  const bool is_next = table != tables_.end() && std::cmp_less(index, table->second.size()) &&
                       table->second[static_cast<std::size_t>(index)].value == event.block;
  if (!is_next) return impossible(event, "it is not the first block that the sequence reads");
  const std::int32_t num_readers = window(BlockId{event.block}).num_readers - 1;
  if (event.aux != num_readers)
    return impossible(event, "afterwards it has " + with_noun(num_readers, "readers"));
  count_reader(BlockId{event.block}, -1);
  num_left_[event.sequence] = index + 1;
  return {};
}

Result<void> KvState::skip_windows(const BlockEvent& event) {
  const std::int32_t before = num_left_behind(SequenceId{event.sequence});
  if (event.aux <= 0 || event.aux < before)
    return impossible(event, "the sequence left " + with_noun(before, "blocks behind"));
  const auto table = table_of(SequenceId{event.sequence});
  const auto end = std::min(static_cast<std::size_t>(event.aux), table.size());
  for (auto i = static_cast<std::size_t>(before); i < end; ++i) count_reader(table[i], -1);
  num_left_[event.sequence] = event.aux;
  return {};
}

Result<void> KvState::open_window(const BlockEvent& event) {
  if (event.aux < 0 || event.aux >= shape_.num_window_blocks)
    return impossible(event, "the pool has " + with_noun(shape_.num_window_blocks, "window parts"));
  if (block(BlockId{event.block}).state != BlockState::kUsed)
    return impossible(event, "the block is not in use");
  WindowPlace& window = entry_at(windows_, event.block);
  if (window.part() != WindowPart::kNone) return impossible(event, "the block has one already");
  if (is_window_taken_[static_cast<std::size_t>(event.aux)]) return impossible(event, "the place is taken");
  window.place = BlockId{event.aux};
  is_window_taken_[static_cast<std::size_t>(event.aux)] = true;
  ++num_open_windows_;
  if (window.num_readers > 0) ++num_used_windows_;
  return {};
}

// It comes before what ends the last reading.
Result<void> KvState::keep_window(const BlockEvent& event) {
  if (window(BlockId{event.block}).part() == WindowPart::kNone)
    return impossible(event, "the block has none");
  if (event.aux < 0 || event.aux > static_cast<std::int32_t>(RetentionClass::kPinned))
    return impossible(event, "the retention class is unknown");
  entry_at(windows_, event.block).retention = static_cast<RetentionClass>(event.aux);
  return {};
}

Result<void> KvState::close_window(const BlockEvent& event) {
  if (window(BlockId{event.block}).part() == WindowPart::kNone)
    return impossible(event, "the block has none");
  WindowPlace& window = entry_at(windows_, event.block);
  if (window.part() == WindowPart::kUsed) --num_used_windows_;
  --num_open_windows_;
  is_window_taken_[index_of(window.place)] = false;
  window.place = BlockId{-1};
  window.retention = RetentionClass::kScratch;
  return {};
}

Result<void> KvState::swap_window(const BlockEvent& event) {
  OCTAVO_TRY_VOID(check_host(event));
  if (!host_block(BlockId{event.aux}).is_used) return impossible(event, "the host block is free");
  if (window(BlockId{event.block}).part() == WindowPart::kNone)
    return impossible(event, "the block has none");
  HostBlock& host = host_at(event.aux);
  const bool goes_out = event.kind == BlockEventKind::kWindowSwapOut;
  if (host.has_window == goes_out)
    return impossible(event, goes_out ? "the host block has one" : "the host block has none");
  host.has_window = true;
  return {};
}

void KvState::count_reader(BlockId block, std::int32_t change) {
  if (shape_.num_window_blocks == 0) return;
  WindowPlace& window = entry_at(windows_, block.value);
  const WindowPart before = window.part();
  window.num_readers += change;
  if (window.num_readers > 0) window.retention = RetentionClass::kScratch;
  num_used_windows_ += (window.part() == WindowPart::kUsed ? 1 : 0) - (before == WindowPart::kUsed ? 1 : 0);
}

std::int32_t KvState::num_left_behind(SequenceId sequence) const {
  const auto found = num_left_.find(sequence.value);
  return found == num_left_.end() ? 0 : found->second;
}

KvState::WindowPlace KvState::window(BlockId id) const { return entry_or_none(windows_, index_of(id)); }

// ---- entries

void KvState::append_entry(std::uint64_t sequence, BlockId block) {
  Table& table = tables_[sequence];
  if (std::cmp_greater_equal(table.size(), num_left_behind(SequenceId{sequence}))) count_reader(block, 1);
  table.push_back(block);
  ++num_logical_;
}

// What stood behind it moves by one, and so may come to be left behind.
void KvState::erase_entry(std::uint64_t sequence, Table& table, Table::iterator entry) {
  const auto num_left = static_cast<std::ptrdiff_t>(num_left_behind(SequenceId{sequence}));
  if (entry - table.begin() >= num_left) {
    count_reader(*entry, -1);
  } else if (std::ssize(table) > num_left) {
    count_reader(table[static_cast<std::size_t>(num_left)], -1);
  }
  table.erase(entry);
  --num_logical_;
  if (table.empty()) num_left_.erase(sequence);
}

KvState::Block& KvState::block_at(std::int32_t id) { return entry_at(blocks_, id); }

KvState::HostBlock& KvState::host_at(std::int32_t id) { return entry_at(host_blocks_, id); }

void KvState::set_filled(Block& block, std::int16_t num_filled) {
  if (block.state == BlockState::kUsed) num_filled_slots_ += num_filled - block.num_filled;
  block.num_filled = num_filled;
}

KvState::Block KvState::block(BlockId id) const { return entry_or_none(blocks_, index_of(id)); }

KvState::HostBlock KvState::host_block(BlockId id) const { return entry_or_none(host_blocks_, index_of(id)); }

std::vector<SequenceId> KvState::sequences() const {
  std::vector<SequenceId> sequences;
  for (const auto& [sequence, table] : tables_) sequences.push_back(SequenceId{sequence});
  std::ranges::sort(sequences);
  return sequences;
}

std::span<const BlockId> KvState::table_of(SequenceId sequence) const {
  const auto found = tables_.find(sequence.value);
  return found == tables_.end() ? std::span<const BlockId>{} : found->second;
}

std::vector<SequenceId> KvState::owners_of(BlockId block) const {
  std::vector<SequenceId> owners;
  for (const auto& [sequence, table] : tables_) {
    owners.insert(owners.end(), static_cast<std::size_t>(std::ranges::count(table, block)),
                  SequenceId{sequence});
  }
  std::ranges::sort(owners);
  return owners;
}

// ---- as a whole

namespace {

// Writes the events of as_events(); each block is taken by the first table that names it.
class EventWriter {
 public:
  explicit EventWriter(const KvState& state)
      : state_(state), ref_counts_(static_cast<std::size_t>(state.shape().num_blocks)) {}

  std::vector<BlockEvent> write() && {
    write_host_blocks();
    write_states();
    for (const SequenceId sequence : state_.sequences()) {
      if (const std::int32_t num_left = state_.num_left_behind(sequence); num_left > 0)
        add(BlockEventKind::kWindowSkip, sequence.value, BlockId{-1}, num_left);
      for (const BlockId block : state_.table_of(sequence)) name(block, sequence.value);
    }
    for (std::int32_t id = 0; id < state_.shape().num_blocks; ++id) finish(BlockId{id});
    return std::move(events_);
  }

 private:
  void add(BlockEventKind kind, std::uint64_t sequence, BlockId block, std::int32_t aux) {
    events_.push_back(
        {.step = state_.step(), .sequence = sequence, .block = block.value, .aux = aux, .kind = kind});
  }

  std::int32_t& ref_count(BlockId block) { return ref_counts_[index_of(block)]; }

  void name(BlockId id, std::uint64_t sequence) {
    if (ref_count(id)++ > 0) return add(BlockEventKind::kShare, sequence, id, ref_count(id));
    const KvState::Block block = state_.block(id);
    add(BlockEventKind::kAlloc, sequence, id, 0);
    if (block.num_filled > 0) add(BlockEventKind::kFill, sequence, id, block.num_filled);
    if (block.is_findable) add(BlockEventKind::kSeal, sequence, id, 0);
    const KvState::WindowPlace window = state_.window(id);
    if (window.part() != WindowPart::kNone)
      add(BlockEventKind::kWindowOpen, sequence, id, window.place.value);
  }

  // Pins, and what no table names.
  void finish(BlockId id) {
    const KvState::Block block = state_.block(id);
    if (block.state == BlockState::kFree) return;
    const bool is_named = ref_count(id) > 0;
    if (!is_named) name(id, kNobody);
    for (std::int32_t i = 0; i < block.num_pins; ++i) add(BlockEventKind::kPin, 0, id, ++ref_count(id));
    if (!is_named) add(BlockEventKind::kUnref, kNobody, id, --ref_count(id));
    const KvState::WindowPlace window = state_.window(id);
    if (window.part() == WindowPart::kCached)
      add(BlockEventKind::kWindowKeep, 0, id, static_cast<std::int32_t>(window.retention));
  }

  // Through a block that is free while no table has been written.
  void write_host_blocks() {
    constexpr BlockId kGate{0};
    for (std::int32_t id = 0; id < state_.shape().num_host_blocks; ++id) {
      const KvState::HostBlock host = state_.host_block(BlockId{id});
      if (!host.is_used) continue;
      add(BlockEventKind::kAlloc, kNobody, kGate, 0);
      add(BlockEventKind::kFill, kNobody, kGate, host.num_filled);
      add(BlockEventKind::kSwapOut, kNobody, kGate, id);
      if (host.has_window) {
        add(BlockEventKind::kWindowOpen, kNobody, kGate, 0);
        add(BlockEventKind::kWindowSwapOut, kNobody, kGate, id);
        add(BlockEventKind::kWindowClose, 0, kGate, 0);
      }
      add(BlockEventKind::kUnref, kNobody, kGate, 0);
      add(BlockEventKind::kFree, kNobody, kGate, 0);
    }
  }

  // Those of the host pool first, through a state that is free meanwhile.
  void write_states() {
    constexpr BlockId kGate{0};
    std::map<std::int32_t, std::vector<std::uint64_t>> owners, host_owners;
    for (const auto& [sequence, place] : state_.state_places())
      (place.is_on_host ? host_owners : owners)[place.state.value].push_back(sequence);
    for (const auto& [host_state, sequences] : host_owners) {
      own_state(kGate, sequences);
      for (const std::uint64_t sequence : sequences)
        add(BlockEventKind::kStateSwapOut, sequence, kGate, host_state);
    }
    for (std::int32_t id = 0; id < state_.shape().num_states; ++id) {
      const KvState::State state = state_.state(BlockId{id});
      if (state.state() == BlockState::kFree) continue;
      const bool is_owned = state.num_owners > 0;
      const std::vector<std::uint64_t> sequences =
          is_owned ? owners[id] : std::vector<std::uint64_t>{kNobody};
      own_state(BlockId{id}, sequences);
      if (state.is_checkpoint) {
        add(BlockEventKind::kStateKeep, sequences.front(), BlockId{id},
            checkpoint_aux(state.position, state.reason));
        add(BlockEventKind::kStateWorth, 0, BlockId{id},
            checkpoint_worth_aux(state.num_saved_tokens, state.retention));
      }
      if (!is_owned) add(BlockEventKind::kStateRelease, kNobody, BlockId{id}, 0);
    }
  }

  void own_state(BlockId state, const std::vector<std::uint64_t>& sequences) {
    auto kind = BlockEventKind::kStateTake;
    for (const std::uint64_t sequence : sequences) {
      add(kind, sequence, state, 0);
      kind = BlockEventKind::kStateShare;
    }
  }

  const KvState& state_;
  std::vector<std::int32_t> ref_counts_;  // written so far
  std::vector<BlockEvent> events_;
};

std::string described(const KvState::Block& block) {
  const char* const state = block.state == BlockState::kFree     ? "free"
                            : block.state == BlockState::kCached ? "cached"
                                                                 : "used";
  return std::string(state) + ", " + with_noun(block.ref_count, "references, ") +
         with_noun(block.num_pins, "pins, ") + with_noun(block.num_filled, "slots filled") +
         (block.is_findable ? ", findable" : "");
}

}  // namespace

std::vector<BlockEvent> KvState::as_events() const { return EventWriter(*this).write(); }

std::optional<std::string> KvState::difference(const KvState& other) const {
  if (shape_ != other.shape_) return "the pools have different sizes";
  for (std::int32_t id = 0; id < shape_.num_blocks; ++id) {
    const Block mine = block(BlockId{id}), theirs = other.block(BlockId{id});
    if (mine != theirs) {
      return "block " + std::to_string(id) + " is " + described(mine) + "; and " + described(theirs);
    }
  }
  for (std::int32_t id = 0; id < shape_.num_blocks; ++id) {
    if (window(BlockId{id}) != other.window(BlockId{id}))
      return "the window part of block " + std::to_string(id) + " differs";
  }
  for (std::int32_t id = 0; id < shape_.num_host_blocks; ++id) {
    if (host_block(BlockId{id}) != other.host_block(BlockId{id}))
      return "host block " + std::to_string(id) + " differs";
  }
  for (std::int32_t id = 0; id < shape_.num_states; ++id) {
    if (state(BlockId{id}) != other.state(BlockId{id})) return "state " + std::to_string(id) + " differs";
  }
  if (state_places_ != other.state_places_) return "sequences own different states";
  const std::vector<SequenceId> mine = sequences();
  if (mine != other.sequences()) return "different sequences hold blocks";
  for (const SequenceId sequence : mine) {
    if (!std::ranges::equal(table_of(sequence), other.table_of(sequence)))
      return "the tables of sequence " + std::to_string(sequence.value) + " differ";
    if (num_left_behind(sequence) != other.num_left_behind(sequence))
      return "sequence " + std::to_string(sequence.value) + " left other blocks behind";
  }
  return std::nullopt;
}

}  // namespace octavo::metrics
