// What a planned step computes, as far as its time depends on it: what StepCosts learns from. Pure.
#pragma once

#include "engine/scheduler/measured_costs.h"
#include "engine/scheduler/scheduler_output.h"

namespace octavo::scheduler {

inline StepWork work_of(const SchedulerOutput& plan) {
  StepWork work;
  for (const ScheduledSequence& sequence : plan.sequences) {
    work += StepWork::of_rows(sequence.start_position, static_cast<std::int32_t>(sequence.token_ids.size()));
  }
  return work;
}

}  // namespace octavo::scheduler
