// One step's rows as the plain arrays that kernels read: the scheduler's decision, flattened. Memory is kept
// from step to step. Engine thread.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/base/ids.h"
#include "engine/scheduler/scheduler_output.h"
#include "kernels/paged_batch.h"

namespace octavo::runner {

class ModelInput {
 public:
  // Rows stand in the order of `step.sequences`, each sequence's together and ascending in position.
  // REQUIRES: every sequence has rows and a block table that covers them; every slot fits 32 bits.
  void assemble(const scheduler::SchedulerOutput& step, std::int32_t block_size);

  // Another one than the plan's.
  void set_token(std::int32_t row, TokenId token_id) { token_ids_[static_cast<std::size_t>(row)] = token_id; }

  std::int32_t num_tokens() const { return static_cast<std::int32_t>(token_ids_.size()); }
  std::int32_t num_sequences() const { return static_cast<std::int32_t>(context_lens_.size()); }
  std::span<const TokenId> token_ids() const { return token_ids_; }
  // The row of a sequence's first token in this step.
  std::int32_t first_row(std::size_t sequence_index) const { return query_start_[sequence_index]; }
  // Memory moves, in the order in which they are to be made.
  std::span<const kernels::BlockCopy> swap_outs() const { return swap_outs_; }
  std::span<const kernels::BlockCopy> swap_ins() const { return swap_ins_; }
  std::span<const kernels::BlockCopy> block_copies() const { return block_copies_; }
  std::span<const block::PoolMove> state_moves() const { return state_moves_; }
  std::span<const block::PoolMove> window_moves() const { return window_moves_; }

  // All but the rotations, which belong to the model. Valid until the next assemble().
  kernels::PagedBatch batch() const;

 private:
  void note_moves(const scheduler::SchedulerOutput& step);
  void append(const scheduler::ScheduledSequence& sequence, std::int32_t block_size);
  void append_slots(const scheduler::ScheduledSequence& sequence, std::int32_t block_size,
                    std::span<const BlockId> blocks, std::vector<std::int32_t>& tables,
                    std::vector<std::int32_t>& slot_mapping) const;

  std::vector<TokenId> token_ids_;
  std::vector<std::int32_t> positions_, slot_mapping_;                   // [num_tokens]
  std::vector<std::int32_t> query_start_;                                // [num_sequences + 1]
  std::vector<std::int32_t> context_lens_;                               // [num_sequences]
  std::vector<std::int32_t> block_tables_;                               // [num_sequences, max_blocks_]
  std::vector<std::int32_t> window_slot_mapping_, window_block_tables_;  // as those, or empty
  std::vector<std::int32_t> states_, num_drafted_;                       // [num_sequences], or empty
  std::int32_t max_blocks_ = 0;
  std::vector<kernels::BlockCopy> swap_outs_, swap_ins_, block_copies_;
  std::vector<block::PoolMove> state_moves_, window_moves_;
};

}  // namespace octavo::runner
