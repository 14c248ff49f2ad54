#include "engine/scheduler/policy.h"

namespace octavo::scheduler {

std::int32_t watermark_blocks(const PoolLevel& level) {
  if (level.num_running_sequences == 0) return 0;
  const std::int32_t one_percent = (level.num_blocks + 99) / 100;
  switch (level.reserve) {
    case AdmissionReserve::kLookAhead: return level.num_taken_ahead;
    case AdmissionReserve::kBlockPerSequence: return one_percent + level.num_running_sequences;
    case AdmissionReserve::kOnePercent: return one_percent;
  }
  return one_percent;
}

AllocStatus admission_status(const BlockDemand& demand, const PoolLevel& level) {
  if (demand.num_required > level.num_blocks) return AllocStatus::kNever;
  const std::int32_t num_left = level.num_available - level.num_promised - demand.num_taken;
  return num_left >= watermark_blocks(level) ? AllocStatus::kOk : AllocStatus::kLater;
}

}  // namespace octavo::scheduler
