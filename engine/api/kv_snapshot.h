// The state of the whole pool at the end of one step: everything the Memory view draws. The engine publishes
// one when asked; it is a value that nobody changes afterwards.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/api/checkpoint_reason.h"
#include "engine/api/metrics.h"
#include "engine/api/retention_class.h"
#include "engine/base/ids.h"

namespace octavo {

enum class BlockState : std::uint8_t { kFree, kCached, kUsed };

// What layers with a window of their own have of a block.
enum class WindowPart : std::uint8_t { kNone, kCached, kUsed };

struct BlockSnapshot {
  BlockState state = BlockState::kFree;
  std::int32_t ref_count = 0;
  std::int32_t num_pins = 0;  // of ref_count, references that no table has
  std::int32_t filled = 0;    // slots with KV
  std::int32_t reserved = 0;  // slots taken for tokens that have no KV yet
  std::int32_t parent = -1;   // block id of the predecessor in the prefix cache, -1: none or root
  bool findable = false;      // by content
  RetentionClass retention = RetentionClass::kScratch;  // of findable contents
  std::int64_t last_step = 0;   // when it was last allocated, found, filled or released
  SequenceId first_owner = {};  // lowest sequence that names it; meaningful when used
  WindowPart window = WindowPart::kNone;
  BlockId window_place = {-1};                                 // of its window part, in the pool of these
  RetentionClass window_retention = RetentionClass::kScratch;  // of a part that nobody reads
};

// One state of the recurrent layers, as the Memory view shows it.
struct StateSnapshot {
  BlockState state = BlockState::kFree;  // kCached: of no sequence, kept as a checkpoint
  std::int32_t ref_count = 0;            // sequences that own it
  bool is_checkpoint = false;
  CheckpointReason reason = CheckpointReason::kEnd;  // of a checkpoint, as the next two
  std::int32_t position = 0;                         // tokens before it
  RetentionClass retention = RetentionClass::kScratch;
  std::int32_t num_saved_tokens = 0;  // that need not be computed again, beyond the checkpoint before
  BlockId last_block = {-1};          // the full block that it continues; -1: none
  std::int64_t last_step = 0;         // when it was last taken, shared or released
  SequenceId first_owner = {};        // lowest sequence that owns it; meaningful when used
};

enum class SequenceState : std::uint8_t { kWaiting, kRunning, kSwapped };

struct SequenceSnapshot {
  SequenceId sequence_id;
  RequestId request_id;
  std::int32_t output_index = 0;
  SequenceState state = SequenceState::kWaiting;
  std::int32_t num_prompt_tokens = 0;
  std::int32_t num_tokens = 0;              // prompt and generated
  std::int32_t num_computed_tokens = 0;     // with KV, on the device or swapped out
  std::vector<BlockId> block_table;         // device blocks; while swapped out, host blocks
  std::int32_t num_blocks_left_behind = 0;  // of block_table, by its window: from the start
  BlockId state_slot = {-1};  // of its recurrent layers, in the pool of states or that of the host; -1: none
};

// Each figure: design/paging.md "Figures and their definitions", repeated in engine/metrics/README.md.
struct KvFigures {
  std::int32_t used_blocks = 0, cached_blocks = 0, free_blocks = 0;
  std::int32_t logical_blocks = 0;
  double sharing_ratio = 1.0;             // logical / used; 1 when nothing is used
  std::int64_t saved_bytes = 0;           // (logical - used) * bytes per block
  double internal_fragmentation = 0.0;    // unfilled slots / slots of used blocks
  std::int32_t unfilled_slots = 0;        // of used blocks, neither filled nor reserved ahead
  std::int32_t reserved_ahead_slots = 0;  // of used blocks, for tokens that have no KV yet
  std::int32_t filled_slots = 0;          // of used blocks
  std::int32_t host_used_blocks = 0;
  // Of the pool of states: owned by sequences, kept as checkpoints only, free; and how many are checkpoints.
  std::int32_t used_states = 0, cached_states = 0, free_states = 0;
  std::int32_t host_used_states = 0;
  std::int32_t checkpoints = 0;
  // Of the pool of window parts: read by sequences, kept for whoever starts alike, free.
  std::int32_t used_window_blocks = 0, cached_window_blocks = 0, free_window_blocks = 0;
  std::int32_t host_used_window_blocks = 0;
};

// One block, looked at closely: what it holds, who has it, and why it is still here.
struct BlockDetail {
  BlockId block;
  BlockSnapshot state = {};
  std::int32_t first_position = 0;      // of its first token in the text of an owner or of its chain
  std::vector<TokenId> token_ids = {};  // as far as they are known: of filled and reserved slots
  std::vector<SequenceId> owners = {};  // ascending
  std::vector<BlockId> chain = {};      // its predecessors in the prefix cache, the root first
  std::int32_t num_children = 0;  // contents in the prefix cache that continue it: it stays until they go
  std::string why = {};           // one sentence
};

// How much of the pool is wanted. Blocks cost a copy of the whole pool between two steps, the rest next to
// nothing.
enum class SnapshotScope : std::uint8_t { kSequences, kPool };

struct KvSnapshot {
  std::int64_t step = 0;
  std::int64_t time_us = 0;
  std::uint64_t event_mark = 0;  // block events that had happened: metrics::StepRecorder gives the same state
  KvTotals totals;
  KvFigures figures;
  std::vector<BlockSnapshot> blocks;        // index = block id; of scope kSequences: empty
  std::vector<StateSnapshot> states;        // of recurrent layers, in the order of their pool; mostly none
  std::vector<SequenceSnapshot> sequences;  // ascending by sequence id
  std::optional<BlockDetail> watched;       // the block that somebody looks at; of scope kPool

  SnapshotScope scope() const { return blocks.empty() ? SnapshotScope::kSequences : SnapshotScope::kPool; }
};

}  // namespace octavo
