// Blocks as they are needed, shared where contents are equal: PagedAttention. Engine thread.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/scheduler/allocation_strategy.h"

namespace octavo::scheduler {

class PagedAllocation final : public AllocationStrategy {
 public:
  PagedAllocation(const SchedulerOptions& options, block::BlockManager& blocks)
      : options_(options), blocks_(blocks) {}

  bool shares_blocks() const override { return true; }
  std::int32_t num_blocks_required(const SequenceGroup& group) const override;
  bool could_ever_fit(const SequenceGroup& group) const override;
  AllocStatus admission(SequenceGroup& group, const PoolLevel& level) override;
  void reserve(SequenceGroup&) override {}
  std::int32_t num_blocks_to_grow(const SequenceGroup& group) override;
  std::int32_t num_blocks_for_drafts(const PoolLevel& level) const override;

 private:
  BlockDemand demand_of(SequenceGroup& group);
  std::int32_t num_blocks_to_swap_in(SequenceGroup& group);

  const SchedulerOptions& options_;
  block::BlockManager& blocks_;
  std::vector<block::Growth> growths_;  // scratch, kept for its memory
};

}  // namespace octavo::scheduler
