// Rebuilds the state of every block of both pools from the events alone.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/api/block_event.h"
#include "engine/api/kv_snapshot.h"

namespace octavo::scheduler {

class EventReplay {
 public:
  EventReplay(std::int32_t num_blocks, std::int32_t num_host_blocks)
      : blocks_(static_cast<std::size_t>(num_blocks)),
        is_host_block_used_(static_cast<std::size_t>(num_host_blocks)) {}

  void apply(std::span<const BlockEvent> events) {
    for (const BlockEvent& event : events) apply(event);
  }

  // The first block whose replayed state is not the engine's own.
  std::optional<std::string> difference(const KvSnapshot& snapshot) const {
    for (std::size_t i = 0; i < blocks_.size(); ++i) {
      const BlockSnapshot& mine = blocks_[i];
      const BlockSnapshot& real = snapshot.blocks[i];
      if (mine.state == real.state && mine.ref_count == real.ref_count && mine.num_pins == real.num_pins &&
          mine.filled == real.filled && mine.findable == real.findable) {
        continue;
      }
      return "block " + std::to_string(i) + ": references " + std::to_string(mine.ref_count) + " / " +
             std::to_string(real.ref_count) + ", filled " + std::to_string(mine.filled) + " / " +
             std::to_string(real.filled) + ", findable " + std::to_string(mine.findable) + " / " +
             std::to_string(real.findable) + " (replayed / real)";
    }
    std::vector<bool> is_used(is_host_block_used_.size());
    for (const SequenceSnapshot& sequence : snapshot.sequences) {
      if (sequence.state != SequenceState::kSwapped) continue;
      for (const BlockId block : sequence.block_table)
        is_used.at(static_cast<std::size_t>(block.value)) = true;
    }
    if (is_used != is_host_block_used_) return "the host pool is not as replayed";
    return std::nullopt;
  }

 private:
  BlockSnapshot& at(std::int32_t block) { return blocks_.at(static_cast<std::size_t>(block)); }
  void set_host(std::int32_t host_block, bool is_used) {
    is_host_block_used_.at(static_cast<std::size_t>(host_block)) = is_used;
  }

  void refer(std::int32_t block, std::int32_t ref_count) {
    at(block).state = BlockState::kUsed;
    at(block).ref_count = ref_count;
  }
  void unrefer(const BlockEvent& event) {
    BlockSnapshot& block = at(event.block);
    block.ref_count = event.aux;
    if (event.sequence == 0) --block.num_pins;
    if (event.aux == 0) block.state = BlockState::kCached;
  }

  void apply(const BlockEvent& event) {
    switch (event.kind) {
      case BlockEventKind::kAlloc: at(event.block) = {.state = BlockState::kUsed, .ref_count = 1}; break;
      case BlockEventKind::kHit:
      case BlockEventKind::kShare: refer(event.block, event.aux); break;
      case BlockEventKind::kPin:
        refer(event.block, event.aux);
        ++at(event.block).num_pins;
        break;
      case BlockEventKind::kUnref: unrefer(event); break;
      case BlockEventKind::kFree:
      case BlockEventKind::kEvict: at(event.block) = {}; break;
      case BlockEventKind::kFill: at(event.block).filled = event.aux; break;
      case BlockEventKind::kSeal: at(event.block).findable = true; break;
      case BlockEventKind::kCopyOnWrite: at(event.aux).filled = at(event.block).filled; break;
      case BlockEventKind::kSwapOut: set_host(event.aux, true); break;
      case BlockEventKind::kSwapDrop: set_host(event.aux, false); break;
      default: break;
    }
  }

  std::vector<BlockSnapshot> blocks_;
  std::vector<bool> is_host_block_used_;
};

}  // namespace octavo::scheduler
