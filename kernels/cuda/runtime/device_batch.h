// A step's batch where kernels find it.
#pragma once

#include <cstdint>

namespace octavo::kernels::cuda {

// Of a step whose launches have one shape for many steps (filled_batch.h): what a launch would else have as
// an argument.
struct StepNumbers {
  std::int32_t max_blocks = 0;
  std::int32_t partition = 0;  // decode_partition()
};

// kernels/paged_batch.h's arrays in device memory, and what the host knows of them. A slot of -1 is that of a
// row that only fills a step up: nothing is written or attended to for it.
struct DeviceBatch {
  std::int32_t num_tokens = 0;
  std::int32_t num_sequences = 0;
  std::int32_t max_blocks = 0;
  std::int32_t min_rows = 0;  // fewest and most rows of a sequence, or less and more
  std::int32_t max_rows = 0;
  // Of any sequence, or more: it sizes the grid (a captured graph's: the most of all)
  std::int32_t max_context_len = 0;
  // PagedAttention::num_split_tiles(), or more; 0: not known
  std::int32_t num_split_tiles = 0;
  // Device memory; null: max_blocks, and a partition for max_context_len
  const StepNumbers* numbers = nullptr;
  const std::int32_t* positions = nullptr;
  const std::int32_t* slot_mapping = nullptr;
  const std::int32_t* query_start = nullptr;
  const std::int32_t* context_lens = nullptr;
  const std::int32_t* block_tables = nullptr;
  const float* rotations = nullptr;
  const float* local_rotations = nullptr;           // null: the model has none
  const std::int32_t* rows_of_rotations = nullptr;  // which of them is a row's; null: they are in order
};

}  // namespace octavo::kernels::cuda
