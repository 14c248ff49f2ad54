#include "engine/scheduler/contiguous_allocation.h"

#include "engine/block/reservation.h"
#include "engine/scheduler/scheduler.h"
#include "engine/scheduler/sequence_group.h"

namespace octavo::scheduler {

std::int32_t ContiguousAllocation::run_length(const SequenceGroup& group) const {
  const std::int32_t num_tokens = block::reservation_tokens(
      options_.memory_manager, group.num_prompt_tokens(), group.sampling.max_tokens, options_.max_model_len);
  return block::reservation_blocks(num_tokens, options_.block_size);
}

std::vector<std::int32_t> ContiguousAllocation::runs(const SequenceGroup& group) const {
  return std::vector<std::int32_t>(static_cast<std::size_t>(group.num_live()), run_length(group));
}

std::int32_t ContiguousAllocation::num_blocks_required(const SequenceGroup& group) const {
  return group.num_live() * run_length(group);
}

bool ContiguousAllocation::could_ever_fit(const SequenceGroup& group) const {
  return blocks_.could_ever_reserve(runs(group));
}

AllocStatus ContiguousAllocation::admission(SequenceGroup& group, const PoolLevel&) {
  return blocks_.can_reserve(runs(group)) ? AllocStatus::kOk : AllocStatus::kLater;
}

void ContiguousAllocation::reserve(SequenceGroup& group) {
  for (Sequence& sequence : group.live()) {
    sequence.is_attached = true;
    blocks_.reserve(sequence.table, run_length(group));
  }
}

}  // namespace octavo::scheduler
