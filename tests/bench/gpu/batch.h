// A step's arrays for sequences of one length, whose blocks lie shuffled in a pool.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/paged_batch.h"

namespace octavo::bench {

// Every sequence has `context_len` tokens, of which the last `rows` are computed.
struct BatchShape {
  std::int32_t num_sequences = 1, rows = 1, context_len = 1;
  std::int32_t block_size = 16, head_dim = 64;

  std::int32_t blocks_of_sequence() const { return (context_len + block_size - 1) / block_size; }
  std::int32_t num_blocks() const { return num_sequences * blocks_of_sequence(); }
};

// Owns what view() looks at, which holds until the object is moved or ends.
class HostBatch {
 public:
  // Takes `shape.num_blocks()` of `blocks`, from `first` on. REQUIRES: as many are there.
  HostBatch(const BatchShape& shape, const std::vector<std::int32_t>& blocks, std::size_t first);
  kernels::PagedBatch view() const;

 private:
  BatchShape shape_;
  std::vector<std::int32_t> positions_, slots_, query_start_, context_lens_, tables_;
  std::vector<float> rotations_;
};

// 0 .. count - 1 in a random order that is the same each time.
std::vector<std::int32_t> shuffled_blocks(std::int64_t count);

}  // namespace octavo::bench
