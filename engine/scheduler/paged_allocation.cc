#include "engine/scheduler/paged_allocation.h"

#include <algorithm>

#include "engine/scheduler/scheduler.h"
#include "engine/scheduler/sequence_group.h"

namespace octavo::scheduler {

std::int32_t PagedAllocation::num_blocks_required(const SequenceGroup& group) const {
  return group.num_blocks_required(options_.block_size);
}

bool PagedAllocation::could_ever_fit(const SequenceGroup& group) const {
  return num_blocks_required(group) <= options_.num_blocks;
}

AllocStatus PagedAllocation::admission(SequenceGroup& group, const PoolLevel& level) {
  return admission_status(demand_of(group), level);
}

BlockDemand PagedAllocation::demand_of(SequenceGroup& group) {
  Sequence& lead = group.lead();
  const bool is_swapped_out = group.is_swapped_out();
  BlockDemand demand;
  demand.num_required = is_swapped_out ? num_blocks_to_swap_in(group) : num_blocks_required(group);
  demand.num_taken = demand.num_required;
  if (group.reads_prefix_cache() || is_swapped_out) {
    const std::int32_t num_tokens =
        is_swapped_out ? lead.num_computed_tokens() : group.most_reused_tokens(lead, options_.block_size);
    demand.num_taken -= blocks_.match(lead.table, group.content(lead), num_tokens).num_used_blocks;
  }
  return demand;
}

// Where one prompt starts many outputs, its rest is among what is promised.
std::int32_t PagedAllocation::num_blocks_to_swap_in(SequenceGroup& group) {
  const std::int32_t num_to_grow = group.starts_many_outputs() ? 0 : num_blocks_to_grow(group);
  return blocks_.num_distinct_blocks(group.tables()) + num_to_grow +
         group.num_blocks_promised(options_.block_size);
}

std::int32_t PagedAllocation::num_blocks_to_grow(const SequenceGroup& group) {
  growths_.clear();
  for (const Sequence& sequence : group.live()) {
    if (sequence.is_computing()) growths_.push_back({&sequence.table, sequence.num_tokens()});
  }
  return blocks_.num_blocks_to_grow(growths_);
}

// Beyond what a start leaves: the watermark, and what is promised to groups that will fork. Nothing cached is
// given up for a guess.
std::int32_t PagedAllocation::num_blocks_for_drafts(const PoolLevel& level) const {
  return std::max(0, blocks_.pool().num_free() - level.num_promised - watermark_blocks(level));
}

}  // namespace octavo::scheduler
