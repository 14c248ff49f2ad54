#include "kernels/cpu/simd/matmul_table.h"

#include "kernels/cpu/simd.h"
#include "kernels/cpu/simd/matmul_grids.h"
#include "kernels/cpu/simd/matmul_tiles.h"

namespace octavo::kernels::cpu::OCTAVO_ISA {
namespace {

// Rows of a tile: as many as leave every accumulator in a register. Panels at once: a sum is added to once
// for each column, so that one panel's chains would wait for themselves; and two panels share the loads of a
// row's values.
#if defined(OCTAVO_SIMD_AVX512)
constexpr int kMostRows = 8, kPlaneTiles = 2;
constexpr int panels_of_tile(int) { return 2; }
#elif defined(OCTAVO_SIMD_AVX2)
constexpr int kMostRows = 6, kPlaneTiles = 1;
constexpr int panels_of_tile(int rows) { return rows <= 2 ? 2 : 1; }
#else
constexpr int kMostRows = 4, kPlaneTiles = 1;
constexpr int panels_of_tile(int) { return 1; }
#endif

// ---- planes and grids to bytes

// As numbers that need no head where there are two of them, or a grid's.
template <class Stored>
OCTAVO_INLINE void expand_scales(const std::byte* panel, std::int64_t group, std::byte* out) {
  using Bytes = GroupFormat<Stored::kTraits.expanded>;
  if constexpr (Stored::kScales == ScaleLayout::kHead) {
    __builtin_memcpy(out, Stored::head(panel, group), Bytes::kBytes.scales);
  } else if constexpr (Stored::kScales == Bytes::kScales) {
    __builtin_memcpy(out, Stored::group(panel, group) + Stored::kBytes.weights, Stored::kBytes.scales);
  } else {
    const GroupScales scales = Stored::scales(panel, group);
    auto* const floats = reinterpret_cast<float*>(out);
    for (int i = 0; i < Stored::kNumScales; ++i) {
      store(floats + i * kPanelRows, scales.scale[i]);
      if constexpr (Stored::kHasMin) store(floats + (2 + i) * kPanelRows, scales.min[i]);
    }
  }
}

template <PanelFormat kFormat>
void expand_planes(const std::byte* planes, std::int64_t columns, std::byte* out) {
  using Planes = GroupFormat<kFormat>;
  using Bytes = GroupFormat<Planes::kTraits.expanded>;
  constexpr int kAdded = Bytes::kNumbers.offset - Planes::kNumbers.offset;
  const std::int64_t num_groups = columns / kGroupColumns;
  for (std::int64_t g = 0; g < num_groups; ++g) {
    const std::byte* const group = Planes::group(planes, g);
    if constexpr (Bytes::kBytes.head > 0) {
      if (g % kSuperGroups == 0) {
        __builtin_memcpy(out, Planes::head(planes, g), Bytes::kBytes.head);
        out += Bytes::kBytes.head;
      }
    }
    OCTAVO_UNROLL
    for (int q = 0; q < kGroupColumns / 4; ++q) expand_quad<Planes::kNumbers>(group, q, kAdded, out + 64 * q);
    expand_scales<Planes>(planes, g, out + Bytes::kBytes.weights);
    out += Bytes::kBytes.group();
  }
}

template <PanelFormat kFormat>
void expand_grid(const std::byte* panel, std::int64_t columns, std::byte* out) {
  using Stored = GroupFormat<kFormat>;
  using Bytes = GroupFormat<Stored::kTraits.expanded>;
  const std::int64_t num_groups = columns / kGroupColumns;
  for (std::int64_t first = 0; first < num_groups; first += kSuperGroups) {
    expand_groups<Stored::kNumbers.grid>(Stored::group(panel, first), Stored::kBytes.group(),
                                         Bytes::kNumbers.offset, out, Bytes::kBytes.group());
    for (int i = 0; i < kSuperGroups; ++i) {
      expand_scales<Stored>(panel, first + i, out + Bytes::kBytes.weights);
      out += Bytes::kBytes.group();
    }
  }
}

// ---- products

// Quantised weights expanded on the way: w = fma(scale, stored, min).
template <class Format>
struct ExpandingProduct {
  static constexpr bool kAddsFloats = true;
  // Offset times scale may be infinite where the weight is not, or have more bits than a float; the same
  // number otherwise.
  static constexpr bool kSubtractsFirst =
      Format::kScales == ScaleLayout::kPower || Format::kScales == ScaleLayout::kHeadZero;

  static constexpr int panels_at_once(int rows) { return panels_of_tile(rows); }

  template <int kPanels, int kRows>
  OCTAVO_INLINE void multiply(const MatmulTile& tile, std::int64_t first_panel) {
    F32x16 sums[kPanels][kRows];
    start_tile(sums, tile, first_panel);
    const std::byte* panel = tile.panel + first_panel * tile.panel_bytes;
    const auto* lines = static_cast<const FloatLine*>(tile.lines);
    const std::int64_t num_groups = tile.columns / kGroupColumns;
    Ahead ahead(tile, first_panel);
    for (std::int64_t g = 0; g < num_groups; ++g, lines += 2 * tile.row_stride) {
      ahead.ask<kPanels>();
      const std::byte* weights[kPanels];
      GroupScales scales[kPanels];
      OCTAVO_UNROLL
      for (int p = 0; p < kPanels; ++p) {
        weights[p] = Format::group(panel + p * tile.panel_bytes, g);
        scales[p] = min_of_offset(Format::scales(panel + p * tile.panel_bytes, g));
        if constexpr (Format::kScales == ScaleLayout::kHeadZero) {
          scales[p].min[0] = sub(scales[p].min[0], Format::zero_points(panel + p * tile.panel_bytes, g));
        }
      }
      add_half<0>(sums, weights, scales, lines);
      add_half<1>(sums, weights, scales, lines + tile.row_stride);
    }
    store_tile(sums, tile, first_panel);
  }

  template <int kHalf, int kPanels, int kRows>
  OCTAVO_INLINE void add_half(F32x16 (&sums)[kPanels][kRows], const std::byte* const (&weights)[kPanels],
                              const GroupScales (&scales)[kPanels], const FloatLine* line) {
    constexpr int kScale = Format::kNumScales == 2 ? kHalf : 0;
    for (int quad = 0; quad < 4; ++quad) {
      OCTAVO_UNROLL
      for (int column = 0; column < 4; ++column) {
        OCTAVO_UNROLL
        for (int p = 0; p < kPanels; ++p) {
          const F32x16 stored = number_of_column(weights[p], 4 * kHalf + quad, column);
          const F32x16 weight = kSubtractsFirst
                                    ? mul(scales[p].scale[kScale], add(stored, scales[p].min[kScale]))
                                    : fma(scales[p].scale[kScale], stored, scales[p].min[kScale]);
          OCTAVO_UNROLL
          for (int r = 0; r < kRows; ++r) {
            sums[p][r] = fma(weight, set1(line[r].values[4 * quad + column]), sums[p][r]);
          }
        }
      }
    }
  }

  OCTAVO_INLINE F32x16 number_of_column(const std::byte* weights, int quad, int column) {
    if constexpr (Format::kNumbers.are_floats) {
      return load_e4m3(reinterpret_cast<const std::uint8_t*>(weights) + (4 * quad + column) * kPanelRows);
    } else {
      return stored_column<Format::kNumbers>(weights, quad, column);
    }
  }

  // scale * (stored - offset) = fma(scale, stored, -offset * scale), without rounding: scales have 18 bits at
  // most.
  OCTAVO_INLINE GroupScales min_of_offset(GroupScales scales) {
    if constexpr (kSubtractsFirst) {
      scales.min[0] = set1(static_cast<float>(-Format::kNumbers.offset));
    } else if constexpr (Format::kNumbers.offset > 0) {
      for (int i = 0; i < Format::kNumScales; ++i) {
        scales.min[i] = mul(scales.scale[i], set1(static_cast<float>(-Format::kNumbers.offset)));
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
void expand_floats(const std::byte* panel, std::int64_t columns, std::byte* out) {
  const auto* elements = reinterpret_cast<const typename Format::Element*>(panel);
  auto* const floats = reinterpret_cast<float*>(out);
  for (std::int64_t i = 0; i < columns * kPanelRows; i += kPanelRows)
    store(floats + i, Format::expand(elements + i));
}

template <class Format>
struct FloatProduct {
  using Element = typename Format::Element;

  static constexpr int panels_at_once(int rows) { return panels_of_tile(rows); }

  template <int kPanels, int kRows>
  OCTAVO_INLINE void multiply(const MatmulTile& tile, std::int64_t first_panel) {
    F32x16 sums[kPanels][kRows];
    start_tile(sums, tile, first_panel);
    const std::byte* panel = tile.panel + first_panel * tile.panel_bytes;
    const auto* line = static_cast<const FloatLine*>(tile.lines);
    Ahead ahead(tile, first_panel);
    for (std::int64_t first = 0; first < tile.columns; first += 16, line += tile.row_stride) {
      ahead.ask<kPanels>();
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

// ---- the table

template <int kIndex = 0>
constexpr void fill_expand(ExpandFunction* expand) {
  constexpr auto kFormat = static_cast<PanelFormat>(kFirstExpandable + kIndex);
  if constexpr (is_quantised(kFormat)) {
    if constexpr (traits_of(kFormat).numbers.grid == NumberGrid::kNone) {
      expand[kIndex] = expand_planes<kFormat>;
    } else {
      expand[kIndex] = expand_grid<kFormat>;
    }
    fill_expand<kIndex + 1>(expand);
  }
}

constexpr FloatMatmulTable make_table() {
  FloatMatmulTable table = {};
  fill_quantised<ExpandingProduct, kMostRows, kPlaneTiles>(table.f32);
  fill_rows<FloatProduct<Float32>, kMostRows>(table.f32.tiles[static_cast<int>(PanelFormat::kF32)]);
  fill_rows<FloatProduct<Float16>, kMostRows>(table.f32.tiles[static_cast<int>(PanelFormat::kF16)]);
  fill_rows<FloatProduct<BFloat16>, kMostRows>(table.f32.tiles[static_cast<int>(PanelFormat::kBf16)]);
  fill_expand(table.expand);
  table.expand[static_cast<int>(PanelFormat::kF16) - kFirstExpandable] = expand_floats<Float16>;
  table.expand[static_cast<int>(PanelFormat::kBf16) - kFirstExpandable] = expand_floats<BFloat16>;
  return table;
}

}  // namespace

extern constinit const FloatMatmulTable kFloatMatmulTable = make_table();

}  // namespace octavo::kernels::cpu::OCTAVO_ISA
