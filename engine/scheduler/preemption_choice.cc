#include "engine/scheduler/preemption_choice.h"

namespace octavo::scheduler {

bool prefers_swap(const PreemptedGroup& group, PreemptionPolicy policy, const MeasuredCosts& costs) {
  if (policy == PreemptionPolicy::kSwap) return true;
  if (policy == PreemptionPolicy::kRecompute) return false;
  const bool tries_a_swap = policy == PreemptionPolicy::kCost;
  const bool is_measured = costs.steps.is_known() && (costs.us_per_swapped_block || tries_a_swap);
  if (!is_measured) return group.num_sequences > 1;
  const double swap_us = 2.0 * group.num_blocks * costs.us_per_swapped_block.value_or(0.0);
  const double recompute_us = costs.steps.us_of(StepWork::of_rows(0, group.num_tokens));
  return swap_us < recompute_us;
}

}  // namespace octavo::scheduler
