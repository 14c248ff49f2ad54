// Between the files of matmul: what the kernels of products take as arguments, and who starts them. Not for
// others; they use matmul.h. All pointers are to device memory.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "engine/base/result.h"
#include "kernels/cuda/matmul/matmul.h"
#include "kernels/cuda/matmul/weight_planes.h"
#include "kernels/cuda/runtime/device.h"
#include "kernels/cuda/runtime/device_names.h"

namespace octavo::kernels::cuda {

// The input rows, gathered and normalised, in the forms that the products of one call need. Columns are
// filled up with zeros. Of activations in two 16-bit numbers each part is a row to a product; whoever stores
// the results adds those of neighbours.
struct PreparedRows {
  std::int32_t num_rows = 0;
  std::int32_t num_parts = 1;  // 16-bit numbers that stand for one activation: their sum
  std::int64_t stride = 0;     // columns, filled up
  float* floats = nullptr;     // [rows][stride]
  // Float16 [rows][parts][stride], those of row r times 1 / half_factors[r], a power of two
  std::uint16_t* halves = nullptr;
  float* half_factors = nullptr;     // [rows]
  std::uint16_t* bfloats = nullptr;  // bfloat16 [rows][parts][stride]
  // Activation::kInt16: 256 * high + low, both signed bytes: [rows][high 0..15, high 16..31, low 0..15,
  // low 16..31][groups] of 16 bytes each, so that a warp's loads stand side by side; scales, and sums of the
  // first and of the last 16 integers, [groups][scale_stride], zeros behind the last row.
  std::int64_t scale_stride = 0;  // rows filled up to a multiple of 8
  uint4* integers = nullptr;
  float* integer_scales = nullptr;
  int2* integer_sums = nullptr;
};

// Which of them to make.
enum RowForms : unsigned { kFloatRows = 1, kHalfRows = 2, kBfloatRows = 4, kIntegerRows = 8 };

// A ProductInput as an argument, without gaps.
struct RowSource {
  const float* data = nullptr;
  const std::int32_t* indices = nullptr;
  const float* norm = nullptr;
  const float* norm_bias = nullptr;
  std::int64_t stride = 0, columns = 0;
  float norm_epsilon = 0.0f;
  std::uint32_t is_centred = 0;
};
RowSource source_of(const ProductInput& input, std::int64_t columns);

void prepare_rows(Stream& stream, const RowSource& source, unsigned forms, const PreparedRows& rows);

// One matrix of a launch. A launch's blocks are dealt to its targets in order, from `first_block` on.
struct ProductTarget {
  WeightPlanes planes;
  const float* bias = nullptr;
  float* out = nullptr;
  std::int64_t out_stride = 0;
  Epilogue epilogue = Epilogue::kStore;  // of gate and up: the activation, of the first target
  // No byte of an argument is left to chance: the emulation looks for addresses
  std::uint8_t padding[3] = {};
  std::int32_t first_block = 0;
  std::int32_t num_tiles = 0;  // tiles: of tile_outputs() outputs (half as many pairs of gate and up)
  std::int32_t splits = 1;
  std::int32_t first_partial = 0;  // place of its sums among the launch's, in tiles
  std::int32_t more_padding = 0;
};

inline constexpr int kMostTargets = 4;

struct ProductTargets {
  ProductTarget targets[kMostTargets];
  std::int32_t count = 0;
  // Targets 0 and 1 are gate and up; `out` is the gate's, blocks are counted once
  std::int32_t is_gate_up = 0;
};

// Shared by both kernels.
inline constexpr int kVectorRows = 8;                                    // most rows of one launch
inline constexpr int kMostVectorRows = 1, kMostVectorRowsQuantised = 4;  // more are quicker on tensor cores
inline constexpr int kVectorWarps = 4;                                   // of a block
inline constexpr int kVectorOutputs = 2;  // of a warp: they share what is read of the activations
inline constexpr int kTileThreads = 128, kTileColumns = 128;
inline constexpr int kMostTileRows = 64, kLeastTileOutputs = 64, kMostTileOutputs = 128;

// Of a block, as far as there are registers for its sums: integers have two for each output, of a section and
// of all sections before. `tile_rows`: 8, 16, 32 or 64.
constexpr int tile_outputs(bool has_integers, int tile_rows) {
  return has_integers && tile_rows == 32 ? kMostTileOutputs : kLeastTileOutputs;
}
constexpr int integer_tiles_at_once(int tile_rows) { return tile_rows < 32 ? 4 : 2; }

// How an output of quantised weights is summed up, by every kernel and for every number of rows: a pair of
// groups in one chain from zero on, the sums of a section's pairs one after the other, then those of the
// sections. Sections are what blocks of tiles divide among them.
inline constexpr std::int64_t kMostSections = 8, kFewestSectionPairs = 16;

struct Sections {
  std::int64_t pairs;   // of a row
  std::int64_t length;  // pairs of a section, but of the last
  std::int32_t count;
};

__host__ __device__ constexpr Sections sections_of(std::int64_t stride) {
  const std::int64_t pairs = stride / kPairColumns, most = pairs / kFewestSectionPairs,
                     wanted = most < 1               ? 1
                              : most < kMostSections ? most
                                                     : kMostSections;
  const std::int64_t length = (pairs + wanted - 1) / wanted;
  return {pairs, length, static_cast<std::int32_t>((pairs + length - 1) / length)};
}

// That run at once on a multiprocessor where registers alone decide.
inline constexpr int kVectorBlocksAtOnce = 4;

// REQUIRES: all targets have the type; at most kVectorRows rows; integers (quantised types) or floats are
// prepared.
void launch_vector(Stream& stream, TensorType type, const ProductTargets& targets, const PreparedRows& rows);
// The same of one row that is not prepared, by at most `most_blocks` blocks, each of which prepares it for
// itself. Of `rows` the stride.
void launch_vector_with_own_row(Stream& stream, TensorType type, const ProductTargets& targets,
                                const PreparedRows& rows, const RowSource& source, std::int64_t most_blocks);
// Shared memory of one of these blocks, and of one whose rows are prepared.
std::int64_t own_row_bytes(TensorType type, std::int64_t stride);
std::int64_t vector_bytes(TensorType type, std::int32_t rows, std::int64_t stride);

// Sums of parts of the inner dimension: the last block of a tile to arrive adds them up, in order.
struct SplitScratch {
  float* partials = nullptr;
  std::uint32_t* counters = nullptr;  // zero between launches
};

// Of float16 and bfloat16 weights. REQUIRES: halves are prepared (bfloats for bfloat16 weights).
void launch_float_tiles(Stream& stream, TensorType type, int tile_rows, const ProductTargets& targets,
                        const PreparedRows& rows, const SplitScratch& scratch);

// Of quantised weights. REQUIRES: integers are prepared; splits are 1 or those of sections_of(); row 0 is one
// of a multiple of eight.
void launch_integer_tiles(Stream& stream, TensorType type, int tile_rows, const ProductTargets& targets,
                          const PreparedRows& rows, const SplitScratch& scratch);

// ---- product_plan.cu: beside plan_product

inline constexpr std::int32_t kSplitRows =
    128;  // at once, where a fixed number of splits meets any number of rows

// Of one product's tiles: enough for the whole device.
constexpr std::int64_t wanted_blocks(const ProductOptions& options) {
  return 2 * std::int64_t{options.num_multiprocessors};
}
constexpr bool uses_library(const ProductOptions& options) {
  return options.library != nullptr && !options.deterministic;
}
// By tiles, whatever the number of rows. Gate and up in one launch have twice the outputs of each.
ProductPlan tiles_plan(TensorType type, std::int32_t rows, std::int64_t outputs, std::int64_t columns,
                       const ProductOptions& options);
// Deals blocks to the targets of a launch of tiles. The number of blocks.
std::int32_t deal_tiles(ProductTargets& targets, std::int64_t outputs_of_tile, std::int32_t row_tiles);

// ---- the library, and what stands around its products

// Expands weight rows [first, first + count) of a quantised matrix to float16 [count][stride].
void launch_expand(Stream& stream, const WeightPlanes& planes, std::int64_t first, std::int64_t count,
                   std::uint16_t* out);

// What becomes of the library's sums of one product: out = epilogue(factors[row] * sum + bias). A gate is
// multiplied with what stands in `out`: out = epilogue(...) * (up_factors[row] * out + up_bias).
struct FinishTarget {
  const float* sums = nullptr;     // [rows][parts][outputs], which are added; of one part it may be `out`
  const float* factors = nullptr;  // [rows], or null: 1
  const float* bias = nullptr;     // [outputs], or null
  const float* up_factors = nullptr;
  const float* up_bias = nullptr;
  float* out = nullptr;
  std::int64_t sums_stride = 0, out_stride = 0, outputs = 0;
  std::int32_t num_parts = 1;
  std::int32_t first_block = 0;
  Epilogue epilogue = Epilogue::kStore;
  bool is_gate = false;
  std::uint8_t padding[6] = {};
};

struct FinishTargets {
  FinishTarget targets[kMostTargets];
  std::int32_t count = 0;
  std::int32_t padding = 0;
};
// REQUIRES: targets do not depend on each other.
void launch_finish(Stream& stream, const FinishTargets& targets, std::int32_t num_rows);

// All of a product that the choice of an algorithm depends on. Both operands of `type` (kF16, kBF16, kF32).
struct LibraryShape {
  TensorType type = TensorType::kF16;
  std::int64_t outputs = 0, rows = 0, columns = 0, out_stride = 0;
  auto operator<=>(const LibraryShape&) const = default;
};

// out[rows][outputs] = (adds: out +) activations[rows][columns] * weights[outputs][columns], sums in float.
// Operands have rows `columns` elements apart, `out` has rows out_stride apart.
struct LibraryProduct {
  LibraryShape shape;
  const void* weights = nullptr;
  const void* activations = nullptr;
  float* out = nullptr;
  bool adds = false;
};

// Products of cuBLASLt on one stream. Algorithms are chosen for a few numbers of rows, the powers of two from
// 16 on, and serve any number up to theirs. What the library refuses, be it to find an algorithm or to start
// one, it is not asked for again.
class LibraryProducts {
 public:
  static Result<std::unique_ptr<LibraryProducts>> create(cublasLtHandle_t library);
  virtual ~LibraryProducts() = default;
  virtual std::int64_t scratch_bytes() const = 0;
  // Whether there is an algorithm for these products.
  virtual bool serves(const LibraryShape& shape) = 0;
  // False: refused; nothing was started. An error of the device stays, and shows in what is started next.
  virtual bool multiply(Stream& stream, const LibraryProduct& product) = 0;
  virtual std::int64_t num_refused() const = 0;  // shapes, of so few numbers of rows
};

}  // namespace octavo::kernels::cuda
