// The seam between matmul.cc, compiled once, and simd/matmul.cc, compiled for each instruction set: plain
// data and pointers to functions, nothing inline.
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
// Tiles of a few rows multiply them as they lie, which costs less than reading more memory; for many rows
// they are expanded to bytes once, a few groups at a time. So are 16-bit floats, to floats, where several
// tiles would each convert them.
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
// rows. "Super": before each eight groups stand f16 scale[16] and f16 min[16]; they multiply the groups' own
// 6-bit scales and mins, 24 bytes (load_six_bit_pairs in matmul_portable.h). "Halves": columns 0..15
// and 16..31 have scales of their own.
enum class PanelFormat : std::uint8_t {
  kNibbles,       // f16 scale[16]                                   Q4_0
  kNibblesMin,    // f16 scale[16], f16 min[16]                      Q4_1
  kNibblesSuper,  // 6-bit scales and mins                           Q4_K
  kTableHalf,     // f16 scale[16]                                   IQ4_NL
  kTableByte,     // signed 8-bit scale[16]; before each eight       IQ4_XS
                  // groups f16 scale[16]
  kTablePower,    // 8-bit exponent[16]: scale 2^(e - 128)           MXFP4
  kBytes,         // f16 scale[16]                                   Q8_0; kFiveBits, expanded
  // Planes, expanded: never in a matrix.
  kBytesMin,        // f16 scale[16], f16 min[16]
  kBytesSuper,      // 6-bit scales and mins, and 40 bytes of nothing
  kBytesHalves,     // f32 scale[2][16]
  kBytesHalvesMin,  // f32 scale[2][16], f32 min[2][16]
  // Planes.
  kFiveBits,       // f16 scale[16]                                   Q5_0
  kFiveBitsMin,    // f16 scale[16], f16 min[16]                      Q5_1
  kFiveBitsSuper,  // 6-bit scales and mins                           Q5_K
  kSixBits,        // signed 8-bit scale[2][16]; before each eight    Q6_K
                   // groups f16 scale[16]
  kThreeBits,      // the same                                        Q3_K
  kTwoBits,        // 4-bit scale and, above it, min [2][16]; before  Q2_K
                   // each eight groups f16 scale[16], f16 min[16]
  // No groups: [columns][16 rows].
  kF32,
  kF16,
  kBf16,
};
constexpr int kNumQuantisedFormats = 17;
constexpr int kNumPanelFormats = 20;
constexpr int kFirstPlaneFormat = static_cast<int>(PanelFormat::kFiveBits);
constexpr int kNumPlaneFormats = kNumQuantisedFormats - kFirstPlaneFormat;
constexpr int kNumExpandFunctions = kNumPanelFormats - kFirstPlaneFormat;

constexpr bool is_quantised(PanelFormat format) { return static_cast<int>(format) < kNumQuantisedFormats; }
constexpr bool stands_in_planes(PanelFormat format) {
  return is_quantised(format) && static_cast<int>(format) >= kFirstPlaneFormat;
}

enum class NibbleTable : std::uint8_t { kNone, kIq4, kMxfp4 };

// Stored numbers are unsigned; a weight is scale * (stored - offset), or scale * stored + min.
struct StoredNumbers {
  bool nibble_pairs;        // else planes; bytes are planes of 8 bits
  int low_bits, high_bits;  // of the first planes and of those after them
  int offset;               // 0 where there are mins
  int largest;
  NibbleTable table = NibbleTable::kNone;  // what nibble pairs go through
};

// The offset of the second is small, so that sums of its products fit into 16 bits.
inline constexpr StoredNumbers kIq4Numbers = {true, 4, 0, 128, 241, NibbleTable::kIq4};
inline constexpr StoredNumbers kMxfp4Numbers = {true, 4, 0, 16, 28, NibbleTable::kMxfp4};

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

enum class ScaleLayout : std::uint8_t {
  kHalf,
  kSuper,
  kByte,
  kPower,
  // Of each half of a group.
  kFloatHalves,
  kByteHalves,
  kNibbleHalves,
};

struct PanelBytes {
  int weights;  // of a group
  int scales;   // of a group, after its weights
  int head;     // before each kSuperGroups groups

  constexpr int group() const { return weights + scales; }
};

struct PanelTraits {
  StoredNumbers numbers;
  ScaleLayout scales;
  bool has_min;
  PanelBytes bytes;
  PanelFormat expanded;
};

// By PanelFormat.
inline constexpr PanelTraits kPanelTraits[kNumQuantisedFormats] = {
    {{true, 4, 0, 8, 15}, ScaleLayout::kHalf, false, {256, 32, 0}, PanelFormat::kNibbles},
    {{true, 4, 0, 0, 15}, ScaleLayout::kHalf, true, {256, 64, 0}, PanelFormat::kNibblesMin},
    {{true, 4, 0, 0, 15}, ScaleLayout::kSuper, true, {256, 24, 64}, PanelFormat::kNibblesSuper},
    {kIq4Numbers, ScaleLayout::kHalf, false, {256, 32, 0}, PanelFormat::kTableHalf},
    {kIq4Numbers, ScaleLayout::kByte, false, {256, 16, 32}, PanelFormat::kTableByte},
    {kMxfp4Numbers, ScaleLayout::kPower, false, {256, 16, 0}, PanelFormat::kTablePower},
    {{false, 8, 0, 128, 255}, ScaleLayout::kHalf, false, {512, 32, 0}, PanelFormat::kBytes},
    {{false, 8, 0, 0, 31}, ScaleLayout::kHalf, true, {512, 64, 0}, PanelFormat::kBytesMin},
    {{false, 8, 0, 0, 31}, ScaleLayout::kSuper, true, {512, 64, 64}, PanelFormat::kBytesSuper},
    {{false, 8, 0, 32, 63}, ScaleLayout::kFloatHalves, false, {512, 128, 0}, PanelFormat::kBytesHalves},
    {{false, 8, 0, 0, 31}, ScaleLayout::kFloatHalves, true, {512, 256, 0}, PanelFormat::kBytesHalvesMin},
    {{false, 4, 1, 16, 31}, ScaleLayout::kHalf, false, {320, 32, 0}, PanelFormat::kBytes},
    {{false, 4, 1, 0, 31}, ScaleLayout::kHalf, true, {320, 64, 0}, PanelFormat::kBytesMin},
    {{false, 4, 1, 0, 31}, ScaleLayout::kSuper, true, {320, 24, 64}, PanelFormat::kBytesSuper},
    {{false, 4, 2, 32, 63}, ScaleLayout::kByteHalves, false, {384, 32, 32}, PanelFormat::kBytesHalves},
    {{false, 2, 1, 4, 7}, ScaleLayout::kByteHalves, false, {192, 32, 32}, PanelFormat::kBytesHalves},
    {{false, 2, 0, 0, 3}, ScaleLayout::kNibbleHalves, true, {128, 32, 64}, PanelFormat::kBytesHalvesMin},
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
  std::int64_t num_outputs;  // weight rows, at least 1; the last panel may be cut
  const void* lines;  // Int8Line, Int16Line or FloatLine of the first row, from the first column here on
  std::int64_t row_stride;  // lines from one group to the next
  float* out;
  std::int64_t out_stride;  // floats from one row to the next
  bool continues;           // `out` holds the sums of the columns before these; else there are none
  // What this and the other tiles of these panels ask the memory for meanwhile: for each panel here,
  // `ahead_step` bytes for each group (unquantised weights: for each 16 columns) from `ahead` on, which is
  // `ahead_panel_bytes` farther for the next panel. It may lie past the last panel.
  const std::byte* ahead;
  std::int64_t ahead_step;
  std::int64_t ahead_panel_bytes;
};
using TileFunction = void (*)(const MatmulTile&);

// Some columns of a panel as its expanded_format(); of planes from one with a head on. Asks meanwhile for
// what stands `ahead` bytes later; 0: for nothing.
using ExpandFunction = void (*)(const std::byte* panel, std::int64_t columns, std::int64_t ahead,
                                std::byte* out);

// Tiles of at most so many rows multiply planes as they lie. A product in tiles of nearly equal height is
// expanded if the tallest has more, so that expanded ones may have as many, too.
constexpr int max_plane_rows(int max_tile_rows) { return (2 * max_tile_rows + 2) / 3; }

struct TileKernels {
  std::int32_t max_rows;  // of a tile, at most kMaxTileRows
  // [format][rows - 1]; null where max_rows or the format forbids, for planes in tall tiles and for expanded
  // ones in low tiles.
  TileFunction tiles[kNumPanelFormats][kMaxTileRows];
};

struct MatmulTable {
  TileKernels int8, int16;  // quantised formats only
  TileKernels f32;
  ExpandFunction expand[kNumExpandFunctions];  // by PanelFormat, from kFirstPlaneFormat on; null for kF32
  // Sets the lines first[0], first[row_stride], ... of one row.
  void (*set_int8_row)(const float* values, std::int64_t columns, Int8Line* first, std::int64_t row_stride);
  void (*set_int16_row)(const float* values, std::int64_t columns, Int16Line* first, std::int64_t row_stride);
};

// REQUIRES: isa is one of usable_instruction_sets(), or nothing of the table is called.
const MatmulTable& matmul_table(InstructionSet isa);

}  // namespace octavo::kernels::cpu
