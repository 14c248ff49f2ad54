// What a step cost, and what the pool has done so far. The definitions of the figures: README.md of engine/metrics.
#pragma once

#include <cstdint>

namespace octavo {

// Totals since the engine started, except where a level is meant.
struct KvTotals {
  std::int32_t block_size = 0;  // tokens
  std::int32_t num_blocks = 0;
  std::int32_t num_host_blocks = 0;
  std::int64_t bytes_per_block = 0;
  std::int32_t peak_used_blocks = 0;     // highest number of blocks with a reference
  std::int32_t peak_logical_blocks = 0;  // highest sum of table lengths
  std::int64_t cow_copies = 0;
  std::int64_t swapped_out_blocks = 0;
  std::int64_t swapped_in_blocks = 0;
  std::int64_t preempted_swap = 0;
  std::int64_t preempted_recompute = 0;
  std::int64_t evicted_cached_blocks = 0;
  std::int64_t prefix_hit_tokens = 0;
};

// One step of the engine. Feeds window, trace and benchmark, so that no two of them disagree.
struct StepRecord {
  std::int64_t step = 0;
  std::int64_t begin_us = 0;  // engine clock
  std::int32_t num_prefill_tokens = 0;
  std::int32_t num_decode_tokens = 0;
  std::int32_t num_running = 0;  // sequence groups
  std::int32_t num_waiting = 0;
  std::int32_t used_blocks = 0;  // levels at the end of the step; used + cached + free = num_blocks
  std::int32_t cached_blocks = 0;
  std::int32_t free_blocks = 0;
  std::int32_t logical_blocks = 0;
  std::int32_t unfilled_slots = 0;  // in used blocks
  std::int32_t num_preempted = 0;   // groups, in this step
  std::int32_t num_block_copies = 0;
  std::int64_t schedule_us = 0;
  std::int64_t execute_us = 0;  // forward pass and sampling
  std::int64_t commit_us = 0;
};

}  // namespace octavo
