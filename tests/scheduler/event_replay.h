// Rebuilds the state of every block from the events alone.
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
  explicit EventReplay(std::int32_t num_blocks) : blocks_(static_cast<std::size_t>(num_blocks)) {}

  void apply(std::span<const BlockEvent> events) {
    for (const BlockEvent& event : events) apply(event);
  }

  // The first block whose replayed state is not the engine's own.
  std::optional<std::string> difference(const KvSnapshot& snapshot) const {
    for (std::size_t i = 0; i < blocks_.size(); ++i) {
      const BlockSnapshot& mine = blocks_[i];
      const BlockSnapshot& real = snapshot.blocks[i];
      if (mine.state == real.state && mine.ref_count == real.ref_count && mine.filled == real.filled)
        continue;
      return "block " + std::to_string(i) + ": references " + std::to_string(mine.ref_count) + " / " +
             std::to_string(real.ref_count) + ", filled " + std::to_string(mine.filled) + " / " +
             std::to_string(real.filled) + " (replayed / real)";
    }
    return std::nullopt;
  }

 private:
  BlockSnapshot& at(std::int32_t block) { return blocks_.at(static_cast<std::size_t>(block)); }

  void apply(const BlockEvent& event) {
    switch (event.kind) {
      case BlockEventKind::kAlloc: at(event.block) = {.state = BlockState::kUsed, .ref_count = 1}; break;
      case BlockEventKind::kHit:
      case BlockEventKind::kShare:
        at(event.block).state = BlockState::kUsed;
        at(event.block).ref_count = event.aux;
        break;
      case BlockEventKind::kUnref:
        at(event.block).ref_count = event.aux;
        if (event.aux == 0) at(event.block).state = BlockState::kCached;
        break;
      case BlockEventKind::kFree:
      case BlockEventKind::kEvict: at(event.block) = {}; break;
      case BlockEventKind::kFill: at(event.block).filled = event.aux; break;
      case BlockEventKind::kCopyOnWrite: at(event.aux).filled = at(event.block).filled; break;
      default: break;
    }
  }

  std::vector<BlockSnapshot> blocks_;
};

}  // namespace octavo::scheduler
