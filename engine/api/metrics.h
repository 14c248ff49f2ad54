// What a step cost, and what the pool has done so far. The definitions of the
// figures: README.md of engine/metrics.
#pragma once

#include <cstdint>
#include <string_view>

namespace octavo {

// Of the states of recurrent layers, since the engine started; all 0 where a model has none.
struct StateTotals {
  std::int64_t num_taken = 0;    // checkpoints
  std::int64_t num_resumed = 0;  // times that a sequence went on from one
  std::int64_t num_evicted = 0;
  std::int64_t num_copied = 0;  // states, within the device
  std::int64_t num_swapped_out = 0, num_swapped_in = 0;
  std::int32_t peak_held = 0;  // states on the device that were in use or kept
};

// Of the window parts of blocks, since the engine started; all 0 where no layer has a pool for its window.
struct WindowTotals {
  std::int64_t num_left = 0;     // parts that a sequence left behind while it went on
  std::int64_t num_evicted = 0;  // parts whose place was needed
  std::int64_t num_swapped_out = 0, num_swapped_in = 0;
  std::int32_t peak_used = 0;  // parts that were read at a time
  std::int32_t peak_held = 0;  // that were read or kept
};

// Totals since the engine started, except where a level is meant.
struct KvTotals {
  std::int32_t block_size = 0;  // tokens
  std::int32_t num_blocks = 0;
  std::int32_t num_host_blocks = 0;
  std::int64_t bytes_per_block = 0;
  std::int32_t peak_used_blocks = 0;     // highest number of blocks with a reference
  std::int32_t peak_logical_blocks = 0;  // highest sum of table lengths
  std::int64_t cow_copies = 0;           // blocks copied within the device pool, for whatever reason
  std::int64_t partial_copies = 0;       // of these, for a prefix that ends inside a block
  std::int64_t swapped_out_blocks = 0;
  std::int64_t swapped_in_blocks = 0;
  std::int64_t preempted_swap = 0;
  std::int64_t preempted_recompute = 0;
  std::int64_t evicted_cached_blocks = 0;
  std::int64_t prefix_hit_tokens = 0;
  std::int64_t swap_out_us = 0;  // measured, engine clock
  std::int64_t swap_in_us = 0;
  std::int32_t host_used_blocks = 0;  // level
  std::int32_t peak_host_used_blocks = 0;
  std::int32_t num_states = 0, num_host_states = 0;
  std::int64_t bytes_per_state = 0;
  StateTotals states = {};
  std::int32_t window = 0;  // tokens
  std::int32_t num_window_blocks = 0, num_host_window_blocks = 0;
  std::int64_t bytes_per_window_block = 0;
  WindowTotals windows = {};
};

// What became of every prompt token of a request until its first token: the five
// add up to the prompt's length.
struct PromptAccount {
  std::int32_t num_computed = 0;
  std::int32_t num_hit_live = 0;        // found in a block that somebody else was using
  std::int32_t num_hit_cached = 0;      // found in a block that nobody was using
  std::int32_t num_copied_partial = 0;  // of a block that holds more, or other, tokens after them
  std::int32_t num_restored = 0;        // came back from the host pool
  friend bool operator==(const PromptAccount&, const PromptAccount&) = default;
};

// Why a prompt's hit ended where it did.
enum class MissCause : std::uint8_t {
  kNone,            // everything that may be found was found
  kFirstUse,        // nobody had these tokens here before
  kEvicted,         // the block was there; evicted_step and evicted_by name the end
  kOtherSalt,       // the same tokens are there under another salt
  kDifferingToken,  // a block that starts alike differs at `position`
  kNoCheckpoint,    // the blocks go on, but the recurrent layers have no state beyond `position`
  kBehindWindow,    // the blocks go on, but of layers with a window those before `position` are not all there
  kNotRead,         // the request does not read the cache, or there is none
};
std::string_view miss_cause_name(MissCause cause);

struct PrefixMiss {
  MissCause cause = MissCause::kNone;
  std::int32_t position = 0;      // of the first prompt token that was not found
  std::int64_t evicted_step = 0;  // kEvicted
  std::uint64_t evicted_by = 0;   // kEvicted: the sequence that took the place, 0: a reset
};

// One step of the engine. Feeds window, trace and benchmark, so that no two of them disagree.
struct StepRecord {
  std::int64_t step = 0;
  // Engine clock; of a step that was scheduled while the one before was computed: when that was over.
  std::int64_t begin_us = 0;
  std::int32_t num_prefill_tokens = 0;
  std::int32_t num_decode_tokens = 0;
  std::int32_t num_draft_tokens = 0;     // rows of drafts
  std::int32_t num_accepted_tokens = 0;  // of these, what became tokens of an output
  std::int32_t num_running = 0;          // sequence groups
  std::int32_t num_waiting = 0;
  std::int32_t used_blocks = 0;  // levels at the end of the step; used + cached + free = num_blocks
  std::int32_t cached_blocks = 0;
  std::int32_t free_blocks = 0;
  std::int32_t logical_blocks = 0;
  std::int32_t unfilled_slots = 0;  // in used blocks
  std::int32_t num_preempted = 0;   // groups, in this step
  std::int32_t num_block_copies = 0;
  std::int32_t num_swapped_out = 0;  // blocks
  std::int32_t num_swapped_in = 0;
  std::int32_t num_swapped_groups = 0;                            // level
  std::int32_t reserved_ahead_slots = 0;                          // level, in used blocks
  std::int32_t filled_slots = 0;                                  // level, in used blocks
  std::int32_t host_used_blocks = 0;                              // level
  std::int32_t used_window_blocks = 0, cached_window_blocks = 0;  // levels, of window parts
  std::int64_t schedule_us = 0;  // 0 of a step that was scheduled while the one before was computed
  std::int64_t execute_us = 0;   // forward pass and sampling
  std::int64_t commit_us = 0;
};

}  // namespace octavo
