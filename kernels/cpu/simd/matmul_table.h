// The seam between matmul.cc, compiled once, and simd/matmul_integers.cc, matmul_floats.cc and
// matmul_blocks.cc, compiled for each instruction set that has them: plain data and pointers to functions,
// nothing inline.
//
// A panel holds 16 rows of weights, side by side in the lanes of a register; its columns come in groups
// of 32. The bytes of a group, quad q being columns 4q..4q+3 of the group:
//   nibbles  [4][16 rows][4 columns], 256 bytes: byte (i, r, c) = column 4i + c | column 16 + 4i + c << 4
//   bytes    [8 quads][16 rows][4 columns], 512 bytes
// The low nibbles hold the first half of a group, the high ones the second. Stored integers are unsigned;
// where a format says "offset", the weight is scale * (stored - offset), offset 8 for nibbles and 128 for
// bytes. In "table" formats a nibble is the place of its stored number in a table of 16 bytes.
//
// Numbers of 2, 3, 5 and 6 bits stand in planes, the lower bits first, so that a panel is no larger than the
// rows in the file were:
//   planes of n = 4, 2 or 1 bits  [n of them][16 rows][4 columns], 64 n bytes: bits n * (q mod 8/n) and up
//                                 of byte (q / (8/n), r, c) = n bits of column 4q + c
// Numbers of a grid (kernels/dequantize_grids.h) stand as indices of entries, as in the file: an entry holds
// 8 columns, IQ3's 4, and the group n = 4 or 8 of them.
//   indices    [n][16 rows], the lower eight bits
//   high bits  the upper bits of a row's n indices, the first lowest: IQ2_S and IQ3_S byte r; IQ2_XS 4 bits,
//              of row r in the low half of byte r, of row 8 + r in the high one; IQ1 the lower 12 bits of
//              word r
//   signs      a plane of 1 bit as above, 1: minus; IQ1 has none
//   direction  in the upper bits of IQ1's word r, 1: an eighth down, 0: up; IQ1_M bit 12 + i for entry i,
//              IQ1_S bit 15 for all
// Few tiles multiply planes as they lie; for many they are expanded to bytes once, a few groups at a time. So
// are 16-bit floats, to floats. Grids, and planes with nothing but a head for scale, are expanded for any
// tile.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/cpu/isa.h"
#include "kernels/four_bit_values.h"

namespace octavo::kernels::cpu {

constexpr int kPanelRows = 16;
constexpr int kGroupColumns = 32;
constexpr int kMaxTileRows = 12;
constexpr int kSuperGroups = 8;
// Float activations meet up to so many panels at once.
constexpr int kPanelsTogether = 2;

// What one group of a panel holds, in this order: its weights, and arrays with an entry for each of the 16
// rows. "Head": what stands before each eight groups (where another number is not said), f16 scale[16] and
// perhaps f16 min[16]; they multiply the groups' own scales and mins. "Super": these have 6 bits, 24 bytes
// (load_six_bit_pairs in matmul_portable.h). "Halves": columns 0..15 and 16..31 have scales of their own.
// "Odd": where s is stored, the scale is 2 s + 1.
enum class PanelFormat : std::uint8_t {
  kNibbles,       // f16 scale[16]                                   Q4_0
  kNibblesMin,    // f16 scale[16], f16 min[16]                      Q4_1
  kNibblesSuper,  // head with mins; 6-bit scales and mins           Q4_K
  kTableHalf,     // f16 scale[16]                                   IQ4_NL
  kTableByte,     // head; signed 8-bit scale[16]                    IQ4_XS
  kTablePower,    // 8-bit exponent[16]: scale 2^(e - 128)           MXFP4
  kTableE4m3,     // floats of seven bits [2][16], half of them      NVFP4
                  // the scale
  // Head before each group, or ("Four") before each four: f32 scale[16], signed 8-bit zero[16], the zero
  // point less the offset: the weight is scale * (stored - offset - zero).
  kNibblesZero,      // U4_G32
  kNibblesZeroFour,  // U4_G128
  kBytesZero,        // U8_G32
  kBytesZeroFour,    // U8_G128
  // Floats of 8 bits, [32 columns][16 rows]; the same heads without zero points.
  kFloat8,      // F8_G32
  kFloat8Four,  // F8_G128
  kBytes,       // f16 scale[16]                                     Q8_0; kFiveBits and others, expanded
  // Planes and grids, expanded: never in a matrix.
  kBytesMin,         // f16 scale[16], f16 min[16]
  kBytesSuper,       // 6-bit scales and mins, and 40 bytes of nothing
  kBytesHalves,      // f32 scale[2][16]
  kBytesHalvesMin,   // f32 scale[2][16], f32 min[2][16]
  kBytesGrid,        // f32 scale[16]
  kBytesGridHalves,  // f32 scale[2][16]
  // Planes.
  kFiveBits,       // f16 scale[16]                                  Q5_0
  kFiveBitsMin,    // f16 scale[16], f16 min[16]                     Q5_1
  kFiveBitsSuper,  // head with mins; 6-bit scales and mins          Q5_K
  kSixBits,        // head; signed 8-bit scale[2][16]                Q6_K
  kThreeBits,      // the same                                       Q3_K
  kTwoBits,        // head with mins; 4-bit scale and, above it,     Q2_K
                   // min [2][16]
  // Expanded for any tile. Planes:
  kTernary,     // head                                              TQ1_0, TQ2_0
  kTwoBitsTwo,  // head before each two groups                       Q2_0
  kOneBit,      // head before each four groups                      Q1_0
  // Grids:
  kGridIq2Xxs,  // head; odd 4-bit scales as IQ2_XS's high bits      IQ2_XXS
  kGridIq2Xs,   // head; odd 4-bit scales, the first half's below    IQ2_XS
                // the second's [16]
  kGridIq2S,    // the same                                          IQ2_S
  kGridIq3Xxs,  // as kGridIq2Xxs                                    IQ3_XXS
  kGridIq3S,    // the same                                          IQ3_S
  kGridIq1S,    // head; odd scales in bits 12 to 14 of the words    IQ1_S
  kGridIq1M,    // as kGridIq2Xs                                     IQ1_M
  // No groups: [columns][16 rows].
  kF32,
  kF16,
  kBf16,
};
constexpr int kNumQuantisedFormats = static_cast<int>(PanelFormat::kF32);
constexpr int kNumPanelFormats = kNumQuantisedFormats + 3;
constexpr int kFirstExpandable = static_cast<int>(PanelFormat::kFiveBits);
constexpr int kNumExpandable = kNumPanelFormats - kFirstExpandable;

constexpr bool is_quantised(PanelFormat format) { return static_cast<int>(format) < kNumQuantisedFormats; }
constexpr bool is_always_expanded(PanelFormat format) {
  return is_quantised(format) && format >= PanelFormat::kTernary;
}

enum class NibbleTable : std::uint8_t { kNone, kIq4, kMxfp4 };
enum class NumberGrid : std::uint8_t { kNone, kIq2Xxs, kIq2Xs, kIq2S, kIq3Xxs, kIq3S, kIq1S, kIq1M };

// Stored numbers are unsigned; a weight is scale * (stored - offset), or scale * stored + min.
struct StoredNumbers {
  bool nibble_pairs;        // else planes; bytes are planes of 8 bits
  int low_bits, high_bits;  // of the first planes and of those after them
  int offset;               // 0 where there are mins
  int largest;
  NibbleTable table = NibbleTable::kNone;  // what nibble pairs go through
  int shift = 0;                           // of planes: a stored number is so many bits higher than they say
  NumberGrid grid = NumberGrid::kNone;  // else nothing of the above is meant but the offset and the largest
  bool are_floats = false;              // of 8 bits, column by column
};

// The offset of the second is small, so that sums of its products fit into 16 bits.
inline constexpr StoredNumbers kIq4Numbers = {true, 4, 0, 128, 241, NibbleTable::kIq4};
inline constexpr StoredNumbers kMxfp4Numbers = {true, 4, 0, 16, 28, NibbleTable::kMxfp4};
inline constexpr StoredNumbers kFloat8Numbers = {
    false, 8, 0, 0, 255, NibbleTable::kNone, 0, NumberGrid::kNone, true};

struct StoredTable {
  std::uint8_t numbers[16];
};

consteval StoredTable stored_table(const std::int8_t (&values)[16], const StoredNumbers& numbers) {
  StoredTable table = {};
  for (int i = 0; i < 16; ++i) table.numbers[i] = static_cast<std::uint8_t>(values[i] + numbers.offset);
  return table;
}

// By NibbleTable.
inline constexpr StoredTable kStoredTables[] = {
    {}, stored_table(kIq4Values, kIq4Numbers), stored_table(kMxfp4Values, kMxfp4Numbers)};

constexpr const std::uint8_t (&numbers_of(NibbleTable table))[16] {
  return kStoredTables[static_cast<int>(table)].numbers;
}

// How a grid's numbers stand in a group, and what they are multiplied with besides the scale.
struct GridTraits {
  int entry_columns;
  int high_bits;   // of an index
  bool has_signs;  // else they are moved by an eighth, and eighths are stored
  float unit;

  constexpr int num_entries() const { return kGroupColumns / entry_columns; }
  constexpr int index_bytes() const { return num_entries() * kPanelRows; }
  // IQ1's words hold more than these bits.
  constexpr int high_bytes() const {
    return has_signs ? num_entries() * high_bits * kPanelRows / 8 : 2 * kPanelRows;
  }
};

// By NumberGrid.
inline constexpr GridTraits kGridTraits[] = {{},
                                             {8, 0, true, 0.125f},
                                             {8, 1, true, 0.125f},
                                             {8, 2, true, 0.125f},
                                             {4, 0, true, 0.25f},
                                             {4, 1, true, 1.0f},
                                             {8, 3, false, 0.125f},
                                             {8, 3, false, 0.125f}};

constexpr const GridTraits& traits_of(NumberGrid grid) { return kGridTraits[static_cast<int>(grid)]; }

enum class ScaleLayout : std::uint8_t {
  kHalf,
  kSuper,
  kByte,
  kPower,
  kHead,
  kFloat,
  kHeadZero,
  kHeadFloat,
  kOddNibble,
  kOddWord,
  // Of each half of a group.
  kFloatHalves,
  kByteHalves,
  kNibbleHalves,
  kOddNibbleHalves,
  kE4m3Halves,
};
constexpr int num_scales(ScaleLayout layout) { return layout < ScaleLayout::kFloatHalves ? 1 : 2; }

struct PanelBytes {
  int weights;  // of a group
  int scales;   // of a group, after its weights
  int head;     // before each head_groups groups
  int head_groups = kSuperGroups;

  constexpr int group() const { return weights + scales; }
};

struct PanelTraits {
  StoredNumbers numbers;
  ScaleLayout scales;
  bool has_min;
  PanelBytes bytes;
  PanelFormat expanded;
};

// The offset leaves 64 numbers below zero; 126 is little enough for sums of two products in 16 bits.
consteval PanelTraits grid_traits(NumberGrid grid, ScaleLayout scales, int scale_bytes) {
  const GridTraits& traits = traits_of(grid);
  const int weights = traits.index_bytes() + traits.high_bytes() + (traits.has_signs ? 4 * kPanelRows : 0);
  return {{false, 0, 0, 64, 126, NibbleTable::kNone, 0, grid},
          scales,
          false,
          {weights, scale_bytes, 32},
          num_scales(scales) == 1 ? PanelFormat::kBytesGrid : PanelFormat::kBytesGridHalves};
}

// By PanelFormat.
inline constexpr PanelTraits kPanelTraits[kNumQuantisedFormats] = {
    {{true, 4, 0, 8, 15}, ScaleLayout::kHalf, false, {256, 32, 0}, PanelFormat::kNibbles},
    {{true, 4, 0, 0, 15}, ScaleLayout::kHalf, true, {256, 64, 0}, PanelFormat::kNibblesMin},
    {{true, 4, 0, 0, 15}, ScaleLayout::kSuper, true, {256, 24, 64}, PanelFormat::kNibblesSuper},
    {kIq4Numbers, ScaleLayout::kHalf, false, {256, 32, 0}, PanelFormat::kTableHalf},
    {kIq4Numbers, ScaleLayout::kByte, false, {256, 16, 32}, PanelFormat::kTableByte},
    {kMxfp4Numbers, ScaleLayout::kPower, false, {256, 16, 0}, PanelFormat::kTablePower},
    {kMxfp4Numbers, ScaleLayout::kE4m3Halves, false, {256, 32, 0}, PanelFormat::kTableE4m3},
    {{true, 4, 0, 8, 15}, ScaleLayout::kHeadZero, true, {256, 0, 80, 1}, PanelFormat::kNibblesZero},
    {{true, 4, 0, 8, 15}, ScaleLayout::kHeadZero, true, {256, 0, 80, 4}, PanelFormat::kNibblesZeroFour},
    {{false, 8, 0, 128, 255}, ScaleLayout::kHeadZero, true, {512, 0, 80, 1}, PanelFormat::kBytesZero},
    {{false, 8, 0, 128, 255}, ScaleLayout::kHeadZero, true, {512, 0, 80, 4}, PanelFormat::kBytesZeroFour},
    {kFloat8Numbers, ScaleLayout::kHeadFloat, false, {512, 0, 64, 1}, PanelFormat::kFloat8},
    {kFloat8Numbers, ScaleLayout::kHeadFloat, false, {512, 0, 64, 4}, PanelFormat::kFloat8Four},
    {{false, 8, 0, 128, 255}, ScaleLayout::kHalf, false, {512, 32, 0}, PanelFormat::kBytes},
    {{false, 8, 0, 0, 31}, ScaleLayout::kHalf, true, {512, 64, 0}, PanelFormat::kBytesMin},
    {{false, 8, 0, 0, 31}, ScaleLayout::kSuper, true, {512, 64, 64}, PanelFormat::kBytesSuper},
    {{false, 8, 0, 32, 63}, ScaleLayout::kFloatHalves, false, {512, 128, 0}, PanelFormat::kBytesHalves},
    {{false, 8, 0, 0, 31}, ScaleLayout::kFloatHalves, true, {512, 256, 0}, PanelFormat::kBytesHalvesMin},
    {{false, 8, 0, 64, 126}, ScaleLayout::kFloat, false, {512, 64, 0}, PanelFormat::kBytesGrid},
    {{false, 8, 0, 64, 126}, ScaleLayout::kFloatHalves, false, {512, 128, 0}, PanelFormat::kBytesGridHalves},
    {{false, 4, 1, 16, 31}, ScaleLayout::kHalf, false, {320, 32, 0}, PanelFormat::kBytes},
    {{false, 4, 1, 0, 31}, ScaleLayout::kHalf, true, {320, 64, 0}, PanelFormat::kBytesMin},
    {{false, 4, 1, 0, 31}, ScaleLayout::kSuper, true, {320, 24, 64}, PanelFormat::kBytesSuper},
    {{false, 4, 2, 32, 63}, ScaleLayout::kByteHalves, false, {384, 32, 32}, PanelFormat::kBytesHalves},
    {{false, 2, 1, 4, 7}, ScaleLayout::kByteHalves, false, {192, 32, 32}, PanelFormat::kBytesHalves},
    {{false, 2, 0, 0, 3}, ScaleLayout::kNibbleHalves, true, {128, 32, 64}, PanelFormat::kBytesHalvesMin},
    {{false, 2, 0, 1, 3}, ScaleLayout::kHead, false, {128, 0, 32}, PanelFormat::kBytes},
    {{false, 2, 0, 1, 3}, ScaleLayout::kHead, false, {128, 0, 32, 2}, PanelFormat::kBytes},
    {{false, 1, 0, 1, 2, NibbleTable::kNone, 1},
     ScaleLayout::kHead,
     false,
     {64, 0, 32, 4},
     PanelFormat::kBytes},
    grid_traits(NumberGrid::kIq2Xxs, ScaleLayout::kOddNibble, 8),
    grid_traits(NumberGrid::kIq2Xs, ScaleLayout::kOddNibbleHalves, 16),
    grid_traits(NumberGrid::kIq2S, ScaleLayout::kOddNibbleHalves, 16),
    grid_traits(NumberGrid::kIq3Xxs, ScaleLayout::kOddNibble, 8),
    grid_traits(NumberGrid::kIq3S, ScaleLayout::kOddNibble, 8),
    grid_traits(NumberGrid::kIq1S, ScaleLayout::kOddWord, 0),
    grid_traits(NumberGrid::kIq1M, ScaleLayout::kOddNibbleHalves, 16),
};

// REQUIRES: is_quantised(format)
constexpr const PanelTraits& traits_of(PanelFormat format) { return kPanelTraits[static_cast<int>(format)]; }

// What tiles of many rows read.
constexpr PanelFormat expanded_format(PanelFormat format) {
  return is_quantised(format) ? traits_of(format).expanded : PanelFormat::kF32;
}

// 16 columns of a row as floats: one cache line.
struct alignas(64) FloatLine {
  float values[16];
};

// 32 columns of a row as integers, and what products need to know about them: one cache line.
struct alignas(64) Int8Line {
  std::int8_t values[32];
  float scale;
  float scaled_sum;           // scale * float(sum of values)
  float scaled_half_sums[2];  // the same of columns 0..15 and 16..31
  std::int32_t negative_sum;  // -(sum of values): times an offset, takes that out of a dot product
  std::int32_t negative_half_sums[2];
  std::int32_t unused;  // zero
};

// The same with 16-bit integers. Of each quad of columns, the first and the third stand before the second and
// the fourth: so the pairs of 16 bits meet the even and the odd bytes of a quad of weights.
struct alignas(16) Int16Line {
  std::int16_t values[32];
  float scale;
  float scaled_sum;
  float scaled_half_sums[2];
};
static_assert(sizeof(FloatLine) == 64 && sizeof(Int8Line) == 64 && sizeof(Int16Line) == 80);

// A few rows of activations times some neighbouring panels, or some columns of both.
struct MatmulTile {
  const std::byte* panel;    // the first one, from its first column here on
  std::int64_t panel_bytes;  // from one panel to the next
  std::int64_t columns;
  std::int64_t num_rows;
  std::int64_t num_outputs;  // weight rows, at least 1; the last panel may be cut
  const void* lines;  // Int8Line, Int16Line or FloatLine of the first row, from the first column here on
  std::int64_t row_stride;  // lines from one group to the next
  float* out;
  std::int64_t out_stride;  // floats from one row to the next
  bool continues;           // `out` holds the sums of the columns before these; else there are none
  float out_scale;          // of the sums in the end
  // What this and the other tiles of these panels ask the memory for meanwhile, into the second-level cache:
  // for each panel here,
  // `ahead_step` bytes for each group (unquantised weights: for each 16 columns) from `ahead` on, which is
  // `ahead_panel_bytes` farther for the next panel. It may lie past the last panel.
  const std::byte* ahead;
  std::int64_t ahead_step;
  std::int64_t ahead_panel_bytes;
};
using TileFunction = void (*)(const MatmulTile&);

// Some columns of a panel as its expanded_format(); of planes from one with a head on.
using ExpandFunction = void (*)(const std::byte* panel, std::int64_t columns, std::byte* out);

struct TileKernels {
  std::int32_t max_rows;  // of a tile, at most kMaxTileRows
  // As many tiles, of nearly equal height, multiply planes as they lie, unless those are always expanded;
  // more have them expanded.
  std::int32_t max_plane_tiles;
  // [format][rows - 1]; null where max_rows forbids, for what is always expanded, and for heights that
  // expanded planes do not meet.
  TileFunction tiles[kNumPanelFormats][kMaxTileRows];
};

// Of tiles that read expanded planes: there are more than max_plane_tiles.
constexpr int least_expanded_rows(int max_rows, int max_plane_tiles) {
  return (max_rows * max_plane_tiles + 1) / (max_plane_tiles + 1);
}

// Sums of products of floats, and what both kinds of products need expanded.
struct FloatMatmulTable {
  TileKernels f32;
  ExpandFunction expand[kNumExpandable];  // by PanelFormat, from kFirstExpandable on; null for kF32
};

struct IntegerMatmulTable {
  TileKernels int8, int16;  // quantised formats only
  // Sets the lines first[0], first[row_stride], ... of one row.
  void (*set_int8_row)(const float* values, std::int64_t columns, Int8Line* first, std::int64_t row_stride);
  void (*set_int16_row)(const float* values, std::int64_t columns, Int16Line* first, std::int64_t row_stride);
};

// Products of so many rows that registers for tiles pay: blocks of least_rows to most_rows rows and no more
// than most_lines lines, by format; null where they do not, and for what is expanded first.
struct BlockKernels {
  std::int32_t least_rows, most_rows, most_lines;
  TileFunction blocks[kNumQuantisedFormats];
};

struct BlockMatmulTable {
  BlockKernels int8, int16;
};

// REQUIRES: isa is one of usable_instruction_sets(), or nothing of the table is called.
const FloatMatmulTable& float_matmul_table(InstructionSet isa);
const IntegerMatmulTable& integer_matmul_table(InstructionSet isa);
const BlockMatmulTable* block_matmul_table(InstructionSet isa);  // null: it has none

}  // namespace octavo::kernels::cpu
