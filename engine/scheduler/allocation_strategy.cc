#include "engine/scheduler/allocation_strategy.h"

#include "engine/block/reservation.h"
#include "engine/scheduler/contiguous_allocation.h"
#include "engine/scheduler/paged_allocation.h"
#include "engine/scheduler/scheduler.h"

namespace octavo::scheduler {

block::BlockManagerOptions block_manager_options(const SchedulerOptions& options) {
  block::BlockManagerOptions pools{.block_size = options.block_size,
                                   .num_blocks = options.num_blocks,
                                   .num_host_blocks = options.num_host_blocks,
                                   .bytes_per_block = options.bytes_per_block,
                                   .enable_prefix_caching = options.enable_prefix_caching,
                                   .num_states = options.num_states,
                                   .num_host_states = options.num_host_states,
                                   .bytes_per_state = options.bytes_per_state};
  if (options.memory_manager == MemoryManager::kPaged) return pools;
  pools.num_host_blocks = pools.num_host_states = 0;
  pools.enable_prefix_caching = false;
  pools.largest_run = block::reservation_blocks(options.max_model_len, options.block_size);
  return pools;
}

std::unique_ptr<AllocationStrategy> make_allocation_strategy(const SchedulerOptions& options,
                                                             block::BlockManager& blocks) {
  if (options.memory_manager == MemoryManager::kPaged)
    return std::make_unique<PagedAllocation>(options, blocks);
  return std::make_unique<ContiguousAllocation>(options, blocks);
}

}  // namespace octavo::scheduler
