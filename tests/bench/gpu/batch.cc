#include "tests/bench/gpu/batch.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

namespace octavo::bench {

HostBatch::HostBatch(const BatchShape& shape, const std::vector<std::int32_t>& blocks, std::size_t first)
    : shape_(shape) {
  const auto begin = blocks.begin() + static_cast<std::ptrdiff_t>(first);
  tables_.assign(begin, begin + shape.num_blocks());
  query_start_.push_back(0);
  for (std::int32_t sequence = 0; sequence < shape.num_sequences; ++sequence) {
    const std::int32_t* const table = tables_.data() + sequence * shape.blocks_of_sequence();
    for (std::int32_t row = 0; row < shape.rows; ++row) {
      const std::int32_t position = shape.context_len - shape.rows + row;
      positions_.push_back(position);
      slots_.push_back(table[position / shape.block_size] * shape.block_size + position % shape.block_size);
      for (std::int32_t pair = 0; pair < shape.head_dim / 2; ++pair) {
        const double angle = position * std::pow(500000.0, -2.0 * pair / shape.head_dim);
        rotations_.push_back(static_cast<float>(std::cos(angle)));
        rotations_.push_back(static_cast<float>(std::sin(angle)));
      }
    }
    query_start_.push_back(query_start_.back() + shape.rows);
    context_lens_.push_back(shape.context_len);
  }
}

kernels::PagedBatch HostBatch::view() const {
  return {.num_tokens = static_cast<std::int32_t>(positions_.size()),
          .num_sequences = shape_.num_sequences,
          .positions = positions_,
          .slot_mapping = slots_,
          .query_start = query_start_,
          .context_lens = context_lens_,
          .block_tables = tables_,
          .max_blocks = shape_.blocks_of_sequence(),
          .rotations = rotations_};
}

std::vector<std::int32_t> shuffled_blocks(std::int64_t count) {
  std::vector<std::int32_t> blocks(static_cast<std::size_t>(count));
  std::iota(blocks.begin(), blocks.end(), 0);
  std::shuffle(blocks.begin(), blocks.end(), std::mt19937(11));
  return blocks;
}

}  // namespace octavo::bench
