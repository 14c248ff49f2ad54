// The seam between matmul.cc, compiled once, and simd/matmul.cc, compiled for each instruction set: plain
// data and pointers to functions, nothing inline.
//
// A panel holds 16 rows of weights, side by side in the lanes of a register; its columns come in groups
// of 32. The bytes of a group, quad q being columns 4q..4q+3 of the group:
//   nibbles  [4][16 rows][4 columns], 256 bytes: byte (i, r, c) = column 4i + c | column 16 + 4i + c << 4
//   bytes    [8 quads][16 rows][4 columns], 512 bytes
// The low nibbles hold the first half of a group, the high ones the second. Stored integers are unsigned;
// where a format says "offset", the weight is scale * (stored - offset), offset 8 for nibbles and 128 for
// bytes.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/cpu/isa.h"

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
  kNibbles,           // f16 scale[16]; offset                        Q4_0
  kNibblesMin,        // f16 scale[16], f16 min[16]                   Q4_1
  kNibblesSuper,      // 6-bit scales and mins                        Q4_K
  kNibblesHalves,     // f32 scale[2][16]; offset                     Q3_K
  kNibblesHalvesMin,  // f32 scale[2][16], f32 min[2][16]             Q2_K
  kBytes,             // f16 scale[16]; offset                        Q5_0, Q8_0
  kBytesMin,          // f16 scale[16], f16 min[16]; stored <= 31     Q5_1
  kBytesSuper,        // 6-bit scales and mins; stored <= 31          Q5_K
  kBytesHalves,       // f32 scale[2][16]; offset                     Q6_K
  kF32,               // no groups: [columns][16 rows]
  kF16,
  kBf16,
};
constexpr int kNumPanelFormats = 12;
constexpr int kNumQuantisedFormats = 9;

enum class ScaleLayout : std::uint8_t { kHalf, kSuper, kFloatHalves };

struct PanelTraits {
  bool nibbles;  // else bytes
  ScaleLayout scales;
  bool has_min;      // exactly those without offset
  int weight_bytes;  // of a group
  int scale_bytes;   // of a group, after its weights
  int head_bytes;    // before each kSuperGroups groups
};

// By PanelFormat.
inline constexpr PanelTraits kPanelTraits[kNumQuantisedFormats] = {
    {true, ScaleLayout::kHalf, false, 256, 32, 0},
    {true, ScaleLayout::kHalf, true, 256, 64, 0},
    {true, ScaleLayout::kSuper, true, 256, 24, 64},
    {true, ScaleLayout::kFloatHalves, false, 256, 128, 0},
    {true, ScaleLayout::kFloatHalves, true, 256, 256, 0},
    {false, ScaleLayout::kHalf, false, 512, 32, 0},
    {false, ScaleLayout::kHalf, true, 512, 64, 0},
    {false, ScaleLayout::kSuper, true, 512, 24, 64},
    {false, ScaleLayout::kFloatHalves, false, 512, 128, 0},
};

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
  // `panel_bytes` farther for the next panel. It may lie past the last panel.
  const std::byte* ahead;
  std::int64_t ahead_step;
};
using TileFunction = void (*)(const MatmulTile&);

struct TileKernels {
  std::int32_t max_rows;  // of a tile, at most kMaxTileRows
  // [format][rows - 1]; null where max_rows or the format forbids.
  TileFunction tiles[kNumPanelFormats][kMaxTileRows];
};

struct MatmulTable {
  TileKernels int8, int16;  // quantised formats only
  TileKernels f32;
  // Sets the lines first[0], first[row_stride], ... of one row.
  void (*set_int8_row)(const float* values, std::int64_t columns, Int8Line* first, std::int64_t row_stride);
  void (*set_int16_row)(const float* values, std::int64_t columns, Int16Line* first, std::int64_t row_stride);
};

// REQUIRES: isa is one of usable_instruction_sets(), or nothing of the table is called.
const MatmulTable& matmul_table(InstructionSet isa);

}  // namespace octavo::kernels::cpu
