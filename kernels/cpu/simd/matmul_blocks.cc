// Integer products of many rows by AMX. A group of a panel, [quads][16 rows][4 columns], is what a tile
// register wants to find as columns, and a group of 16 rows' activations lie in lines of one distance: so one
// instruction makes the sums of 16 rows and 16 outputs, exact as everybody's, and vectors scale and add them
// up in the order of matmul.h. 16-bit activations are two signed bytes each (activation_rows.h), which meet
// the weights apart: 256 * high + low is exact too.
//
// Order of the loops: two panels, then their groups, then the rows. A group is taken apart once for all
// rows; the rows' accumulators wait in the first-level cache, from where a fused multiply-add reads them at
// no cost, and the activations in the second-level one.
#include "kernels/cpu/simd.h"
#include "kernels/cpu/simd/matmul_tiles.h"
#include "kernels/cpu/simd/tile_registers.h"

namespace octavo::kernels::cpu::OCTAVO_ISA {
namespace {

// Fewer would need tiles of another height. 17 rows run as 32 and are still quicker than by vectors.
constexpr int kLeastRows = kTileRegisterRows, kMostRows = 64;
// Of activations, so that they stay in the second-level cache: 64 bytes each, or 80.
constexpr int kMostLines = 4096;
constexpr int kMostPanels = 2;

// Registers: sums[plane], a plane of rows each, columns[panel][scale].
constexpr int kFirstRowsTile = 2, kFirstColumnsTile = 4;

// Rows of a block, in tiles of which the last one repeats rows of the one before if it has to.
struct BlockRows {
  int count;

  OCTAVO_INLINE_MEMBER int num_tiles() const { return (count + kTileRegisterRows - 1) / kTileRegisterRows; }
  OCTAVO_INLINE_MEMBER int first(int tile) const { return tile * kTileRegisterRows - num_repeated(tile); }
  OCTAVO_INLINE_MEMBER int num_repeated(int tile) const {
    const int end = (tile + 1) * kTileRegisterRows;
    return end > count ? end - count : 0;
  }
};

// ---- a group of the rows as registers want to load it

// Of 8 bits: where the lines lie.
struct Int8Rows {
  static constexpr int kPlanes = 1;
  static constexpr std::int64_t kStride = sizeof(Int8Line);

  OCTAVO_INLINE_MEMBER void prepare(const Int8Line* lines, int) { first_ = lines->values; }
  OCTAVO_INLINE_MEMBER const std::int8_t* values(int row) const { return first_ + row * kStride; }

 private:
  const std::int8_t* first_;
};

// Of 16 bits: high and low bytes, both signed, 32 of each, in the order of the columns.
struct Int16Rows {
  static constexpr int kPlanes = 2;
  static constexpr std::int64_t kStride = 64, kPlaneBytes = 32;

  OCTAVO_INLINE_MEMBER void prepare(const Int16Line* lines, int num_rows) {
    for (int row = 0; row < num_rows; ++row) split(lines[row], bytes_[row]);
  }
  OCTAVO_INLINE_MEMBER const std::int8_t* values(int row) const { return bytes_[row]; }

 private:
  // The bytes of a line's words, whose order Int16Line tells.
  alignas(64) static constexpr std::uint8_t kPlaces[64] = {
      1,  5,  3,  7,  9,  13, 11, 15, 17, 21, 19, 23, 25, 29, 27, 31, 33, 37, 35, 39, 41, 45,
      43, 47, 49, 53, 51, 55, 57, 61, 59, 63, 0,  4,  2,  6,  8,  12, 10, 14, 16, 20, 18, 22,
      24, 28, 26, 30, 32, 36, 34, 38, 40, 44, 42, 46, 48, 52, 50, 54, 56, 60, 58, 62};

  OCTAVO_INLINE void split(const Int16Line& line, std::int8_t* out) {
    // Half a high byte more carries where the low byte is negative, and turns the low byte's own sign about.
    const __m512i words = _mm512_add_epi16(_mm512_loadu_si512(line.values), _mm512_set1_epi16(128));
    const __m512i bytes = _mm512_permutexvar_epi8(_mm512_load_si512(kPlaces), words);
    const __m512i low_signs = _mm512_maskz_set1_epi64(0xf0, static_cast<long long>(0x8080808080808080ull));
    _mm512_store_si512(out, _mm512_xor_si512(bytes, low_signs));
  }

  alignas(64) std::int8_t bytes_[kMostRows][kStride];
};

template <class Line>
struct RowsOf;
template <>
struct RowsOf<Int8Line> {
  using Type = Int8Rows;
};
template <>
struct RowsOf<Int16Line> {
  using Type = Int16Rows;
};

// ---- products of kPanels panels

template <class Format, class Line, int kPanels>
struct BlockProduct {
  using Rows = typename RowsOf<Line>::Type;
  static constexpr int kPlanes = Rows::kPlanes, kScales = Format::kNumScales, kQuads = 8 / kScales;
  // The panels side by side: rows of one panel alone would lie 4 KiB from the other's, where reading one
  // waits for the other to be written.
  using Sums = float[kMostRows][kPanels][kPanelRows];
  using Dots = std::int32_t[kPanels][kScales][kPlanes][kTileRegisterRows][kPanelRows];

  OCTAVO_INLINE void multiply(const MatmulTile& tile, const BlockRows& rows, std::int64_t first_panel) {
    alignas(64) Sums sums;
    for (int r = 0; r < rows.count; ++r)
      for (int p = 0; p < kPanels; ++p) store(sums[r][p], start_sums(tile, first_panel + p, r));
    Rows values;
    Ahead ahead(tile, first_panel);
    for (std::int64_t g = 0; g < tile.columns / kGroupColumns; ++g) {
      ahead.template ask<kPanels>();
      const Line* const lines = static_cast<const Line*>(tile.lines) + g * tile.row_stride;
      values.prepare(lines, rows.count);
      GroupScales scales[kPanels];
      load_columns(tile, first_panel, g, scales);
      add_group(rows, values, lines, scales, sums);
    }
    for (int r = 0; r < rows.count; ++r)
      for (int p = 0; p < kPanels; ++p) store_sums(load(sums[r][p]), tile, first_panel + p, r);
  }

 private:
  // A group of the panels into registers, as signed bytes, and their scales.
  OCTAVO_INLINE void load_columns(const MatmulTile& tile, std::int64_t first_panel, std::int64_t g,
                                  GroupScales (&scales)[kPanels]) {
    alignas(64) std::byte columns[kPanels][8][kTileRegisterBytes];
    OCTAVO_UNROLL
    for (int p = 0; p < kPanels; ++p) {
      const std::byte* const panel = tile.panel + (first_panel + p) * tile.panel_bytes;
      const std::byte* const weights = Format::group(panel, g);
      OCTAVO_UNROLL
      for (int q = 0; q < 8; ++q) store_integers(columns[p][q], signed_quad(weights, q));
      scales[p] = Format::scales(panel, g);
    }
    load_column_tiles(columns);
  }

  template <int kTile = 0>
  OCTAVO_INLINE void load_column_tiles(const std::byte (&columns)[kPanels][8][kTileRegisterBytes]) {
    load_tile<kFirstColumnsTile + kTile>(columns[kTile / kScales][kTile % kScales * kQuads],
                                         kTileRegisterBytes);
    if constexpr (kTile + 1 < kPanels * kScales) load_column_tiles<kTile + 1>(columns);
  }

  OCTAVO_INLINE Integers signed_quad(const std::byte* weights, int q) {
    const Integers quad = stored_quad<Format::kNumbers, 0>(weights, q);
    if constexpr (Format::kNumbers.offset == 0) return quad;
    return add_bytes(quad, all_bytes(static_cast<char>(-Format::kNumbers.offset)));
  }

  OCTAVO_INLINE void add_group(const BlockRows& rows, const Rows& values, const Line* lines,
                               const GroupScales (&scales)[kPanels], Sums& sums) {
    alignas(64) Dots dots[2];  // of this tile of rows and of the one before, which may still be read
    for (int t = 0; t < rows.num_tiles(); ++t) {
      const int first = rows.first(t), num_repeated = rows.num_repeated(t);
      multiply_scale<0>(values.values(first), dots[t % 2]);
      // Apart, so that whole tiles have loops of a length that is known.
      if (num_repeated == 0) {
        add_rows(dots[t % 2], scales, lines, 0, first, sums);
      } else {
        add_rows(dots[t % 2], scales, lines, num_repeated, first, sums);
      }
    }
  }

  // The sums of a tile of rows, over the columns of one scale and of those after it, into `dots`.
  template <int kScale>
  OCTAVO_INLINE void multiply_scale(const std::int8_t* rows, Dots& dots) {
    const std::int8_t* const bytes = rows + kScale * kQuads * 4;
    load_tile<kFirstRowsTile>(bytes, Rows::kStride);
    if constexpr (kPlanes == 2) load_tile<kFirstRowsTile + 1>(bytes + Rows::kPlaneBytes, Rows::kStride);
    multiply_planes<0, kScale>(dots);
    if constexpr (kPanels == 2) multiply_planes<1, kScale>(dots);
    if constexpr (kScale + 1 < kScales) multiply_scale<kScale + 1>(rows, dots);
  }

  template <int kPanel, int kScale, int kPlane = 0>
  OCTAVO_INLINE void multiply_planes(Dots& dots) {
    zero_tile<kPlane>();
    add_tile_products<kPlane, kFirstRowsTile + kPlane, kFirstColumnsTile + kPanel * kScales + kScale>();
    store_tile_register<kPlane>(dots[kPanel][kScale][kPlane], kTileRegisterBytes);
    if constexpr (kPlane + 1 < kPlanes) multiply_planes<kPanel, kScale, kPlane + 1>(dots);
  }

  OCTAVO_INLINE F32x16 dot_of(const Dots& dots, int panel, int scale, int row) {
    const Integers low = _mm512_load_si512(dots[panel][scale][kPlanes - 1][row]);
    if constexpr (kPlanes == 1) return to_floats(low);
    return to_floats(add_integers(shift_left(_mm512_load_si512(dots[panel][scale][0][row]), 8), low));
  }

  // Of a tile that begins with row `first` of the block, those from `from` on.
  OCTAVO_INLINE void add_rows(const Dots& dots, const GroupScales (&scales)[kPanels], const Line* lines,
                              int from, int first, Sums& sums) {
    OCTAVO_UNROLL_SOME
    for (int r = from; r < kTileRegisterRows; ++r)
      add_row(dots, scales, lines[first + r], r, sums[first + r]);
  }

  OCTAVO_INLINE void add_row(const Dots& dots, const GroupScales (&scales)[kPanels], const Line& line,
                             int row, float (&sums)[kPanels][kPanelRows]) {
    OCTAVO_UNROLL
    for (int p = 0; p < kPanels; ++p) {
      F32x16 sum = load(sums[p]);
      OCTAVO_UNROLL
      for (int s = 0; s < kScales; ++s) {
        sum = fma(mul(scales[p].scale[s], set1(line.scale)), dot_of(dots, p, s, row), sum);
        if constexpr (Format::kHasMin)
          sum = fma(scales[p].min[s], set1(kScales == 1 ? line.scaled_sum : line.scaled_half_sums[s]), sum);
      }
      store(sums[p], sum);
    }
  }
};

template <int kScales>
OCTAVO_INLINE TileShapes make_shapes() {
  TileShapes shapes;
  for (int tile = 0; tile < kFirstColumnsTile; ++tile) {
    shapes.rows[tile] = kTileRegisterRows;
    shapes.row_bytes[tile] =
        static_cast<std::uint16_t>(tile < kFirstRowsTile ? kTileRegisterBytes : kGroupColumns / kScales);
  }
  for (int tile = kFirstColumnsTile; tile < kFirstColumnsTile + kMostPanels * kScales; ++tile) {
    shapes.rows[tile] = kGroupColumns / 4 / kScales;
    shapes.row_bytes[tile] = kTileRegisterBytes;
  }
  return shapes;
}

// Of kLeastRows to kMostRows rows.
template <class Format, class Line>
void multiply_block(const MatmulTile& tile) {
  const BlockRows rows = {static_cast<int>(tile.num_rows)};
  set_tile_shapes(make_shapes<Format::kNumScales>());
  const std::int64_t num_panels = (tile.num_outputs + kPanelRows - 1) / kPanelRows;
  std::int64_t panel = 0;
  for (; panel + kMostPanels <= num_panels; panel += kMostPanels)
    BlockProduct<Format, Line, kMostPanels>::multiply(tile, rows, panel);
  if (panel < num_panels) BlockProduct<Format, Line, 1>::multiply(tile, rows, panel);
  release_tiles();
}

// Of the speed of vectors (Emerald Rapids, 64 rows): 1.5 to 2.2 with 8-bit activations, 1.4 to 1.8 with
// 16-bit ones; with a scale for each half of a group 1.2 and 1.1, of grids 1.0 to 1.2.
template <class Format>
constexpr bool is_read_by_tiles() {
  return !is_always_expanded(Format::kFormat) && !is_for_many_tiles(Format::kFormat) &&
         !Format::kNumbers.are_floats;
}

template <class Line, int kIndex = 0>
constexpr void fill_blocks(BlockKernels& kernels) {
  if constexpr (kIndex < kNumQuantisedFormats) {
    using Format = GroupFormat<static_cast<PanelFormat>(kIndex)>;
    if constexpr (is_read_by_tiles<Format>()) kernels.blocks[kIndex] = multiply_block<Format, Line>;
    fill_blocks<Line, kIndex + 1>(kernels);
  }
}

template <class Line>
constexpr BlockKernels make_kernels() {
  BlockKernels kernels = {kLeastRows, kMostRows, kMostLines, {}};
  fill_blocks<Line>(kernels);
  return kernels;
}

}  // namespace

extern constinit const BlockMatmulTable kBlockMatmulTable = {make_kernels<Int8Line>(),
                                                             make_kernels<Int16Line>()};

}  // namespace octavo::kernels::cpu::OCTAVO_ISA
