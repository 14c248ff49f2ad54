// How groups get their blocks: one by one as they grow (PagedAllocation), or in one contiguous run for each
// output at its start (ContiguousAllocation, the baselines of Kwon et al. 2023, section 6.1). The scheduler
// decides who runs and asks here what that takes; nothing else knows which memory manager was chosen. Engine
// thread; deterministic.
#pragma once

#include <cstdint>
#include <memory>

#include "engine/block/block_manager.h"
#include "engine/scheduler/policy.h"

namespace octavo::scheduler {

struct SchedulerOptions;
class SequenceGroup;

class AllocationStrategy {
 public:
  virtual ~AllocationStrategy() = default;

  // Whether sequences may name the same blocks: what forks, beams and the prefix cache rest on.
  virtual bool shares_blocks() const = 0;

  // The least blocks that a group can do with before it has generated anything, and whether an empty pool has
  // them, where they are wanted.
  virtual std::int32_t num_blocks_required(const SequenceGroup& group) const = 0;
  virtual bool could_ever_fit(const SequenceGroup& group) const = 0;

  // Whether a waiting group may start on a pool as full as `level` says.
  virtual AllocStatus admission(SequenceGroup& group, const PoolLevel& level) = 0;
  // What a group that starts without blocks is given at once, beyond what it grows by.
  virtual void reserve(SequenceGroup& group) = 0;

  // Blocks that a group takes for the known tokens of its sequences that compute.
  virtual std::int32_t num_blocks_to_grow(const SequenceGroup& group) = 0;

  // Free blocks that guesses may take while nobody waits. REQUIRES: `level` is that of now.
  virtual std::int32_t num_blocks_for_drafts(const PoolLevel& level) const = 0;
};

// The pools that the memory manager of `options` works on. Contiguous runs are neither swapped nor found by
// content.
block::BlockManagerOptions block_manager_options(const SchedulerOptions& options);

// `options` and `blocks`, made by the above, outlive it.
std::unique_ptr<AllocationStrategy> make_allocation_strategy(const SchedulerOptions& options,
                                                             block::BlockManager& blocks);

}  // namespace octavo::scheduler
