// Which way a preempted group's blocks go: to the host pool and back, or dropped and computed again. Tokens
// do not depend on it: both ways lead to the same bits. Pure; any thread.
//
// One rule: what was measured to be cheaper. As long as one of the two was not measured, the prior decides,
// which is that of the paper's authors' code: a single sequence is computed again, several are swapped.
#pragma once

#include <cstdint>

#include "engine/api/engine_options.h"
#include "engine/scheduler/measured_costs.h"

namespace octavo::scheduler {

// What a group that gives way has on the device.
struct PreemptedGroup {
  std::int32_t num_sequences = 0;
  std::int32_t num_blocks = 0;  // with KV, each once
  std::int32_t num_tokens = 0;  // with KV, those of shared full blocks once
};

// kSwap and kRecompute are orders. kAuto is the rule. kCost is the rule of one who does not believe the
// prior: a swap that was never measured counts as free, so that the first one is made, and measured.
bool prefers_swap(const PreemptedGroup& group, PreemptionPolicy policy, const MeasuredCosts& costs);

}  // namespace octavo::scheduler
