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
    case BlockEventKind::kPrune: return false;
    default: return true;
  }
}

bool names_sequence(BlockEventKind kind) {
  switch (kind) {
    case BlockEventKind::kAlloc:
    case BlockEventKind::kHit:
    case BlockEventKind::kShare:
    case BlockEventKind::kFill:
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

// Unused entries at the end say nothing.
template <class Entry>
Entry entry_or_none(const std::vector<Entry>& entries, std::size_t index) {
  return index < entries.size() ? entries[index] : Entry{};
}

}  // namespace

KvState::KvState(const PoolShape& shape) : shape_(shape) {
  OCTAVO_CHECK(shape.block_size >= 1 && shape.num_blocks >= 0 && shape.num_host_blocks >= 0,
               "%d tokens a block, %d and %d blocks", shape.block_size, shape.num_blocks,
               shape.num_host_blocks);
}

// ---- from what the engine says

KvState KvState::from(const KvSnapshot& snapshot) {
  const KvTotals& totals = snapshot.totals;
  KvState state(
      {totals.block_size, static_cast<std::int32_t>(snapshot.blocks.size()), totals.num_host_blocks});
  state.step_ = snapshot.step;
  for (std::size_t i = 0; i < snapshot.blocks.size(); ++i) {
    const BlockSnapshot& from = snapshot.blocks[i];
    if (from.state == BlockState::kFree) continue;
    Block& block = state.block_at(static_cast<std::int32_t>(i));
    block = {from.state, from.findable, 0, from.ref_count, from.num_pins};
    (from.state == BlockState::kUsed ? state.num_used_ : state.num_cached_) += 1;
    state.set_filled(block, static_cast<std::int16_t>(from.filled));
  }
  for (const SequenceSnapshot& sequence : snapshot.sequences) {
    if (sequence.block_table.empty()) continue;
    if (sequence.state != SequenceState::kSwapped) {
      state.tables_[sequence.sequence_id.value] = sequence.block_table;
      state.num_logical_ += static_cast<std::int32_t>(sequence.block_table.size());
      continue;
    }
    for (std::size_t i = 0; i < sequence.block_table.size(); ++i) {
      HostBlock& host = state.host_at(sequence.block_table[i].value);
      state.num_host_used_ += host.is_used ? 0 : 1;
      const std::int32_t num_filled =
          std::clamp(sequence.num_computed_tokens - static_cast<std::int32_t>(i) * totals.block_size, 0,
                     totals.block_size);
      host = {true, std::max(host.num_filled, static_cast<std::int16_t>(num_filled))};
    }
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
      case BlockEventKind::kLeaveWindow:
      case BlockEventKind::kPrune: return {};
    }
    return impossible(event, "the kind of event is unknown");
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
  tables_[event.sequence].push_back(BlockId{event.block});
  ++num_logical_;
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
  } else {
    tables_[event.sequence].push_back(BlockId{event.block});
    ++num_logical_;
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
  } else {
    const auto table = tables_.find(event.sequence);
    if (table == tables_.end()) return impossible(event, "the sequence has no blocks");
    const auto entry = find_last(table->second, BlockId{event.block});
    if (entry == table->second.end()) return impossible(event, "the sequence does not name the block");
    table->second.erase(entry);
    --num_logical_;
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
  take_place(table->second, BlockId{event.block}, BlockId{event.aux});
  set_filled(target, source.num_filled);
  return {};
}

// The source stays in the table, behind everything, until its kUnref.
void KvState::take_place(Table& table, BlockId source, BlockId target) {
  const auto old_place = find_last(table, source);
  const auto new_place = find_last(table, target);
  if (old_place != table.end() && new_place != table.end()) std::iter_swap(old_place, new_place);
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

// ---- entries

KvState::Block& KvState::block_at(std::int32_t id) {
  const auto index = static_cast<std::size_t>(id);
  if (index >= blocks_.size()) blocks_.resize(index + 1);
  return blocks_[index];
}

KvState::HostBlock& KvState::host_at(std::int32_t id) {
  const auto index = static_cast<std::size_t>(id);
  if (index >= host_blocks_.size()) host_blocks_.resize(index + 1);
  return host_blocks_[index];
}

void KvState::set_filled(Block& block, std::int16_t num_filled) {
  if (block.state == BlockState::kUsed) num_filled_slots_ += num_filled - block.num_filled;
  block.num_filled = num_filled;
}

KvState::Block KvState::block(BlockId id) const {
  return entry_or_none(blocks_, static_cast<std::size_t>(id.value));
}

KvState::HostBlock KvState::host_block(BlockId id) const {
  return entry_or_none(host_blocks_, static_cast<std::size_t>(id.value));
}

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
    for (const SequenceId sequence : state_.sequences()) {
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

  std::int32_t& ref_count(BlockId block) { return ref_counts_[static_cast<std::size_t>(block.value)]; }

  void name(BlockId id, std::uint64_t sequence) {
    if (ref_count(id)++ > 0) return add(BlockEventKind::kShare, sequence, id, ref_count(id));
    const KvState::Block block = state_.block(id);
    add(BlockEventKind::kAlloc, sequence, id, 0);
    if (block.num_filled > 0) add(BlockEventKind::kFill, sequence, id, block.num_filled);
    if (block.is_findable) add(BlockEventKind::kSeal, sequence, id, 0);
  }

  // Pins, and what no table names.
  void finish(BlockId id) {
    const KvState::Block block = state_.block(id);
    if (block.state == BlockState::kFree) return;
    const bool is_named = ref_count(id) > 0;
    if (!is_named) name(id, kNobody);
    for (std::int32_t i = 0; i < block.num_pins; ++i) add(BlockEventKind::kPin, 0, id, ++ref_count(id));
    if (!is_named) add(BlockEventKind::kUnref, kNobody, id, --ref_count(id));
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
      add(BlockEventKind::kUnref, kNobody, kGate, 0);
      add(BlockEventKind::kFree, kNobody, kGate, 0);
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
  for (std::int32_t id = 0; id < shape_.num_host_blocks; ++id) {
    if (host_block(BlockId{id}) != other.host_block(BlockId{id}))
      return "host block " + std::to_string(id) + " differs";
  }
  const std::vector<SequenceId> mine = sequences();
  if (mine != other.sequences()) return "different sequences hold blocks";
  for (const SequenceId sequence : mine) {
    if (!std::ranges::equal(table_of(sequence), other.table_of(sequence)))
      return "the tables of sequence " + std::to_string(sequence.value) + " differ";
  }
  return std::nullopt;
}

}  // namespace octavo::metrics
