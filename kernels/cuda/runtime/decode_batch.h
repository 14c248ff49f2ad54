// Decode steps, one row for each sequence, come in few shapes: the number of rows is filled up to one of
// decode_rows(), the longest context to one of PagedAttention::decode_contexts(). Each shape can be recorded
// once and started as one, with and without which the same kernels do the same, bit for bit.
//
// A row that fills up has token 0 at position 0, slot -1 and a table of its own: it is computed as far as the
// residual stream goes, writes no keys or values, attends to nothing, and nobody asks for its logits. Rows do
// not meet anywhere.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/backend.h"

namespace octavo::kernels::cuda {

// Decode steps of more rows have a shape of their own: starting their kernels takes no longer than running
// them.
inline constexpr std::int32_t kMostDecodeRows = 512;

// Powers of two up to 64, then its multiples; the last is `most_rows`, or kMostDecodeRows if that is less.
// Products compute tiles of 16 or of 64 rows from 9 rows on, so that a finer list would save next to nothing
// there; below, and where attention cuts contexts for want of sequences, twice as many rows are the most that
// is wasted.
std::vector<std::int32_t> decode_rows(std::int32_t most_rows);

// A batch filled up, in host memory. Memory is kept from step to step.
class DecodeBatch {
 public:
  // REQUIRES: one row for each sequence, at most num_rows.
  void fill(const PagedBatch& batch, std::span<const std::int32_t> token_ids, std::int32_t num_rows);

  // Of the newest fill(), until the next.
  const PagedBatch& batch() const { return batch_; }
  std::span<const std::int32_t> token_ids() const { return token_ids_; }

 private:
  PagedBatch batch_;
  std::vector<std::int32_t> token_ids_, positions_, slot_mapping_, query_start_, context_lens_, block_tables_;
  std::vector<float> rotations_, local_rotations_;
};

}  // namespace octavo::kernels::cuda
