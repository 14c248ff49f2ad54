// A run of a power of two of blocks for each output, taken whole at its start and kept to its end: what the
// systems before paging did, after engine/block/reservation.h and buddy_allocator.h. Nothing is shared, and
// nobody who runs is ever short of blocks. Engine thread.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/scheduler/allocation_strategy.h"

namespace octavo::scheduler {

class ContiguousAllocation final : public AllocationStrategy {
 public:
  ContiguousAllocation(const SchedulerOptions& options, block::BlockManager& blocks)
      : options_(options), blocks_(blocks) {}

  bool shares_blocks() const override { return false; }
  std::int32_t num_blocks_required(const SequenceGroup& group) const override;
  bool could_ever_fit(const SequenceGroup& group) const override;
  AllocStatus admission(SequenceGroup& group, const PoolLevel& level) override;
  void reserve(SequenceGroup& group) override;
  std::int32_t num_blocks_to_grow(const SequenceGroup&) override { return 0; }
  std::int32_t num_blocks_for_drafts(const PoolLevel&) const override { return 0; }

 private:
  std::int32_t run_length(const SequenceGroup& group) const;
  std::vector<std::int32_t> runs(const SequenceGroup& group) const;

  const SchedulerOptions& options_;
  block::BlockManager& blocks_;
};

}  // namespace octavo::scheduler
