#include "kernels/cpu/simd/matmul_table.h"

#include "kernels/cpu/simd.h"
#include "kernels/cpu/simd/int8_rounding.h"

#if defined(OCTAVO_SIMD_AVX512)
#include "kernels/cpu/simd/matmul_avx512.h"
#elif defined(OCTAVO_SIMD_AVX2)
#include "kernels/cpu/simd/matmul_avx2.h"
#else
#include "kernels/cpu/simd/matmul_portable.h"
#endif

// Loops over panels and rows must be unrolled for accumulators to live in registers.
#if defined(OCTAVO_SIMD_PORTABLE)
#define OCTAVO_UNROLL
#elif defined(__clang__)
#define OCTAVO_UNROLL _Pragma("clang loop unroll(full)")
#else
#define OCTAVO_UNROLL _Pragma("GCC unroll 32")
#endif

namespace octavo::kernels::cpu::OCTAVO_ISA {
namespace {

// ---- sizes of tiles -----------------------------------------------------------------------------

// Accumulators and one group's weights fill the registers. 12 rows are not faster than 8
// (tests/bench/matmul_bench).
#if defined(OCTAVO_SIMD_AVX512)
constexpr int kTileRows = 8;
#else
constexpr int kTileRows = 4;
#endif

// Panels at once. Float activations add once for each column, so with few rows one panel's chain would wait
// for itself; more than two panels do not leave their weights in registers. With 8-bit activations the
// integer sums between two additions are work enough.
#if defined(OCTAVO_SIMD_AVX512)
constexpr int float_panels(int rows) { return rows <= 3 ? 2 : 1; }
#elif defined(OCTAVO_SIMD_AVX2)
constexpr int float_panels(int rows) { return rows == 1 ? 2 : 1; }
#else
constexpr int float_panels(int) { return 1; }
#endif

// ---- formats: where a group lies, its weights and scales ----------------------------------------

struct GroupScales {
  F32x16 scale[2], min[2];  // [half]; formats without halves use the first only
};

OCTAVO_INLINE F32x16 load_half_floats(const std::byte* source) {
  return load_f16(reinterpret_cast<const std::uint16_t*>(source));
}
OCTAVO_INLINE F32x16 load_floats(const std::byte* source) {
  return load(reinterpret_cast<const float*>(source));
}

template <PanelFormat kFormat>
struct GroupFormat {
  static constexpr PanelTraits kTraits = kPanelTraits[static_cast<int>(kFormat)];
  static constexpr bool kNibbles = kTraits.nibbles;
  static constexpr bool kHasMin = kTraits.has_min;
  static constexpr bool kHasOffset = !kHasMin;
  static constexpr ScaleLayout kScales = kTraits.scales;
  static constexpr int kNumScales = kScales == ScaleLayout::kFloatHalves ? 2 : 1;
  static constexpr int kGroupBytes = kTraits.weight_bytes + kTraits.scale_bytes;

  OCTAVO_INLINE const std::byte* super_group(const std::byte* panel, std::int64_t index) {
    return panel + index / kSuperGroups * (kTraits.head_bytes + kSuperGroups * kGroupBytes);
  }
  OCTAVO_INLINE const std::byte* group(const std::byte* panel, std::int64_t index) {
    if constexpr (kScales != ScaleLayout::kSuper) return panel + index * kGroupBytes;
    return super_group(panel, index) + kTraits.head_bytes + index % kSuperGroups * kGroupBytes;
  }

  OCTAVO_INLINE GroupWeights weights(const std::byte* panel, std::int64_t index) {
    if constexpr (kNibbles) return unpack_nibbles(group(panel, index));
    return load_bytes(group(panel, index));
  }

  OCTAVO_INLINE GroupScales scales(const std::byte* panel, std::int64_t index) {
    const std::byte* source = group(panel, index) + kTraits.weight_bytes;
    GroupScales result = {};
    if constexpr (kScales == ScaleLayout::kHalf) {
      result.scale[0] = load_half_floats(source);
      if constexpr (kHasMin) result.min[0] = load_half_floats(source + 2 * kPanelRows);
    } else if constexpr (kScales == ScaleLayout::kSuper) {
      const std::byte* head = super_group(panel, index);
      load_six_bit_pairs(source, result.scale[0], result.min[0]);
      result.scale[0] = mul(load_half_floats(head), result.scale[0]);
      result.min[0] = sub(zero(), mul(load_half_floats(head + 2 * kPanelRows), result.min[0]));
    } else {
      for (int half = 0; half < 2; ++half) {
        result.scale[half] = load_floats(source + half * 4 * kPanelRows);
        if constexpr (kHasMin) result.min[half] = load_floats(source + (2 + half) * 4 * kPanelRows);
      }
    }
    return result;
  }
};

// ---- 8-bit activations --------------------------------------------------------------------------

// One group of one row of activations into its accumulator: the order that matmul.h promises.
template <class Format>
OCTAVO_INLINE F32x16 add_group(F32x16 sum, const GroupWeights& weights, const GroupScales& scales,
                               const Int8Line& line) {
  constexpr bool kNibbles = Format::kNibbles, kHasOffset = Format::kHasOffset;
  const F32x16 line_scale = set1(line.scale);
  if constexpr (Format::kNumScales == 1) {
    const F32x16 products = dot<0, 8, kNibbles, kHasOffset>(weights, line, line.negative_sum);
    sum = fma(mul(scales.scale[0], line_scale), products, sum);
    if constexpr (Format::kHasMin) sum = fma(scales.min[0], set1(line.scaled_sum), sum);
  } else {
    const F32x16 first = dot<0, 4, kNibbles, kHasOffset>(weights, line, line.negative_half_sums[0]);
    sum = fma(mul(scales.scale[0], line_scale), first, sum);
    if constexpr (Format::kHasMin) sum = fma(scales.min[0], set1(line.scaled_half_sums[0]), sum);
    const F32x16 second = dot<4, 8, kNibbles, kHasOffset>(weights, line, line.negative_half_sums[1]);
    sum = fma(mul(scales.scale[1], line_scale), second, sum);
    if constexpr (Format::kHasMin) sum = fma(scales.min[1], set1(line.scaled_half_sums[1]), sum);
  }
  return sum;
}

// ---- tiles: kPanels panels times kRows rows -----------------------------------------------------

template <int kPanels, int kRows>
OCTAVO_INLINE void store_tile(const F32x16 (&sums)[kPanels][kRows], const MatmulTile& tile,
                              std::int64_t first_panel) {
  OCTAVO_UNROLL
  for (int p = 0; p < kPanels; ++p) {
    float* out = tile.out + (first_panel + p) * kPanelRows;
    const std::int64_t num_outputs = tile.num_outputs - (first_panel + p) * kPanelRows;
    OCTAVO_UNROLL
    for (int r = 0; r < kRows; ++r) {
      if (num_outputs >= kPanelRows) {
        store(out + r * tile.out_stride, sums[p][r]);
      } else {
        store_first(out + r * tile.out_stride, sums[p][r], static_cast<int>(num_outputs));
      }
    }
  }
}

// Weights come from memory as fast as it can only if they are asked for before the arithmetic of a few rows
// wants them: on Zen 5, Q8_0 times 4 and 8 rows 1.2 and 1.35 times as fast, 1 row and 512 rows the same
// (tests/bench/matmul_bench). Panels follow each other in memory, and asking for an address past the last one
// does no harm.
template <class Format>
OCTAVO_INLINE void prefetch_after(const std::byte* panel, std::int64_t index) {
  constexpr int kDistance = 2048, kCacheLine = 64;
  const std::byte* later = Format::group(panel, index) + kDistance;
  for (int offset = 0; offset < Format::kGroupBytes; offset += kCacheLine) __builtin_prefetch(later + offset);
}

template <class Format>
struct Int8Product {
  static constexpr int panels_at_once(int) { return 1; }

  template <int kPanels, int kRows>
  OCTAVO_INLINE void multiply(const MatmulTile& tile, std::int64_t first_panel) {
    F32x16 sums[kPanels][kRows] = {};
    const std::byte* panel = tile.panel + first_panel * tile.panel_bytes;
    const auto* lines = static_cast<const Int8Line*>(tile.lines);
    const std::int64_t num_groups = tile.columns / kGroupColumns;
    for (std::int64_t g = 0; g < num_groups; ++g, lines += tile.row_stride) {
      OCTAVO_UNROLL
      for (int p = 0; p < kPanels; ++p) {
        const GroupWeights weights = Format::weights(panel + p * tile.panel_bytes, g);
        const GroupScales scales = Format::scales(panel + p * tile.panel_bytes, g);
        prefetch_after<Format>(panel + p * tile.panel_bytes, g);
        OCTAVO_UNROLL
        for (int r = 0; r < kRows; ++r) sums[p][r] = add_group<Format>(sums[p][r], weights, scales, lines[r]);
      }
    }
    store_tile(sums, tile, first_panel);
  }
};

// Quantised weights expanded on the way: w = fma(scale, stored, min).
template <class Format>
struct ExpandingProduct {
  static constexpr int panels_at_once(int rows) { return float_panels(rows); }

  template <int kPanels, int kRows>
  OCTAVO_INLINE void multiply(const MatmulTile& tile, std::int64_t first_panel) {
    F32x16 sums[kPanels][kRows] = {};
    const std::byte* panel = tile.panel + first_panel * tile.panel_bytes;
    const auto* lines = static_cast<const FloatLine*>(tile.lines);
    const std::int64_t num_groups = tile.columns / kGroupColumns;
    for (std::int64_t g = 0; g < num_groups; ++g, lines += 2 * tile.row_stride) {
      GroupWeights weights[kPanels];
      GroupScales scales[kPanels];
      OCTAVO_UNROLL
      for (int p = 0; p < kPanels; ++p) {
        weights[p] = Format::weights(panel + p * tile.panel_bytes, g);
        scales[p] = min_of_offset(Format::scales(panel + p * tile.panel_bytes, g));
      }
      OCTAVO_UNROLL
      for (int column = 0; column < kGroupColumns; ++column) {
        const FloatLine* line = lines + column / 16 * tile.row_stride;
        const int half = Format::kNumScales == 2 ? column / 16 : 0;
        OCTAVO_UNROLL
        for (int p = 0; p < kPanels; ++p) {
          const F32x16 stored = stored_column(weights[p], column);
          const F32x16 weight = fma(scales[p].scale[half], stored, scales[p].min[half]);
          OCTAVO_UNROLL
          for (int r = 0; r < kRows; ++r)
            sums[p][r] = fma(weight, set1(line[r].values[column % 16]), sums[p][r]);
        }
      }
    }
    store_tile(sums, tile, first_panel);
  }

  // scale * (stored - offset) = fma(scale, stored, -offset * scale), without rounding: scales have 18 bits at
  // most.
  OCTAVO_INLINE GroupScales min_of_offset(GroupScales scales) {
    if constexpr (Format::kHasOffset) {
      for (int i = 0; i < Format::kNumScales; ++i) {
        scales.min[i] = mul(scales.scale[i], set1(Format::kNibbles ? -8.0f : -128.0f));
      }
    }
    return scales;
  }
};

struct Float32 {
  using Element = float;
  OCTAVO_INLINE F32x16 expand(const float* source) { return load(source); }
};
struct Float16 {
  using Element = std::uint16_t;
  OCTAVO_INLINE F32x16 expand(const std::uint16_t* source) { return load_f16(source); }
};
struct BFloat16 {
  using Element = std::uint16_t;
  OCTAVO_INLINE F32x16 expand(const std::uint16_t* source) { return load_bf16(source); }
};

template <class Format>
struct FloatProduct {
  using Element = typename Format::Element;

  static constexpr int panels_at_once(int rows) { return float_panels(rows); }

  template <int kPanels, int kRows>
  OCTAVO_INLINE void multiply(const MatmulTile& tile, std::int64_t first_panel) {
    F32x16 sums[kPanels][kRows] = {};
    const std::byte* panel = tile.panel + first_panel * tile.panel_bytes;
    const auto* line = static_cast<const FloatLine*>(tile.lines);
    for (std::int64_t first = 0; first < tile.columns; first += 16, line += tile.row_stride) {
      const std::int64_t num_columns = tile.columns - first < 16 ? tile.columns - first : 16;
      for (std::int64_t column = 0; column < num_columns; ++column) {
        OCTAVO_UNROLL
        for (int p = 0; p < kPanels; ++p) {
          const auto* elements = reinterpret_cast<const Element*>(panel + p * tile.panel_bytes);
          const F32x16 weight = Format::expand(elements + (first + column) * kPanelRows);
          OCTAVO_UNROLL
          for (int r = 0; r < kRows; ++r) sums[p][r] = fma(weight, set1(line[r].values[column]), sums[p][r]);
        }
      }
    }
    store_tile(sums, tile, first_panel);
  }
};

template <class Product, int kRows>
void multiply_tile(const MatmulTile& tile) {
  constexpr int kPanels = Product::panels_at_once(kRows);
  const std::int64_t num_panels = (tile.num_outputs + kPanelRows - 1) / kPanelRows;
  std::int64_t panel = 0;
  for (; panel + kPanels <= num_panels; panel += kPanels)
    Product::template multiply<kPanels, kRows>(tile, panel);
  if constexpr (kPanels > 1) {
    for (; panel < num_panels; ++panel) Product::template multiply<1, kRows>(tile, panel);
  }
}

// ---- rounding of activations --------------------------------------------------------------------

OCTAVO_INLINE std::int32_t sum_of_half(const std::int8_t* values) {
  std::int32_t sum = 0;
  for (int i = 0; i < kGroupColumns / 2; ++i) sum += values[i];
  return sum;
}

OCTAVO_INLINE void set_line(const float* values, Int8Line& line) {
  line = {};
  line.scale = int8_scale(values, kGroupColumns);
  round_to_int8(values, kGroupColumns, line.scale, line.values);
  const std::int32_t first = sum_of_half(line.values), second = sum_of_half(line.values + kGroupColumns / 2);
  line.scaled_sum = line.scale * static_cast<float>(first + second);
  line.scaled_half_sums[0] = line.scale * static_cast<float>(first);
  line.scaled_half_sums[1] = line.scale * static_cast<float>(second);
  line.negative_sum = -(first + second);
  line.negative_half_sums[0] = -first;
  line.negative_half_sums[1] = -second;
}

void set_int8_row(const float* values, std::int64_t columns, Int8Line* first, std::int64_t row_stride) {
  const std::int64_t num_groups = columns / kGroupColumns;
  for (std::int64_t g = 0; g < num_groups; ++g) set_line(values + g * kGroupColumns, first[g * row_stride]);
}

// ---- the table ----------------------------------------------------------------------------------

template <class Product, int kRows>
constexpr void fill_rows(TileFunction* tiles) {
  if constexpr (kRows > 0) {
    tiles[kRows - 1] = multiply_tile<Product, kRows>;
    fill_rows<Product, kRows - 1>(tiles);
  }
}

template <template <class> class Product, int kRows, int kFormat = 0>
constexpr void fill_quantised(TileKernels& kernels) {
  if constexpr (kFormat < kNumQuantisedFormats) {
    fill_rows<Product<GroupFormat<static_cast<PanelFormat>(kFormat)>>, kRows>(kernels.tiles[kFormat]);
    fill_quantised<Product, kRows, kFormat + 1>(kernels);
  }
}

constexpr MatmulTable make_table() {
  MatmulTable table = {};
  table.int8.max_rows = kTileRows;
  fill_quantised<Int8Product, kTileRows>(table.int8);
  table.f32.max_rows = kTileRows;
  fill_quantised<ExpandingProduct, kTileRows>(table.f32);
  fill_rows<FloatProduct<Float32>, kTileRows>(table.f32.tiles[static_cast<int>(PanelFormat::kF32)]);
  fill_rows<FloatProduct<Float16>, kTileRows>(table.f32.tiles[static_cast<int>(PanelFormat::kF16)]);
  fill_rows<FloatProduct<BFloat16>, kTileRows>(table.f32.tiles[static_cast<int>(PanelFormat::kBf16)]);
  table.set_int8_row = set_int8_row;
  return table;
}

}  // namespace

extern constinit const MatmulTable kMatmulTable = make_table();

}  // namespace octavo::kernels::cpu::OCTAVO_ISA
