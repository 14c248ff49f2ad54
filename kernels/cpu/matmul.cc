#include "kernels/cpu/matmul.h"

#include <algorithm>
#include <span>
#include <utility>

#include "engine/base/check.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/pack.h"

namespace octavo::kernels::cpu {

namespace portable {
extern const FloatMatmulTable kFloatMatmulTable;
extern const IntegerMatmulTable kIntegerMatmulTable;
}  // namespace portable
namespace avx2 {
extern const FloatMatmulTable kFloatMatmulTable;
extern const IntegerMatmulTable kIntegerMatmulTable;
}  // namespace avx2
namespace avx_vnni {
extern const IntegerMatmulTable kIntegerMatmulTable;
}
namespace avx512 {
extern const FloatMatmulTable kFloatMatmulTable;
extern const IntegerMatmulTable kIntegerMatmulTable;
}  // namespace avx512
namespace avx512_vnni {
extern const IntegerMatmulTable kIntegerMatmulTable;
}
namespace amx {
extern const BlockMatmulTable kBlockMatmulTable;
}

const FloatMatmulTable& float_matmul_table(InstructionSet isa) {
  switch (isa) {
#if defined(OCTAVO_HAS_512_BITS)
    case InstructionSet::kAmx:
    case InstructionSet::kAvx512Vnni:
    case InstructionSet::kAvx512: return avx512::kFloatMatmulTable;
#endif
#if defined(OCTAVO_HAS_256_BITS)
    case InstructionSet::kAvxVnni:
    case InstructionSet::kAvx2: return avx2::kFloatMatmulTable;
#endif
    default: return portable::kFloatMatmulTable;
  }
}

const IntegerMatmulTable& integer_matmul_table(InstructionSet isa) {
  switch (isa) {
#if defined(OCTAVO_HAS_AVX512_VNNI)
    case InstructionSet::kAmx:
    case InstructionSet::kAvx512Vnni: return avx512_vnni::kIntegerMatmulTable;
#endif
#if defined(OCTAVO_HAS_AVX512)
    case InstructionSet::kAvx512: return avx512::kIntegerMatmulTable;
#endif
#if defined(OCTAVO_HAS_AVX_VNNI)
    case InstructionSet::kAvxVnni: return avx_vnni::kIntegerMatmulTable;
#endif
#if defined(OCTAVO_HAS_AVX2)
    case InstructionSet::kAvx2: return avx2::kIntegerMatmulTable;
#endif
    default: return portable::kIntegerMatmulTable;
  }
}

const BlockMatmulTable* block_matmul_table([[maybe_unused]] InstructionSet isa) {
#if defined(OCTAVO_HAS_AMX)
  if (isa == InstructionSet::kAmx) return &amx::kBlockMatmulTable;
#endif
  return nullptr;
}

namespace {

ActivationForm form_of(Activation activation, TensorType type) {
  if (!meets_integers(type)) return ActivationForm::kFloat;
  switch (activation) {
    case Activation::kF32: return ActivationForm::kFloat;
    case Activation::kInt8: return ActivationForm::kInt8;
    case Activation::kInt16: return ActivationForm::kInt16;
  }
  return ActivationForm::kFloat;
}

const TileKernels& kernels_of(InstructionSet isa, ActivationForm form) {
  switch (form) {
    case ActivationForm::kFloat: break;
    case ActivationForm::kInt8: return integer_matmul_table(isa).int8;
    case ActivationForm::kInt16: return integer_matmul_table(isa).int16;
  }
  return float_matmul_table(isa).f32;
}

const BlockKernels* blocks_of(InstructionSet isa, ActivationForm form, PanelFormat format) {
  const BlockMatmulTable* const table = block_matmul_table(isa);
  if (table == nullptr || form == ActivationForm::kFloat) return nullptr;
  const BlockKernels& kernels = form == ActivationForm::kInt8 ? table->int8 : table->int16;
  const PanelFormat multiplied = is_always_expanded(format) ? expanded_format(format) : format;
  return kernels.blocks[static_cast<int>(multiplied)] == nullptr ? nullptr : &kernels;
}

}  // namespace

Result<std::unique_ptr<PackedMatrix>> pack_matrix(const MatrixSource& source, Activation activation,
                                                  InstructionSet isa, ThreadPool& pool, PackedMemory& memory,
                                                  const ColumnOrder* column_order) {
  OCTAVO_CHECK((column_order == nullptr) == source.column_order.empty(), "an order of columns gets lost");
  const PanelPlan plan = plan_panels(source.type, source.columns);
  std::unique_ptr<PackedMatrix> matrix(new PackedMatrix(source.rows, source.columns));
  matrix->format_ = plan.format;
  matrix->activation_form_ = form_of(activation, source.type);
  matrix->panel_bytes_ = plan.panel_bytes;
  matrix->scale_ = source.scale;
  matrix->column_order_ = column_order;
  matrix->kernels_ = &kernels_of(isa, matrix->activation_form_);
  matrix->blocks_ = blocks_of(isa, matrix->activation_form_, plan.format);
  if (const int index = static_cast<int>(plan.format) - kFirstExpandable; index >= 0)
    matrix->expand_ = float_matmul_table(isa).expand[index];
  OCTAVO_TRY(std::byte* const data, memory.allocate(matrix->memory_bytes()));
  pool.parallel_for(matrix->num_panels(), [&](std::int64_t panel, std::int32_t) {
    pack_panel(source, panel, data + panel * plan.panel_bytes);
  });
  matrix->data_ = data;
  return matrix;
}

namespace {

// While a block of panels stays in the first-level cache, the rows of a chunk pass by from the second-level
// one, and the next block comes from memory. Long rows are multiplied piece by piece, so that a chunk has
// enough rows for what reading the weights costs; their sums wait in `out`.
constexpr std::int64_t kBlockBytes = 16 << 10;
// Of floats that 16-bit ones were expanded to. Two panels at once need so little of them for each
// multiply-add that the second-level cache keeps up; smaller blocks would mean shorter pieces.
constexpr std::int64_t kFloatBlockBytes = 64 << 10;
constexpr std::int64_t kChunkBytes = 256 << 10;
// Of a row of activations, and half of it for two panels at once
constexpr std::int64_t kMostPieceBytes = 4 << 10;
// From what a single tile reads, one long stream, to what it asks for. No multiple of 4 KiB: that far ahead
// stands what the caches keep in the places of what is read now (Zen 4, 2 rows of Q6_K: 1.4 of the time).
constexpr std::int64_t kStreamAheadBytes = 26 << 10;
// Of panels that blocks of rows pass by, and how many of them at once.
constexpr std::int64_t kRowBlockBytes = 64 << 10, kPanelsInBlocks = 2;
// What is asked for farther ahead would be gone from the caches again; long rows are read well without.
constexpr std::int64_t kMostAheadBytes = 256 << 10;
// More tiles than these would convert 16-bit floats so often that expanding them first is quicker (Zen 4:
// 0.95 of the time with 64 rows, 0.92 with 512; 1.05 with 16).
constexpr std::int64_t kFewFloatTiles = 3;

struct Range {
  std::int64_t first, last;
};

// Part `index` of `count` nearly equal parts.
Range part_of(Range whole, std::int64_t index, std::int64_t count) {
  const std::int64_t size = whole.last - whole.first;
  return {whole.first + size * index / count, whole.first + size * (index + 1) / count};
}

std::int64_t divide_up(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

const void* line_at(const PackedMatrix& weights, const ActivationRows& activations, std::int64_t index) {
  switch (weights.activation_form()) {
    case ActivationForm::kFloat: return activations.float_lines() + index;
    case ActivationForm::kInt8: return activations.int8_lines() + index;
    case ActivationForm::kInt16: return activations.int16_lines() + index;
  }
  return nullptr;
}

std::int64_t bytes_per_row(const PackedMatrix& weights) {
  const std::int64_t num_groups = weights.columns() / kGroupColumns;
  switch (weights.activation_form()) {
    case ActivationForm::kFloat: break;
    case ActivationForm::kInt8: return num_groups * static_cast<std::int64_t>(sizeof(Int8Line));
    case ActivationForm::kInt16: return num_groups * static_cast<std::int64_t>(sizeof(Int16Line));
  }
  return weights.columns() * static_cast<std::int64_t>(sizeof(float));
}

std::int64_t bytes_of_columns(const PackedMatrix& weights, std::int64_t columns) {
  return columns == weights.columns() ? weights.panel_bytes()
                                      : weights.panel_bytes() * columns / weights.columns();
}

// Whether rows are multiplied in blocks instead of tiles.
bool takes_blocks(const PackedMatrix& weights, std::int64_t num_rows) {
  return weights.blocks() != nullptr && num_rows >= weights.blocks()->least_rows;
}

// Of a tile or a block. As few stream the panels, one after the other; more have chunks that pass by some
// panels' pieces.
std::int64_t most_rows_at_once(const PackedMatrix& weights, std::int64_t num_rows) {
  return takes_blocks(weights, num_rows) ? weights.blocks()->most_rows : weights.kernels().max_rows;
}

// Whether panels are expanded for a chunk of so many rows: many tiles would each take them apart.
bool expands(const PackedMatrix& weights, std::int64_t num_rows) {
  const TileKernels& kernels = weights.kernels();
  if (weights.expand() == nullptr) return false;
  if (is_always_expanded(weights.format())) return true;
  if (takes_blocks(weights, num_rows)) return false;
  const std::int64_t max_tiles = is_quantised(weights.format()) ? kernels.max_plane_tiles : kFewFloatTiles;
  return num_rows > max_tiles * kernels.max_rows;
}

// Of a panel as tiles read it.
std::int64_t tile_bytes_of_columns(const PackedMatrix& weights, bool expanded, std::int64_t columns) {
  return expanded ? bytes_of_columns(expanded_format(weights.format()), columns)
                  : bytes_of_columns(weights, columns);
}

// Lines of activations for that many columns.
std::int64_t lines_of_columns(const PackedMatrix& weights, std::int64_t columns) {
  return columns / (weights.activation_form() == ActivationForm::kFloat ? kGroupColumns / 2 : kGroupColumns);
}

struct BlockPlan {
  std::int64_t piece_columns;
  std::int64_t chunk_rows;
  std::int64_t block_panels;
  std::int64_t ahead_bytes;  // from what tiles read to what they ask for meanwhile; 0: nothing
};

// What a panel can be cut into.
std::int64_t piece_unit(const PackedMatrix& weights) {
  return is_quantised(weights.format()) ? kSuperGroups * kGroupColumns : kGroupColumns;
}

// Columns of nearly equal pieces, each a multiple of the unit and short enough for a block to be expanded.
std::int64_t plan_piece(const PackedMatrix& weights, bool expanded, std::int64_t num_pieces,
                        std::int64_t together) {
  const std::int64_t unit = piece_unit(weights);
  const std::int64_t wanted =
      divide_up(divide_up(weights.columns(), std::max<std::int64_t>(1, num_pieces)), unit);
  const std::int64_t block_bytes = is_quantised(weights.format()) ? kBlockBytes : kFloatBlockBytes;
  const std::int64_t most =
      expanded ? block_bytes / (together * tile_bytes_of_columns(weights, expanded, unit)) : wanted;
  return std::min(std::min(wanted, most) * unit, weights.columns());
}

// Where there is a single row, some machines follow the stream of panels by themselves, unless taking bits
// apart lets them fall behind, as the arithmetic of more rows does (Zen 4, Q6_K: 1.5 times).
bool asks_ahead(const PackedMatrix& weights, std::int64_t num_rows) {
  return num_rows > 1 || !reads_streams_by_itself() ||
         (is_quantised(weights.format()) && weights.expand() != nullptr);
}

// From what a single tile reads to what it asks for; 0: nothing.
std::int64_t stream_ahead_bytes(const PackedMatrix& weights, std::int64_t num_rows, std::int64_t together) {
  if (!asks_ahead(weights, num_rows)) return 0;
  if (together == 1) return kStreamAheadBytes;
  // Panels that are read together stand in the way of each other's streams.
  const std::int64_t bytes = together * weights.panel_bytes();
  return bytes <= kMostAheadBytes ? bytes : 0;
}

// A single tile takes the panels one after the other as they come from memory, as many columns at once as the
// first-level cache holds expanded.
BlockPlan plan_tile(const PackedMatrix& weights, std::int64_t num_rows, std::int64_t num_panels,
                    std::int64_t together) {
  const std::int64_t ahead_bytes = stream_ahead_bytes(weights, num_rows, together);
  if (!expands(weights, num_rows)) return {weights.columns(), num_rows, num_panels, ahead_bytes};
  return {plan_piece(weights, /*expanded=*/true, /*num_pieces=*/1, together), num_rows, together,
          ahead_bytes};
}

// Chunks are blocks of nearly equal height, pieces as long as a block's lines may be.
BlockPlan plan_row_blocks(const PackedMatrix& weights, std::int64_t num_rows) {
  const BlockKernels& blocks = *weights.blocks();
  const std::int64_t chunk_rows = divide_up(num_rows, divide_up(num_rows, blocks.most_rows));
  const std::int64_t unit = piece_unit(weights);
  const std::int64_t num_units =
      std::max<std::int64_t>(1, blocks.most_lines / chunk_rows / (unit / kGroupColumns));
  const std::int64_t piece_columns = std::min(num_units * unit, weights.columns());
  const bool expanded = expands(weights, num_rows);
  const std::int64_t piece_bytes =
      std::max<std::int64_t>(1, tile_bytes_of_columns(weights, expanded, piece_columns));
  const std::int64_t block_panels =
      std::max<std::int64_t>(1, kRowBlockBytes / piece_bytes / kPanelsInBlocks * kPanelsInBlocks);
  // The panels after those that are read now
  const std::int64_t ahead_bytes = kPanelsInBlocks * weights.panel_bytes();
  return {piece_columns, chunk_rows, block_panels, ahead_bytes};
}

BlockPlan plan_blocks(const PackedMatrix& weights, std::int64_t num_rows, std::int64_t num_panels) {
  if (takes_blocks(weights, num_rows)) return plan_row_blocks(weights, num_rows);
  const std::int64_t max_rows = weights.kernels().max_rows;
  const std::int64_t together = weights.activation_form() == ActivationForm::kFloat ? kPanelsTogether : 1;
  if (num_rows <= max_rows) return plan_tile(weights, num_rows, num_panels, together);
  const bool expanded = expands(weights, num_rows);
  const std::int64_t row_bytes = std::max<std::int64_t>(1, bytes_per_row(weights));
  const std::int64_t piece_columns =
      plan_piece(weights, expanded, divide_up(row_bytes * together, kMostPieceBytes), together);
  const std::int64_t tile_bytes =
      std::max<std::int64_t>(1, row_bytes * piece_columns / weights.columns() * max_rows);
  const std::int64_t chunk_rows = std::max<std::int64_t>(1, kChunkBytes / tile_bytes) * max_rows;
  const std::int64_t piece_bytes =
      std::max<std::int64_t>(1, tile_bytes_of_columns(weights, expanded, piece_columns));
  const std::int64_t block_panels = std::max(together, kBlockBytes / piece_bytes / together * together);
  const bool is_kept = bytes_of_columns(weights, piece_columns) * block_panels <= kMostAheadBytes;
  return {piece_columns, chunk_rows, block_panels, is_kept ? block_panels * weights.panel_bytes() : 0};
}

// Some columns of the panels of a block, as tiles read them.
struct BlockWeights {
  const std::byte* start;
  std::int64_t panel_bytes;
};

// Panels that are to be expanded are so into `room`; others are read where they lie.
BlockWeights block_weights(const PackedMatrix& weights, bool expanded, Range columns, Range panels,
                           std::span<std::byte> room) {
  const std::int64_t first_byte = bytes_of_columns(weights, columns.first);
  if (!expanded) return {weights.panel(panels.first) + first_byte, weights.panel_bytes()};
  const std::int64_t num_columns = columns.last - columns.first;
  const std::int64_t panel_bytes = tile_bytes_of_columns(weights, expanded, num_columns);
  OCTAVO_CHECK((panels.last - panels.first) * panel_bytes <= static_cast<std::int64_t>(room.size()),
               "%lld columns of %lld panels", static_cast<long long>(num_columns),
               static_cast<long long>(panels.last - panels.first));
  for (std::int64_t panel = panels.first; panel < panels.last; ++panel) {
    weights.expand()(weights.panel(panel) + first_byte, num_columns,
                     room.data() + (panel - panels.first) * panel_bytes);
  }
  return {room.data(), panel_bytes};
}

// All rows of a chunk times some columns of the panels of a block, in tiles of nearly equal height. Together
// these ask for what stands `ahead_bytes` later.
void multiply_block(const PackedMatrix& weights, const ActivationRows& activations, Range rows, Range columns,
                    Range panels, std::int64_t ahead_bytes, MatrixView out) {
  const TileKernels& kernels = weights.kernels();
  const std::int64_t first_output = panels.first * kPanelRows;
  const std::int64_t num_columns = columns.last - columns.first;
  const bool is_block = takes_blocks(weights, rows.last - rows.first);
  const std::int64_t num_tiles =
      divide_up(rows.last - rows.first, most_rows_at_once(weights, rows.last - rows.first));
  const std::int64_t bytes = bytes_of_columns(weights, num_columns);
  const std::int64_t num_steps = std::max<std::int64_t>(
      1, divide_up(num_columns, is_quantised(weights.format()) ? kGroupColumns : kGroupColumns / 2));
  const std::byte* const ahead =
      weights.panel(panels.first) + bytes_of_columns(weights, columns.first) + ahead_bytes;
  const std::int64_t first_line = lines_of_columns(weights, columns.first) * activations.row_stride();
  alignas(64) std::byte room[kFloatBlockBytes];
  const bool expanded = expands(weights, rows.last - rows.first);
  const PanelFormat format = expanded ? expanded_format(weights.format()) : weights.format();
  const BlockWeights block = block_weights(weights, expanded, columns, panels, room);
  for (std::int64_t tile = 0; tile < num_tiles; ++tile) {
    const Range tile_rows = part_of(rows, tile, num_tiles);
    const std::int64_t num_rows = tile_rows.last - tile_rows.first;
    const auto multiply = is_block ? weights.blocks()->blocks[static_cast<int>(format)]
                                   : kernels.tiles[static_cast<int>(format)][num_rows - 1];
    multiply({.panel = block.start,
              .panel_bytes = block.panel_bytes,
              .columns = num_columns,
              .num_rows = num_rows,
              .num_outputs = std::min(panels.last * kPanelRows, weights.rows()) - first_output,
              .lines = line_at(weights, activations, first_line + tile_rows.first),
              .row_stride = activations.row_stride(),
              .out = out.row(tile_rows.first) + first_output,
              .out_stride = out.stride,
              .continues = columns.first > 0,
              .out_scale = columns.last == weights.columns() ? weights.scale() : 1.0f,
              .ahead = ahead + bytes * tile / num_tiles,
              .ahead_step = ahead_bytes > 0 ? bytes / (num_steps * num_tiles) : 0,
              .ahead_panel_bytes = weights.panel_bytes()});
  }
}

// Calls function(range) for each `step` of the whole, once for an empty one.
template <class Function>
void for_each_piece(Range whole, std::int64_t step, const Function& function) {
  std::int64_t first = whole.first;
  do {
    function(Range{first, std::min(first + step, whole.last)});
    first += step;
  } while (first < whole.last);
}

}  // namespace

void multiply_panels(const PackedMatrix& weights, const ActivationRows& all_orders, RowRange rows,
                     std::int64_t first_panel, std::int64_t last_panel, MatrixView out) {
  const ActivationRows& activations = all_orders.in_order(weights.column_order());
  OCTAVO_CHECK(activations.columns() == weights.columns(), "%lld, %lld",
               static_cast<long long>(activations.columns()), static_cast<long long>(weights.columns()));
  OCTAVO_CHECK(includes(activations.forms(), weights.activation_form()), "form %d",
               static_cast<int>(activations.forms()));
  OCTAVO_CHECK(rows.first >= 0 && rows.first <= rows.last && rows.last <= activations.rows(),
               "rows %lld to %lld", static_cast<long long>(rows.first), static_cast<long long>(rows.last));
  OCTAVO_CHECK(out.rows >= rows.last && out.columns == weights.rows(), "out is %lld x %lld",
               static_cast<long long>(out.rows), static_cast<long long>(out.columns));
  OCTAVO_CHECK(first_panel >= 0 && first_panel <= last_panel && last_panel <= weights.num_panels(),
               "%lld to %lld", static_cast<long long>(first_panel), static_cast<long long>(last_panel));
  if (first_panel == last_panel) return;
  const std::int64_t num_rows = rows.last - rows.first;
  const BlockPlan plan = plan_blocks(weights, num_rows, last_panel - first_panel);
  const Range all_columns = {0, weights.columns()}, all_panels = {first_panel, last_panel};
  for (std::int64_t row = rows.first; row < rows.last; row += plan.chunk_rows) {
    const Range chunk = {row, std::min(row + plan.chunk_rows, rows.last)};
    const auto multiply = [&](Range columns, Range panels) {
      multiply_block(weights, activations, chunk, columns, panels, plan.ahead_bytes, out);
    };
    if (num_rows <= most_rows_at_once(weights, num_rows)) {
      for_each_piece(all_panels, plan.block_panels, [&](Range panels) {
        for_each_piece(all_columns, plan.piece_columns, [&](Range columns) { multiply(columns, panels); });
      });
    } else {
      for_each_piece(all_columns, plan.piece_columns, [&](Range columns) {
        for_each_piece(all_panels, plan.block_panels, [&](Range panels) { multiply(columns, panels); });
      });
    }
  }
}

}  // namespace octavo::kernels::cpu
