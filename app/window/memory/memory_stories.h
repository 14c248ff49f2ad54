// Block events as what happened to whom: forty allocations are one story. The raw events stay in the log.
//
// A value type; UI thread.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <vector>

#include "engine/api/block_event.h"
#include "ui/memory_state.h"

namespace octavo::app {

class MemoryStories {
 public:
  // Events in order. Goes on with the newest of `stories` or adds one; drops the oldest.
  void add(const BlockEvent& event, std::uint64_t mark, std::deque<ui::Story>& stories);

 private:
  struct Released {
    std::int32_t num_blocks = 0;  // of its table, at present
    std::int32_t num_released = 0, num_freed = 0;
    std::int64_t step = -1;  // in which they were
    bool is_preempted = false;
  };

  void add_of_states(const BlockEvent& event, std::uint64_t mark, std::deque<ui::Story>& stories);
  void follow_sequence(const BlockEvent& event, std::uint64_t mark, std::deque<ui::Story>& stories);
  void release(const BlockEvent& event, std::uint64_t mark, std::deque<ui::Story>& stories);
  static void take_back_end(const BlockEvent& event, std::deque<ui::Story>& stories);
  std::uint64_t writer_of(std::int32_t block) const;
  void note_writer(std::int32_t block, std::uint64_t sequence);

  std::vector<std::uint64_t> writers_;  // who computed what a block holds, by block; 0: not known
  std::map<std::uint64_t, Released> sequences_;
  struct Checkpoint {
    std::uint64_t sequence = 0;
    std::int32_t position = 0;
    CheckpointReason reason = CheckpointReason::kEnd;
  };
  std::map<std::int32_t, Checkpoint> checkpoints_;  // by state
};

}  // namespace octavo::app
