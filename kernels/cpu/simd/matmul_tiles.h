// What products of every kind of activation have in common: where a group of a panel lies and what it is
// scaled with, tiles of panels and rows, and the table of their functions. For the two sources that multiply:
// matmul_integers.cc and matmul_floats.cc.
#pragma once

#include "kernels/cpu/simd.h"
#include "kernels/cpu/simd/matmul_numbers.h"
#include "kernels/cpu/simd/matmul_table.h"

namespace octavo::kernels::cpu::OCTAVO_ISA {

// ---- formats: where a group lies, its weights and scales

struct GroupScales {
  F32x16 scale[2], min[2];  // [half]; formats without halves use the first only
};

OCTAVO_INLINE F32x16 load_half_floats(const std::byte* source) {
  return load_f16(reinterpret_cast<const std::uint16_t*>(source));
}
OCTAVO_INLINE F32x16 load_floats(const std::byte* source) {
  return load(reinterpret_cast<const float*>(source));
}

template <PanelFormat kFormat_>
struct GroupFormat {
  static constexpr PanelFormat kFormat = kFormat_;
  static constexpr PanelTraits kTraits = traits_of(kFormat);
  static constexpr PanelBytes kBytes = kTraits.bytes;
  static constexpr StoredNumbers kNumbers = kTraits.numbers;
  static constexpr bool kHasMin = kTraits.has_min;
  static constexpr ScaleLayout kScales = kTraits.scales;
  static constexpr int kNumScales = num_scales(kScales);

  OCTAVO_INLINE const std::byte* head(const std::byte* panel, std::int64_t index) {
    return panel + index / kBytes.head_groups * (kBytes.head + kBytes.head_groups * kBytes.group());
  }
  OCTAVO_INLINE const std::byte* group(const std::byte* panel, std::int64_t index) {
    if constexpr (kBytes.head == 0) return panel + index * kBytes.group();
    return head(panel, index) + kBytes.head + index % kBytes.head_groups * kBytes.group();
  }

  OCTAVO_INLINE GroupScales scales(const std::byte* panel, std::int64_t index) {
    const std::byte* source = group(panel, index) + kBytes.weights;
    GroupScales result = {};
    if constexpr (kScales == ScaleLayout::kHalf) {
      result.scale[0] = load_half_floats(source);
      if constexpr (kHasMin) result.min[0] = load_half_floats(source + 2 * kPanelRows);
    } else if constexpr (kScales == ScaleLayout::kPower) {
      result.scale[0] = load_powers(source);
    } else if constexpr (kScales == ScaleLayout::kE4m3Halves) {
      for (int half = 0; half < 2; ++half) result.scale[half] = load_halved_e4m3(source + half * kPanelRows);
    } else if constexpr (kScales == ScaleLayout::kHeadZero) {
      result.scale[0] = load_floats(head(panel, index));
      result.min[0] = sub(zero(), mul(result.scale[0], zero_points(panel, index)));
    } else if constexpr (kScales == ScaleLayout::kHeadFloat) {
      // Where numbers are loaded, they come divided by the factor.
      result.scale[0] = mul(load_floats(head(panel, index)), set1(kE4m3Factor));
    } else if constexpr (kScales == ScaleLayout::kFloat || kScales == ScaleLayout::kFloatHalves) {
      for (int half = 0; half < kNumScales; ++half) {
        result.scale[half] = load_floats(source + half * 4 * kPanelRows);
        if constexpr (kHasMin) result.min[half] = load_floats(source + (2 + half) * 4 * kPanelRows);
      }
    } else {
      load_integers_of_scales(source, result);
      multiply_by_head(head(panel, index), result);
    }
    return result;
  }

  // Less the offset.
  OCTAVO_INLINE F32x16 zero_points(const std::byte* panel,
                                   std::int64_t index) requires(kScales == ScaleLayout::kHeadZero) {
    return load_int8(reinterpret_cast<const std::int8_t*>(head(panel, index)) + 4 * kPanelRows);
  }

 private:
  // Those that a head multiplies.
  OCTAVO_INLINE void load_integers_of_scales(const std::byte* source, GroupScales& result) {
    const auto* const bytes = reinterpret_cast<const std::int8_t*>(source);
    if constexpr (kScales == ScaleLayout::kSuper) {
      load_six_bit_pairs(source, result.scale[0], result.min[0]);
    } else if constexpr (kScales == ScaleLayout::kByte || kScales == ScaleLayout::kByteHalves) {
      for (int half = 0; half < kNumScales; ++half) result.scale[half] = load_int8(bytes + half * kPanelRows);
    } else if constexpr (kScales == ScaleLayout::kNibbleHalves) {
      for (int half = 0; half < 2; ++half)
        load_nibble_pairs(source + half * kPanelRows, result.scale[half], result.min[half]);
    } else if constexpr (kScales == ScaleLayout::kOddNibble) {
      result.scale[0] = load_row_nibbles(source);
    } else if constexpr (kScales == ScaleLayout::kOddWord) {
      result.scale[0] = load_three_bits<12>(source - traits_of(kNumbers.grid).high_bytes());
    } else {
      static_assert(kScales == ScaleLayout::kOddNibbleHalves);
      load_nibble_pairs(source, result.scale[0], result.scale[1]);
    }
  }

  OCTAVO_INLINE void multiply_by_head(const std::byte* head, GroupScales& scales) {
    F32x16 factor = load_half_floats(head);
    constexpr float kUnit = traits_of(kNumbers.grid).unit;
    if constexpr (kNumbers.grid != NumberGrid::kNone && kUnit != 1.0f) factor = mul(factor, set1(kUnit));
    for (int i = 0; i < kNumScales; ++i) {
      if constexpr (kNumbers.grid != NumberGrid::kNone)
        scales.scale[i] = fma(set1(2.0f), scales.scale[i], set1(1.0f));
      scales.scale[i] = mul(factor, scales.scale[i]);
      if constexpr (kHasMin)
        scales.min[i] = sub(zero(), mul(load_half_floats(head + 2 * kPanelRows), scales.min[i]));
    }
  }
};

// Into the second-level cache. Of the buffers in which the first-level cache waits for memory there are too
// few for the memory's speed, and activations would wait for one of them (Zen 4, 4 rows of Q4_0: 1.65 of the
// time).
OCTAVO_INLINE void ask_for(const std::byte* bytes, std::int64_t count) {
  constexpr std::int64_t kCacheLine = 64;
  constexpr int kIntoSecondLevel = 2;
  for (std::int64_t offset = 0; offset < count; offset += kCacheLine)
    __builtin_prefetch(bytes + offset, /*rw=*/0, kIntoSecondLevel);
}

// ---- tiles: kPanels panels times kRows rows

// A row's sums over a panel as they begin, and to where they go.
OCTAVO_INLINE F32x16 start_sums(const MatmulTile& tile, std::int64_t panel, int row) {
  if (!tile.continues) return zero();
  const float* const out = tile.out + row * tile.out_stride + panel * kPanelRows;
  const std::int64_t num_outputs = tile.num_outputs - panel * kPanelRows;
  return num_outputs >= kPanelRows ? load(out) : load_first(out, static_cast<int>(num_outputs));
}

OCTAVO_INLINE void store_sums(F32x16 sums, const MatmulTile& tile, std::int64_t panel, int row) {
  float* const out = tile.out + row * tile.out_stride + panel * kPanelRows;
  const std::int64_t num_outputs = tile.num_outputs - panel * kPanelRows;
  const F32x16 scaled = mul(sums, set1(tile.out_scale));
  if (num_outputs >= kPanelRows) {
    store(out, scaled);
  } else {
    store_first(out, scaled, static_cast<int>(num_outputs));
  }
}

template <int kPanels, int kRows>
OCTAVO_INLINE void start_tile(F32x16 (&sums)[kPanels][kRows], const MatmulTile& tile,
                              std::int64_t first_panel) {
  OCTAVO_UNROLL
  for (int p = 0; p < kPanels; ++p) {
    OCTAVO_UNROLL
    for (int r = 0; r < kRows; ++r) sums[p][r] = start_sums(tile, first_panel + p, r);
  }
}

template <int kPanels, int kRows>
OCTAVO_INLINE void store_tile(const F32x16 (&sums)[kPanels][kRows], const MatmulTile& tile,
                              std::int64_t first_panel) {
  OCTAVO_UNROLL
  for (int p = 0; p < kPanels; ++p) {
    OCTAVO_UNROLL
    for (int r = 0; r < kRows; ++r) store_sums(sums[p][r], tile, first_panel + p, r);
  }
}

// Weights come from memory as fast as it can only if they are asked for while there is arithmetic to do.
class Ahead {
 public:
  OCTAVO_INLINE_LAMBDA Ahead(const MatmulTile& tile, std::int64_t panel)
      : next_(tile.ahead + panel * tile.ahead_panel_bytes),
        step_(tile.ahead_step),
        panel_bytes_(tile.ahead_panel_bytes) {}

  template <int kPanels>
  OCTAVO_INLINE_LAMBDA void ask() {
    OCTAVO_UNROLL
    for (int p = 0; p < kPanels; ++p) ask_for(next_ + p * panel_bytes_, step_);
    next_ += step_;
  }

 private:
  const std::byte* next_;
  const std::int64_t step_, panel_bytes_;
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

// ---- the table

template <class Product, int kRows, int kFirst = 1>
constexpr void fill_rows(TileFunction* tiles) {
  if constexpr (kRows >= kFirst) {
    tiles[kRows - 1] = multiply_tile<Product, kRows>;
    fill_rows<Product, kRows - 1, kFirst>(tiles);
  }
}

// Whether nothing but planes that are expanded for many tiles has this format.
constexpr bool is_for_many_tiles(PanelFormat format) {
  return format > PanelFormat::kBytes && format < PanelFormat::kBytesGrid;
}

// Floats of 8 bits meet float activations only.
template <template <class> class Product, int kRows, int kPlaneTiles, int kIndex = 0>
constexpr void fill_quantised(TileKernels& kernels) {
  if constexpr (kIndex == 0) kernels.max_rows = kRows, kernels.max_plane_tiles = kPlaneTiles;
  if constexpr (kIndex < kNumQuantisedFormats) {
    constexpr auto kFormat = static_cast<PanelFormat>(kIndex);
    constexpr int kFirst = is_for_many_tiles(kFormat) ? least_expanded_rows(kRows, kPlaneTiles) : 1;
    using FormatProduct = Product<GroupFormat<kFormat>>;
    if constexpr (!is_always_expanded(kFormat) &&
                  (FormatProduct::kAddsFloats || !traits_of(kFormat).numbers.are_floats)) {
      fill_rows<FormatProduct, kRows, kFirst>(kernels.tiles[kIndex]);
    }
    fill_quantised<Product, kRows, kPlaneTiles, kIndex + 1>(kernels);
  }
}

}  // namespace octavo::kernels::cpu::OCTAVO_ISA
