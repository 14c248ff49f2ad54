#include "kernels/cuda/runtime/filled_batch.h"

#include <algorithm>

#include "engine/base/check.h"

namespace octavo::kernels::cuda {
namespace {

// `values`, and `filling` up to `size`.
template <class T>
void fill_up(std::vector<T>& filled, std::span<const T> values, std::size_t size, T filling) {
  filled.assign(values.begin(), values.end());
  filled.resize(size, filling);
}

}  // namespace

std::vector<std::int32_t> filled_rows(std::int32_t most_rows) {
  const std::int32_t most = std::min(most_rows, kMostFilledRows);
  std::vector<std::int32_t> rows;
  for (std::int32_t next = 1; next < most; next += std::min(next, 64)) rows.push_back(next);
  if (most > 0) rows.push_back(most);
  return rows;
}

bool is_decode(const PagedBatch& batch) {
  if (batch.num_tokens == 0 || batch.num_tokens != batch.num_sequences) return false;
  for (std::size_t i = 0; i < batch.query_start.size(); ++i) {
    if (batch.query_start[i] != static_cast<std::int32_t>(i)) return false;
  }
  return true;
}

void FilledBatch::fill(const PagedBatch& batch, std::span<const std::int32_t> token_ids,
                       std::int32_t num_rows, std::int32_t num_sequences) {
  const bool has_one_row_each = is_decode(batch), has_rows_to_fill = batch.num_tokens < num_rows;
  OCTAVO_CHECK(batch.num_tokens > 0 && batch.num_tokens <= num_rows &&
                   (has_one_row_each ? num_sequences == num_rows
                                     : batch.num_sequences + (has_rows_to_fill ? 1 : 0) <= num_sequences),
               "%d rows of %d sequences do not fill up to %d of %d", batch.num_tokens, batch.num_sequences,
               num_rows, num_sequences);
  const auto rows = static_cast<std::size_t>(num_rows), given = static_cast<std::size_t>(batch.num_tokens),
             sequences = static_cast<std::size_t>(num_sequences);
  fill_up(token_ids_, token_ids, rows, 0);
  fill_up(positions_, batch.positions, rows, 0);
  fill_up(slot_mapping_, batch.slot_mapping, rows, -1);
  fill_up(context_lens_, batch.context_lens, sequences, 1);
  fill_up(rotations_, batch.rotations, batch.rotations.size() / given * rows, 0.0f);
  fill_up(local_rotations_, batch.local_rotations, batch.local_rotations.size() / given * rows, 0.0f);
  fill_up(query_start_, batch.query_start, sequences + 1, num_rows);
  for (std::size_t i = given; has_one_row_each && i <= rows; ++i)
    query_start_[i] = static_cast<std::int32_t>(i);

  batch_.num_tokens = num_rows;
  batch_.num_sequences = num_sequences;
  batch_.positions = positions_;
  batch_.slot_mapping = slot_mapping_;
  batch_.query_start = query_start_;
  batch_.context_lens = context_lens_;
  batch_.block_tables = batch.block_tables;
  batch_.max_blocks = batch.max_blocks;
  batch_.rotations = rotations_;
  batch_.local_rotations = local_rotations_;
}

}  // namespace octavo::kernels::cuda
