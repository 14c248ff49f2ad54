#include "app/window/memory/slot_map.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <set>
#include <span>
#include <utility>

#include "engine/base/format.h"
#include "engine/metrics/kv_state.h"

namespace octavo::app {
namespace {

using metrics::KvState;

// A slot of the device pool.
using Place = std::pair<std::int32_t, std::int32_t>;

class SlotReplay {
 public:
  SlotReplay(const metrics::PoolShape& shape, const WordsOfSequences& words)
      : state_(shape),
        words_(words),
        device_(static_cast<std::size_t>(shape.num_blocks)),
        host_(static_cast<std::size_t>(shape.num_host_blocks)) {}

  // False: the event cannot be, and nothing after it counts.
  bool apply(const BlockEvent& event) {
    if (event.step != step_) begin_step(event.step);
    const std::int32_t num_before =
        event.kind == BlockEventKind::kFill ? state_.block(BlockId{event.block}).num_filled : 0;
    if (!state_.apply(event)) return false;
    switch (event.kind) {
      case BlockEventKind::kAlloc:
      case BlockEventKind::kEvict:
      case BlockEventKind::kFree: at(device_, event.block).clear(); break;
      case BlockEventKind::kFill: fill(event, num_before); break;
      case BlockEventKind::kCopyOnWrite:
      case BlockEventKind::kCopyPartial: copy(event); break;
      case BlockEventKind::kSwapOut:
        at(host_, event.aux) = at(device_, event.block);
        arrows_.push_back({ui::CopyKind::kSwapOut, event.block, event.aux});
        break;
      case BlockEventKind::kSwapIn:
        at(device_, event.block) = at(host_, event.aux);
        arrows_.push_back({ui::CopyKind::kSwapIn, event.aux, event.block});
        break;
      case BlockEventKind::kSwapDrop: at(host_, event.aux).clear(); break;
      default: break;
    }
    return true;
  }

  ui::SlotMap take() {
    ui::SlotMap map;
    for (const Place& place : computed_) reused_.erase(place);
    map.num_computed = num_computed_;
    map.num_computed_so_far = num_computed_so_far_;
    map.num_reused = static_cast<std::int32_t>(reused_.size());
    map.arrows = std::move(arrows_);
    for (const Words& words : device_) map.device.push_back(cell_of(words));
    for (const Words& words : host_) map.host.push_back(cell_of(words));
    mark(map.device, reused_, ui::SlotUse::kReused);
    mark(map.device, computed_, ui::SlotUse::kComputed);
    return map;
  }

 private:
  using Words = std::vector<std::string>;

  // The state has checked the number.
  static Words& at(std::vector<Words>& pool, std::int32_t block) {
    return pool[static_cast<std::size_t>(block)];
  }

  void begin_step(std::int64_t step) {
    step_ = step;
    num_computed_ = 0;
    computed_.clear();
    reused_.clear();
    readers_.clear();
    arrows_.clear();
    copied_.reset();
  }

  // A partial copy says by the next fill how much of it counts; every other one tells what was computed.
  void fill(const BlockEvent& event, std::int32_t num_before) {
    Words& words = at(device_, event.block);
    const auto num_filled = static_cast<std::size_t>(event.aux);
    if (const auto copied = std::exchange(copied_, std::nullopt); copied && copied->first == event.block) {
      words = copied->second;
      return words.resize(num_filled);
    }
    const auto table = state_.table_of(SequenceId{event.sequence});
    const auto place = std::find(table.begin(), table.end(), BlockId{event.block});
    const auto first =
        static_cast<std::size_t>(place - table.begin()) * static_cast<std::size_t>(state_.shape().block_size);
    words.resize(num_filled);
    for (std::int32_t slot = num_before; slot < event.aux; ++slot) {
      words[static_cast<std::size_t>(slot)] = word_of(event.sequence, first + static_cast<std::size_t>(slot));
      computed_.insert({event.block, slot});
      ++num_computed_;
      ++num_computed_so_far_;
    }
    if (event.aux > num_before && readers_.insert(event.sequence).second) read(table);
  }

  // Attention reads every slot of the table; those that this step writes are taken out at its end.
  void read(std::span<const BlockId> table) {
    for (const BlockId block : table) {
      const std::int32_t num_filled = state_.block(block).num_filled;
      for (std::int32_t slot = 0; slot < num_filled; ++slot) reused_.insert({block.value, slot});
    }
  }

  void copy(const BlockEvent& event) {
    arrows_.push_back({ui::CopyKind::kCopy, event.block, event.aux});
    const Words& words = at(device_, event.block);
    if (event.kind == BlockEventKind::kCopyPartial) {
      copied_ = {event.aux, words};
    } else {
      at(device_, event.aux) = words;
    }
  }

  std::string word_of(std::uint64_t sequence, std::size_t position) const {
    const auto found = words_.find(sequence);
    return found != words_.end() && position < found->second.size() ? found->second[position] : "?";
  }

  static ui::ShownCell cell_of(const Words& words) {
    ui::ShownCell cell;
    for (const std::string& word : words) cell.slots.push_back({word});
    return cell;
  }

  // What is no longer there, as of a beam that was pruned after it was computed, has no mark.
  static void mark(std::vector<ui::ShownCell>& cells, const std::set<Place>& places, ui::SlotUse use) {
    for (const auto& [block, slot] : places) {
      auto& slots = cells[static_cast<std::size_t>(block)].slots;
      if (static_cast<std::size_t>(slot) < slots.size()) slots[static_cast<std::size_t>(slot)].use = use;
    }
  }

  KvState state_;
  const WordsOfSequences& words_;
  std::vector<Words> device_, host_;
  // Of the step.
  std::int64_t step_ = -1;
  std::int32_t num_computed_ = 0;
  std::set<Place> computed_, reused_;
  std::set<std::uint64_t> readers_;
  std::vector<ui::BlockArrow> arrows_;
  std::optional<std::pair<std::int32_t, Words>> copied_;  // to a block whose fill says how much of it counts

  std::int64_t num_computed_so_far_ = 0;
};

void add_owner(std::vector<ui::ShownCell>& cells, BlockId block, std::uint16_t owner) {
  if (block.value < 0 || index_of(block) >= cells.size()) return;
  auto& owners = cells[index_of(block)].owners;
  if (owners.empty() || owners.back() != owner) owners.push_back(owner);
}

}  // namespace

ui::SlotMap slot_map(const MemoryHistory& history, std::uint64_t mark, const KvSnapshot& snapshot,
                     const WordsOfSequences& words) {
  SlotReplay replay(history.recorder()->shape(), words);
  bool goes_on = true;
  for (const auto& stretch : history.events_between(0, mark)) {
    for (const BlockEvent& event : stretch.events) goes_on = goes_on && replay.apply(event);
  }
  ui::SlotMap map = replay.take();
  for (std::size_t i = 0; i < map.device.size() && i < snapshot.blocks.size(); ++i) {
    map.device[i].state = snapshot.blocks[i].state;
    map.device[i].ref_count = snapshot.blocks[i].ref_count;
  }
  for (std::size_t i = 0; i < snapshot.sequences.size(); ++i) {
    const SequenceSnapshot& sequence = snapshot.sequences[i];
    auto& cells = sequence.state == SequenceState::kSwapped ? map.host : map.device;
    for (const BlockId block : sequence.block_table) add_owner(cells, block, static_cast<std::uint16_t>(i));
  }
  for (ui::ShownCell& cell : map.host) {
    cell.state = cell.slots.empty() ? BlockState::kFree : BlockState::kUsed;
    cell.ref_count = static_cast<std::int32_t>(cell.owners.size());
  }
  return map;
}

std::string slot_figures(const ui::SlotMap& map) {
  if (map.num_computed_so_far == 0) return "Nothing is computed yet.";
  return "This step: computed " + count_text(map.num_computed, "word") + ", reused " +
         with_thousands(map.num_reused) + " · " + count_text(map.num_computed_so_far, "word") +
         " computed so far";
}

}  // namespace octavo::app
