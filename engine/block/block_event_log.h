// What happened to blocks, in order, until somebody takes it. Appending to a vector is all that recording
// costs. Times are left to the reader of the records: policy has no clock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "engine/api/block_event.h"
#include "engine/base/ids.h"
#include "engine/block/block.h"

namespace octavo::block {

class BlockEventLog {
 public:
  // What follows belongs to this step.
  void begin_step(std::int64_t step) {
    step_ = step;
    step_begin_ = events_.size();
    record(BlockEventKind::kStepBegin, SequenceId{});
  }
  // Completes the record of the step's beginning. REQUIRES: no take() since begin_step().
  void note_scheduled_tokens(std::int32_t num_tokens) { events_[step_begin_].aux = num_tokens; }

  void record(BlockEventKind kind, SequenceId sequence, BlockId block = kNoBlock, std::int32_t aux = 0) {
    events_.push_back(
        {.step = step_, .sequence = sequence.value, .block = block.value, .aux = aux, .kind = kind});
  }

  std::vector<BlockEvent> take() {
    std::vector<BlockEvent> taken;
    taken.reserve(events_.size());
    taken.swap(events_);
    return taken;
  }

 private:
  std::int64_t step_ = 0;
  std::size_t step_begin_ = 0;  // index of its kStepBegin
  std::vector<BlockEvent> events_;
};

}  // namespace octavo::block
