#include "kernels/cpu/simd/matmul_table.h"

#include "kernels/cpu/simd.h"
#include "kernels/cpu/simd/integer_rounding.h"
#include "kernels/cpu/simd/matmul_tiles.h"

namespace octavo::kernels::cpu::OCTAVO_ISA {
namespace {

// Rows of a tile: as many as leave every accumulator in a register, and as many integer sums beside them.
// Taller tiles load a row's values and unpack the weights less often. One panel at once: integer sums between
// two additions are work enough.
//
// Planes: taking bits out is work for units that integer products of 512 bits leave idle, so that expanding
// them first pays for many tiles only (Zen 4: 1.16 of the time for 20 rows of Q5_K, 1.04 for 64; for 64 of
// Q6_K 0.97).
#if defined(OCTAVO_SIMD_AVX512)
constexpr int kMostRows = 12, kPlaneTiles = 5;
#elif defined(OCTAVO_SIMD_AVX2)
constexpr int kMostRows = 6, kPlaneTiles = 1;
#else
constexpr int kMostRows = 4, kPlaneTiles = 1;
#endif

// ---- products

template <class Format, int kScale, class Line>
OCTAVO_INLINE float scaled_sum(const Line& line) {
  return Format::kNumScales == 1 ? line.scaled_sum : line.scaled_half_sums[kScale];
}

// The columns of one scale, of one group, of some rows of activations into their accumulators: the order that
// matmul.h promises.
template <class Format, int kPart, int kScale, class Line, int kRows>
OCTAVO_INLINE void add_products(F32x16 (&sums)[kRows], const std::byte* weights, const GroupScales& scales,
                                const Line* lines) {
  constexpr int kQuads = 8 / Format::kNumScales, kFirst = kScale * kQuads;
  Integers products[kRows];
  dot<Format::kNumbers, kPart, kFirst, kFirst + kQuads>(weights, lines, products);
  OCTAVO_UNROLL
  for (int r = 0; r < kRows; ++r) {
    Floats& sum = part_of<kPart>(sums[r]);
    const Floats scale = mul(part_of<kPart>(scales.scale[kScale]), broadcast(lines[r].scale));
    sum = fma(scale, to_floats(products[r]), sum);
    if constexpr (Format::kHasMin) {
      sum = fma(part_of<kPart>(scales.min[kScale]), broadcast(scaled_sum<Format, kScale>(lines[r])), sum);
    }
  }
}

template <class Format, class Line, int kRows, int kPart = 0>
OCTAVO_INLINE void add_group(F32x16 (&sums)[kRows], const std::byte* weights, const GroupScales& scales,
                             const Line* lines) {
  add_products<Format, kPart, 0>(sums, weights, scales, lines);
  if constexpr (Format::kNumScales == 2) add_products<Format, kPart, 1>(sums, weights, scales, lines);
  if constexpr (kPart + 1 < kParts) {
    // So that the compiler does not keep what it loaded from the lines for the other part, for which there
    // are no registers.
    asm("" : "+r"(lines));
    add_group<Format, Line, kRows, kPart + 1>(sums, weights, scales, lines);
  }
}

template <class Format, class Line>
struct IntegerProduct {
  static constexpr bool kAddsFloats = false;

  static constexpr int panels_at_once(int) { return 1; }

  template <int kPanels, int kRows>
  OCTAVO_INLINE void multiply(const MatmulTile& tile, std::int64_t first_panel) {
    F32x16 sums[1][kRows];
    start_tile(sums, tile, first_panel);
    const std::byte* panel = tile.panel + first_panel * tile.panel_bytes;
    const auto* lines = static_cast<const Line*>(tile.lines);
    const std::int64_t num_groups = tile.columns / kGroupColumns;
    Ahead ahead(tile, first_panel);
    for (std::int64_t g = 0; g < num_groups; ++g, lines += tile.row_stride) {
      ahead.ask<1>();
      add_group<Format>(sums[0], Format::group(panel, g), Format::scales(panel, g), lines);
    }
    store_tile(sums, tile, first_panel);
  }
};
template <class Format>
using Int8Product = IntegerProduct<Format, Int8Line>;
template <class Format>
using Int16Product = IntegerProduct<Format, Int16Line>;

// ---- rounding of activations

// A group's integers, as floats until all is known about them: sums of so few are exact.
struct RoundedGroup {
  float scale;
  F32x16 halves[2];
  float half_sums[2];
};

OCTAVO_INLINE RoundedGroup round_group(const float* values, float scale) {
  RoundedGroup group = {scale, {zero(), zero()}, {0.0f, 0.0f}};
  if (!(scale > 0.0f)) return group;
  OCTAVO_UNROLL
  for (int half = 0; half < 2; ++half) {
    group.halves[half] = nearest_integers(div(load(values + half * kLanes), set1(scale)));
    group.half_sums[half] = horizontal_sum(group.halves[half]);
  }
  return group;
}

template <class Line>
OCTAVO_INLINE void set_scale_and_sums(const RoundedGroup& group, Line& line) {
  line.scale = group.scale;
  line.scaled_sum = group.scale * (group.half_sums[0] + group.half_sums[1]);
  line.scaled_half_sums[0] = group.scale * group.half_sums[0];
  line.scaled_half_sums[1] = group.scale * group.half_sums[1];
}

OCTAVO_INLINE void set_line(const float* values, Int8Line& line) {
  const RoundedGroup group = round_group(values, int8_scale(values, kGroupColumns));
  store_bytes(line.values, group.halves[0], group.halves[1]);
  set_scale_and_sums(group, line);
  line.negative_half_sums[0] = -static_cast<std::int32_t>(group.half_sums[0]);
  line.negative_half_sums[1] = -static_cast<std::int32_t>(group.half_sums[1]);
  line.negative_sum = line.negative_half_sums[0] + line.negative_half_sums[1];
  line.unused = 0;
}

OCTAVO_INLINE void set_line(const float* values, Int16Line& line) {
  const RoundedGroup group = round_group(values, int16_scale(values, kGroupColumns));
  store_paired_words(line.values, group.halves[0]);
  store_paired_words(line.values + kLanes, group.halves[1]);
  set_scale_and_sums(group, line);
}

template <class Line>
void set_row(const float* values, std::int64_t columns, Line* first, std::int64_t row_stride) {
  const std::int64_t num_groups = columns / kGroupColumns;
  for (std::int64_t g = 0; g < num_groups; ++g) set_line(values + g * kGroupColumns, first[g * row_stride]);
}

constexpr IntegerMatmulTable make_table() {
  IntegerMatmulTable table = {};
  fill_quantised<Int8Product, kMostRows, kPlaneTiles>(table.int8);
  fill_quantised<Int16Product, kMostRows, kPlaneTiles>(table.int16);
  table.set_int8_row = set_row<Int8Line>;
  table.set_int16_row = set_row<Int16Line>;
  return table;
}

}  // namespace

extern constinit const IntegerMatmulTable kIntegerMatmulTable = make_table();

}  // namespace octavo::kernels::cpu::OCTAVO_ISA
