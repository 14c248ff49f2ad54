#include "kernels/sample_step.h"

#include <algorithm>

namespace octavo::kernels {

SampleBatch::SampleBatch(const SampleStep& step, std::int32_t slot, std::int32_t block_size,
                         std::int32_t rotary_dim)
    : max_blocks_((step.context_len + block_size - 1) / block_size), query_start_{0} {
  while (query_start_.back() < step.num_rows) {
    const bool is_decode = std::ssize(context_lens_) < step.num_decodes;
    const std::int32_t left = step.num_rows - query_start_.back(),
                       rows = is_decode ? 1 : std::min(left, step.context_len);
    for (std::int32_t i = 0; i < rows; ++i) positions_.push_back(step.context_len - rows + i);
    query_start_.push_back(query_start_.back() + rows);
    context_lens_.push_back(step.context_len);
  }
  token_ids_.assign(positions_.size(), 0);
  slots_.assign(positions_.size(), slot);
  block_tables_.assign(context_lens_.size() * static_cast<std::size_t>(max_blocks_), 0);
  rotations_.assign(positions_.size() * static_cast<std::size_t>(rotary_dim), 0.0f);
}

PagedBatch SampleBatch::batch() const {
  return {.num_tokens = static_cast<std::int32_t>(positions_.size()),
          .num_sequences = static_cast<std::int32_t>(context_lens_.size()),
          .positions = positions_,
          .slot_mapping = slots_,
          .query_start = query_start_,
          .context_lens = context_lens_,
          .block_tables = block_tables_,
          .max_blocks = max_blocks_,
          .rotations = rotations_};
}

}  // namespace octavo::kernels
