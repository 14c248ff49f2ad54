#include "kernels/cuda/matmul/product_scratch.h"

#include <algorithm>
#include <utility>

#include "kernels/cuda/matmul/matmul_kernels.h"

namespace octavo::kernels::cuda {
namespace {

Result<void> take(DeviceMemory& memory, std::int64_t bytes) {
  OCTAVO_TRY(memory, DeviceMemory::allocate(bytes, "the working memory of matrix products"));
  return {};
}

std::int64_t num_parts(const ProductOptions& options) {
  return static_cast<std::int64_t>(options.half_parts);
}

Result<void> reserve_rows(ProductScratch& scratch, const StepShape& shape, const ProductOptions& options) {
  const std::int64_t numbers = scratch.most_rows * scratch.most_columns,
                     half_bytes = 2 * numbers * num_parts(options);
  if (shape.has_unquantised_weights || uses_library(options)) {
    OCTAVO_TRY_VOID(take(scratch.halves, half_bytes));
    OCTAVO_TRY_VOID(take(scratch.half_factors, std::int64_t{scratch.most_rows} * 4));
  }
  if (shape.has_unquantised_weights) {
    OCTAVO_TRY_VOID(take(scratch.bfloats, half_bytes));
    OCTAVO_TRY_VOID(take(scratch.floats, numbers * 4));
  }
  if (!shape.has_quantised_weights) return {};
  const std::int64_t group_scales =
      filled_up_rows(scratch.most_rows) * (scratch.most_columns / kGroupColumns);
  OCTAVO_TRY_VOID(take(scratch.integers, numbers * 2));
  OCTAVO_TRY_VOID(take(scratch.integer_scales, group_scales * 4));
  return take(scratch.integer_sums, group_scales * 8);
}

// At most wanted_blocks() for each target of a launch; and for each row tile, where splits do not depend on
// their number.
Result<void> reserve_splits(ProductScratch& scratch, Stream& stream, const ProductOptions& options) {
  const std::int64_t tiles = kMostTargets * wanted_blocks(options);
  const std::int32_t rows = options.deterministic ? kSplitRows : kMostTileRows;
  OCTAVO_TRY_VOID(take(scratch.partials, tiles * rows * kMostTileOutputs * 4));
  OCTAVO_TRY_VOID(take(scratch.counters, tiles * (kSplitRows / kMostTileRows) * 4));
  stream.fill(scratch.counters.data(), 0, scratch.counters.bytes());
  return {};
}

// Of a gate, and as wide as the residual stream: these are never summed in pieces, which are multiples of
// eight rows. Of two parts all, some rows at a time where a row is wider than these. Own kernels need it for
// the gate alone.
Result<void> reserve_sums(ProductScratch& scratch, const StepShape& shape, const ProductOptions& options) {
  const std::int64_t rows = filled_up_rows(scratch.most_rows);
  std::int64_t numbers = rows * shape.feed_forward_length;
  if (uses_library(options)) {
    const std::int64_t widest = std::max(scratch.most_columns, std::int64_t{shape.vocabulary_size});
    numbers =
        num_parts(options) * std::max({numbers, rows * shape.embedding_length, kFewestRowsBeside * widest});
  }
  OCTAVO_TRY_VOID(take(scratch.sums, numbers * 4));
  if (!uses_library(options) || !shape.has_quantised_weights) return {};
  return take(scratch.expanded, std::max(kExpandedNumbers, kExpandedStep * scratch.most_columns) * 2);
}

}  // namespace

Result<ProductScratch> ProductScratch::reserve(Stream& stream, const StepShape& shape,
                                               const ProductOptions& options) {
  ProductScratch scratch;
  scratch.most_rows = std::min(std::max(shape.num_rows, shape.num_logits_rows), kMostPreparedRows);
  scratch.most_columns =
      padded_columns(std::max({std::int64_t{shape.embedding_length}, std::int64_t{shape.feed_forward_length},
                               std::int64_t{shape.num_heads} * shape.head_dim}));
  OCTAVO_TRY_VOID(reserve_rows(scratch, shape, options));
  OCTAVO_TRY_VOID(reserve_splits(scratch, stream, options));
  OCTAVO_TRY_VOID(reserve_sums(scratch, shape, options));
  return Result<ProductScratch>(std::move(scratch));
}

std::int64_t ProductScratch::bytes() const {
  std::int64_t sum = 0;
  for (const DeviceMemory* memory : {&floats, &halves, &half_factors, &bfloats, &integers, &integer_scales,
                                     &integer_sums, &partials, &counters, &expanded, &sums}) {
    sum += memory->bytes();
  }
  return sum;
}

}  // namespace octavo::kernels::cuda
