// Which way a product goes, and how it is cut for that.
#include <algorithm>

#include "kernels/cuda/matmul/matmul_kernels.h"
#include "kernels/cuda/matmul/quantised.cuh"

namespace octavo::kernels::cuda {
namespace {

// Rows from which the library is worth its detours (expanding weights, a pass over the result). Quantised:
// expanding costs about 4.6 bytes of traffic for each weight, most of it in the second-level cache, which is
// the time of 128 rows on the tensor cores' slower, warp-wide instructions; and steps of 65 rows and more are
// filled up to 128.
constexpr std::int32_t kLibraryRows = 16, kLibraryRowsQuantised = 129;
constexpr std::int32_t kMostSplits = 16;
constexpr std::int64_t kFewestChunks = 4;  // of a split

// Enough blocks for the whole device, and no more: each costs a pass over its sums. Of float tiles.
std::int32_t splits_for(std::int64_t tiles, std::int64_t columns, const ProductOptions& options) {
  const std::int64_t chunks = num_pieces(columns, kTileColumns);
  const std::int64_t splits =
      std::min({wanted_blocks(options) / tiles, chunks / kFewestChunks, std::int64_t{kMostSplits}});
  return static_cast<std::int32_t>(std::max<std::int64_t>(splits, 1));
}

std::int32_t tile_rows_for(std::int32_t rows, std::int32_t most) {
  std::int32_t tile_rows = 8;
  while (tile_rows < rows && tile_rows < most) tile_rows *= 2;
  return tile_rows;
}

// Sections are a function of the columns alone, so that dividing them or not gives the same sums. They are
// divided where all their blocks run at once.
ProductPlan integer_tiles_plan(std::int32_t rows, std::int64_t outputs, std::int64_t columns,
                               const ProductOptions& options) {
  const std::int32_t tile_rows = tile_rows_for(rows, kMostTileRows);
  const std::int64_t tiles =
      std::int64_t{num_pieces(outputs, tile_outputs(true, tile_rows))} * num_pieces(rows, tile_rows);
  const std::int32_t sections = sections_of(padded_columns(columns)).count;
  const bool are_divided =
      tiles * sections <= std::int64_t{integer_tiles_at_once(tile_rows)} * options.num_multiprocessors;
  return {ProductPath::kTiles, tile_rows, are_divided ? sections : 1};
}

// Deterministic splits know the shape of the weights alone. Each part is a row of its own.
ProductPlan float_tiles_plan(std::int32_t rows, std::int64_t outputs, std::int64_t columns,
                             const ProductOptions& options) {
  const std::int32_t lines = rows * static_cast<std::int32_t>(options.half_parts),
                     tile_rows = tile_rows_for(lines, kMostTileRows);
  const std::int64_t tiles =
      options.deterministic
          ? num_pieces(outputs, kLeastTileOutputs)
          : std::int64_t{num_pieces(outputs, tile_outputs(false, tile_rows))} * num_pieces(lines, tile_rows);
  return {ProductPath::kTiles, tile_rows, splits_for(tiles, columns, options)};
}

// Every block of a launch prepares the row again: by estimate 1.5 us of an H100 for 4,096 numbers and 5 for
// 14,336 (RESOURCES.md), where a launch of its own takes 4 to 8; of more rows it would be the dearer way. And
// the row must leave room for as many blocks as registers do.
constexpr std::int64_t kMostOwnNumbers = 16 * 1024;
constexpr std::int64_t kBlockBytes = 1024;  // that a block takes of shared memory beside its own

bool prepares_own_row(TensorType type, std::int32_t rows, std::int64_t columns,
                      const ProductOptions& options) {
  const std::int64_t stride = padded_columns(columns);
  return rows == 1 && stride <= kMostOwnNumbers &&
         kVectorBlocksAtOnce * (own_row_bytes(type, stride) + kBlockBytes) <=
             options.multiprocessor_shared_bytes;
}

// Every device has 64 KiB of shared memory for a block, of which some keep 1. Tiles take what does not fit,
// with the same bits.
constexpr std::int64_t kMostVectorBytes = 63 * 1024;

bool fits_vectors(TensorType type, std::int32_t rows, std::int64_t columns) {
  const std::int32_t most = is_quantised(type) ? kMostVectorRowsQuantised : kMostVectorRows;
  return rows <= most && vector_bytes(type, rows, padded_columns(columns)) <= kMostVectorBytes;
}

ProductPlan vector_plan(TensorType type, std::int32_t rows, std::int64_t columns,
                        const ProductOptions& options) {
  ProductPlan plan;
  plan.has_own_row = prepares_own_row(type, rows, columns, options);
  return plan;
}

}  // namespace

ProductPlan tiles_plan(TensorType type, std::int32_t rows, std::int64_t outputs, std::int64_t columns,
                       const ProductOptions& options) {
  return is_quantised(type) ? integer_tiles_plan(rows, outputs, columns, options)
                            : float_tiles_plan(rows, outputs, columns, options);
}

ProductPlan plan_product(TensorType type, std::int32_t rows, std::int64_t outputs, std::int64_t columns,
                         const ProductOptions& options) {
  const bool has_library = uses_library(options);
  if (type == TensorType::kF32) {
    if (has_library && rows > kVectorRows) return {ProductPath::kLibrary};
    return vector_plan(type, rows, columns, options);
  }
  if (options.deterministic && !is_quantised(type)) return tiles_plan(type, rows, outputs, columns, options);
  if (fits_vectors(type, rows, columns)) return vector_plan(type, rows, columns, options);
  const std::int32_t library_rows = is_quantised(type) ? kLibraryRowsQuantised : kLibraryRows;
  if (has_library && rows >= library_rows) return {ProductPath::kLibrary};
  return tiles_plan(type, rows, outputs, columns, options);
}

std::int32_t deal_tiles(ProductTargets& targets, std::int64_t outputs_of_tile, std::int32_t row_tiles) {
  if (targets.is_gate_up != 0) outputs_of_tile /= 2;
  std::int32_t num_blocks = 0, num_partials = 0;
  for (int i = 0; i < (targets.is_gate_up != 0 ? 1 : targets.count); ++i) {
    ProductTarget& target = targets.targets[i];
    target.num_tiles = static_cast<std::int32_t>(num_pieces(target.planes.rows, outputs_of_tile));
    target.first_block = num_blocks;
    target.first_partial = num_partials;
    num_blocks += target.num_tiles * target.splits;
    if (target.splits > 1) num_partials += target.num_tiles * target.splits * row_tiles;
  }
  return num_blocks;
}

}  // namespace octavo::kernels::cuda
