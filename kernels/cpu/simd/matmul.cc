#include "kernels/cpu/simd/matmul_table.h"

#include "kernels/cpu/simd.h"
#include "kernels/cpu/simd/integer_rounding.h"

#if defined(OCTAVO_SIMD_PORTABLE)
#include "kernels/cpu/simd/matmul_portable.h"
#elif defined(OCTAVO_SIMD_AVX512)
#include "kernels/cpu/simd/integers_avx512.h"
#include "kernels/cpu/simd/matmul_dot.h"
#else
#include "kernels/cpu/simd/integers_avx2.h"
#include "kernels/cpu/simd/matmul_dot.h"
#endif
#include "kernels/cpu/simd/matmul_grids.h"

namespace octavo::kernels::cpu::OCTAVO_ISA {
namespace {

// ---- sizes of tiles

// Rows of a tile: as many as leave every accumulator in a register, and with 8-bit and 16-bit activations
// (kIntegerRows) as many integer sums beside them. Taller tiles load a row's values and unpack the weights
// less often.
//
// Panels at once: float activations add once for each column, so that one panel's chains would wait for
// themselves; and two panels share the loads of a row's values. Integer sums between two additions are work
// enough.
//
// Planes: taking bits out is work for units that integer products of 512 bits leave idle, so that expanding
// them first pays for many tiles only (Zen 4: 1.16 of the time for 20 rows of Q5_K, 1.04 for 64; for 64 of
// Q6_K 0.97).
#if defined(OCTAVO_SIMD_AVX512)
constexpr int kIntegerRows = 12, kFloatRows = 8;
constexpr int kIntegerPlaneTiles = 5, kFloatPlaneTiles = 2;
constexpr int float_panels(int) { return 2; }
#elif defined(OCTAVO_SIMD_AVX2)
constexpr int kIntegerRows = 6, kFloatRows = 6;
constexpr int kIntegerPlaneTiles = 1, kFloatPlaneTiles = 1;
constexpr int float_panels(int rows) { return rows <= 2 ? 2 : 1; }
#else
constexpr int kIntegerRows = 4, kFloatRows = 4;
constexpr int kIntegerPlaneTiles = 1, kFloatPlaneTiles = 1;
constexpr int float_panels(int) { return 1; }
#endif

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

// ---- 8-bit and 16-bit activations

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

// ---- tiles: kPanels panels times kRows rows

template <int kPanels, int kRows>
OCTAVO_INLINE void start_tile(F32x16 (&sums)[kPanels][kRows], const MatmulTile& tile,
                              std::int64_t first_panel) {
  OCTAVO_UNROLL
  for (int p = 0; p < kPanels; ++p) {
    const float* out = tile.out + (first_panel + p) * kPanelRows;
    const std::int64_t num_outputs = tile.num_outputs - (first_panel + p) * kPanelRows;
    OCTAVO_UNROLL
    for (int r = 0; r < kRows; ++r) {
      if (!tile.continues) {
        sums[p][r] = zero();
      } else if (num_outputs >= kPanelRows) {
        sums[p][r] = load(out + r * tile.out_stride);
      } else {
        sums[p][r] = load_first(out + r * tile.out_stride, static_cast<int>(num_outputs));
      }
    }
  }
}

template <int kPanels, int kRows>
OCTAVO_INLINE void store_tile(const F32x16 (&sums)[kPanels][kRows], const MatmulTile& tile,
                              std::int64_t first_panel) {
  OCTAVO_UNROLL
  for (int p = 0; p < kPanels; ++p) {
    float* out = tile.out + (first_panel + p) * kPanelRows;
    const std::int64_t num_outputs = tile.num_outputs - (first_panel + p) * kPanelRows;
    OCTAVO_UNROLL
    for (int r = 0; r < kRows; ++r) {
      const F32x16 scaled = mul(sums[p][r], set1(tile.out_scale));
      if (num_outputs >= kPanelRows) {
        store(out + r * tile.out_stride, scaled);
      } else {
        store_first(out + r * tile.out_stride, scaled, static_cast<int>(num_outputs));
      }
    }
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

template <class Format, class Line>
struct IntegerProduct {
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

// Quantised weights expanded on the way: w = fma(scale, stored, min).
template <class Format>
struct ExpandingProduct {
  // Offset times scale may be infinite where the weight is not; the same number otherwise.
  static constexpr bool kSubtractsFirst = Format::kScales == ScaleLayout::kPower;

  static constexpr int panels_at_once(int rows) { return float_panels(rows); }

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
          const F32x16 stored = stored_column<Format::kNumbers>(weights[p], 4 * kHalf + quad, column);
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

  static constexpr int panels_at_once(int rows) { return float_panels(rows); }

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

template <template <class> class Product, int kRows, int kPlaneTiles, int kIndex = 0>
constexpr void fill_quantised(TileKernels& kernels) {
  if constexpr (kIndex == 0) kernels.max_rows = kRows, kernels.max_plane_tiles = kPlaneTiles;
  if constexpr (kIndex < kNumQuantisedFormats) {
    constexpr auto kFormat = static_cast<PanelFormat>(kIndex);
    constexpr int kFirst = is_for_many_tiles(kFormat) ? least_expanded_rows(kRows, kPlaneTiles) : 1;
    if constexpr (!is_always_expanded(kFormat))
      fill_rows<Product<GroupFormat<kFormat>>, kRows, kFirst>(kernels.tiles[kIndex]);
    fill_quantised<Product, kRows, kPlaneTiles, kIndex + 1>(kernels);
  }
}

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

constexpr MatmulTable make_table() {
  MatmulTable table = {};
  fill_quantised<Int8Product, kIntegerRows, kIntegerPlaneTiles>(table.int8);
  fill_quantised<Int16Product, kIntegerRows, kIntegerPlaneTiles>(table.int16);
  fill_quantised<ExpandingProduct, kFloatRows, kFloatPlaneTiles>(table.f32);
  fill_rows<FloatProduct<Float32>, kFloatRows>(table.f32.tiles[static_cast<int>(PanelFormat::kF32)]);
  fill_rows<FloatProduct<Float16>, kFloatRows>(table.f32.tiles[static_cast<int>(PanelFormat::kF16)]);
  fill_rows<FloatProduct<BFloat16>, kFloatRows>(table.f32.tiles[static_cast<int>(PanelFormat::kBf16)]);
  fill_expand(table.expand);
  table.expand[static_cast<int>(PanelFormat::kF16) - kFirstExpandable] = expand_floats<Float16>;
  table.expand[static_cast<int>(PanelFormat::kBf16) - kFirstExpandable] = expand_floats<BFloat16>;
  table.set_int8_row = set_row<Int8Line>;
  table.set_int16_row = set_row<Int16Line>;
  return table;
}

}  // namespace

extern constinit const MatmulTable kMatmulTable = make_table();

}  // namespace octavo::kernels::cpu::OCTAVO_ISA
