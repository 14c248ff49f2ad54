#include "engine/runner/model_input.h"

#include <algorithm>

#include "engine/base/check.h"

namespace octavo::runner {
namespace {

std::int32_t blocks_for(std::int32_t num_tokens, std::int32_t block_size) {
  return (num_tokens + block_size - 1) / block_size;
}

std::int32_t context_len_of(const scheduler::ScheduledSequence& sequence) {
  return sequence.start_position + static_cast<std::int32_t>(sequence.token_ids.size());
}

}  // namespace

void ModelInput::assemble(const scheduler::SchedulerOutput& step, std::int32_t block_size) {
  token_ids_.clear();
  positions_.clear();
  slot_mapping_.clear();
  context_lens_.clear();
  states_.clear();
  num_drafted_.clear();
  window_slot_mapping_.clear();
  query_start_.assign(1, 0);
  max_blocks_ = 0;
  for (const scheduler::ScheduledSequence& sequence : step.sequences) {
    max_blocks_ = std::max(max_blocks_, blocks_for(context_len_of(sequence), block_size));
  }
  // Entries past a sequence's context, or behind its window, are never read; they are 0 so that a step's
  // arrays are the same in every run.
  const std::size_t num_entries = step.sequences.size() * static_cast<std::size_t>(max_blocks_);
  block_tables_.assign(num_entries, 0);
  const bool has_windows = !step.sequences.empty() && !step.sequences.front().window_places.empty();
  window_block_tables_.assign(has_windows ? num_entries : 0, 0);
  for (const scheduler::ScheduledSequence& sequence : step.sequences) append(sequence, block_size);
  note_moves(step);
}

void ModelInput::note_moves(const scheduler::SchedulerOutput& step) {
  swap_outs_.clear();
  swap_ins_.clear();
  block_copies_.clear();
  state_moves_ = step.state_moves;
  window_moves_ = step.window_moves;
  for (const scheduler::BlockSwap& swap : step.swap_outs) {
    swap_outs_.push_back({.source = swap.device_block.value, .target = swap.host_block.value});
  }
  for (const scheduler::BlockSwap& swap : step.swap_ins) {
    swap_ins_.push_back({.source = swap.host_block.value, .target = swap.device_block.value});
  }
  for (const scheduler::BlockCopyOp& copy : step.block_copies) {
    block_copies_.push_back({.source = copy.source.value, .target = copy.target.value});
  }
}

void ModelInput::append(const scheduler::ScheduledSequence& sequence, std::int32_t block_size) {
  const std::int32_t context_len = context_len_of(sequence);
  OCTAVO_CHECK(!sequence.token_ids.empty(), "a scheduled sequence without tokens");
  append_slots(sequence, block_size, sequence.block_table, block_tables_, slot_mapping_);
  if (!window_block_tables_.empty())
    append_slots(sequence, block_size, sequence.window_places, window_block_tables_, window_slot_mapping_);
  for (std::int32_t position = sequence.start_position; position < context_len; ++position)
    positions_.push_back(position);
  token_ids_.insert(token_ids_.end(), sequence.token_ids.begin(), sequence.token_ids.end());
  context_lens_.push_back(context_len);
  if (sequence.state != block::kNoBlock) {
    states_.push_back(sequence.state.value);
    num_drafted_.push_back(sequence.num_draft_tokens);
  }
  query_start_.push_back(num_tokens());
}

void ModelInput::append_slots(const scheduler::ScheduledSequence& sequence, std::int32_t block_size,
                              std::span<const BlockId> blocks, std::vector<std::int32_t>& tables,
                              std::vector<std::int32_t>& slot_mapping) const {
  const std::int32_t context_len = context_len_of(sequence);
  const std::int32_t num_blocks = blocks_for(context_len, block_size);
  OCTAVO_CHECK(blocks.size() >= static_cast<std::size_t>(num_blocks), "%zu blocks for %d tokens",
               blocks.size(), context_len);
  std::int32_t* const table = tables.data() + context_lens_.size() * static_cast<std::size_t>(max_blocks_);
  for (std::int32_t i = 0; i < num_blocks; ++i)
    table[i] = std::max(0, blocks[static_cast<std::size_t>(i)].value);
  for (std::int32_t position = sequence.start_position; position < context_len; ++position)
    slot_mapping.push_back(table[position / block_size] * block_size + position % block_size);
}

kernels::PagedBatch ModelInput::batch() const {
  kernels::PagedBatch batch;
  batch.num_tokens = num_tokens();
  batch.num_sequences = num_sequences();
  batch.positions = positions_;
  batch.slot_mapping = slot_mapping_;
  batch.query_start = query_start_;
  batch.context_lens = context_lens_;
  batch.block_tables = block_tables_;
  batch.max_blocks = max_blocks_;
  batch.window_slot_mapping = window_slot_mapping_;
  batch.window_block_tables = window_block_tables_;
  batch.states = states_;
  batch.num_drafted = num_drafted_;
  return batch;
}

}  // namespace octavo::runner
