// Steps come in few shapes: numbers of rows and of sequences are filled up, the longest context to one of
// PagedAttention::decode_contexts(). Each shape can be recorded once and started as one, with and without
// which the same kernels do the same, bit for bit.
//
// Rows that fill up have token 0 at position 0 and slot -1, and are a sequence each (decode steps) or one
// together: they are computed as far as the residual stream goes, write no keys or values, attend to nothing,
// and nobody asks for their logits. Rows do not meet anywhere. Sequences that fill up have no rows, and none
// of these has a block table.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/backend.h"

namespace octavo::kernels::cuda {

// Steps of more rows have a shape of their own: starting their kernels takes no longer than running them.
inline constexpr std::int32_t kMostFilledRows = 512;

// Powers of two up to 64, then its multiples; the last is `most_rows`, or kMostFilledRows if that is less.
// Products compute tiles of 16 or of 64 rows from 9 rows on, so that a finer list would save next to nothing
// there; below, and where attention cuts contexts for want of sequences, twice as many rows are the most that
// is wasted.
std::vector<std::int32_t> filled_rows(std::int32_t most_rows);

// Whether each sequence has one row, and there is one.
bool is_decode(const PagedBatch& batch);

// A batch filled up, in host memory. Memory is kept from step to step.
class FilledBatch {
 public:
  // REQUIRES: no more rows and sequences than `num_rows` and `num_sequences`; of a decode step as many of one
  // as of the other, else a sequence left for the rows that fill up, if there are any.
  void fill(const PagedBatch& batch, std::span<const std::int32_t> token_ids, std::int32_t num_rows,
            std::int32_t num_sequences);

  // Of the newest fill(), until the next; block tables are those of its batch.
  const PagedBatch& batch() const { return batch_; }
  std::span<const std::int32_t> token_ids() const { return token_ids_; }

 private:
  PagedBatch batch_;
  std::vector<std::int32_t> token_ids_, positions_, slot_mapping_, query_start_, context_lens_;
  std::vector<float> rotations_, local_rotations_;
};

}  // namespace octavo::kernels::cuda
