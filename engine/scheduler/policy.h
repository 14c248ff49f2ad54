// The rule by which a waiting group may start, apart from the machinery that applies it.
#pragma once

#include <cstdint>

#include "engine/api/engine_options.h"

namespace octavo::scheduler {

enum class AllocStatus {
  kOk,
  kLater,  // when others have let blocks go
  kNever,  // not even in an empty pool
};

// The pool as a group that wants to start finds it.
struct PoolLevel {
  std::int32_t num_blocks = 0;
  std::int32_t num_available = 0;  // free or cached
  std::int32_t num_promised = 0;   // of these, blocks that running groups need when they fork
  std::int32_t num_running_sequences = 0;
  AdmissionReserve reserve = AdmissionReserve::kLookAhead;
  std::int32_t num_taken_ahead = 0;  // by these and the group in the next steps: BlockForecast::most_taken()
};

struct BlockDemand {
  std::int32_t num_required = 0;  // for all known tokens of the group
  // Of these, what would come out of the available ones; the rest is in use already
  std::int32_t num_taken = 0;
};

// Blocks that a start leaves, so that what runs need not give way at once: what is known to be taken in the
// next steps; or 1 % of the pool, rounded up (the paper's authors' code: watermark 0.01), with or without one
// for each running sequence.
std::int32_t watermark_blocks(const PoolLevel& level);

// All known tokens must fit and leave the watermark. It is waived when nothing runs, so that what fits the
// pool starts.
AllocStatus admission_status(const BlockDemand& demand, const PoolLevel& level);

}  // namespace octavo::scheduler
