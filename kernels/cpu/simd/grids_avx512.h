// Groups of a grid's indices (matmul_table.h) as bytes without leaving the registers: what matmul_grids.h
// does entry by entry. The codes of entries are looked up for 32 of them at once, in registers that hold 32
// codes each and are chosen among by the upper bits of the indices, and taken apart into numbers (Zen 4, one
// row of IQ3_S: 0.54 of the time). Included by matmul_grids.h only.
#pragma once

#include "kernels/cpu/simd/matmul_dot.h"
#include "kernels/cpu/simd/matmul_table.h"
#include "kernels/dequantize_grids.h"

namespace octavo::kernels::cpu::OCTAVO_ISA {

// IQ1's 2,048 entries are looked up quicker one by one.
constexpr bool fits_registers(NumberGrid grid) {
  return grid != NumberGrid::kIq1S && grid != NumberGrid::kIq1M;
}

template <NumberGrid kGrid>
OCTAVO_INLINE const auto& grid_of() {
  if constexpr (kGrid == NumberGrid::kIq2Xxs) return kIq2XxsGrid;
  if constexpr (kGrid == NumberGrid::kIq2Xs) return kIq2XsGrid;
  if constexpr (kGrid == NumberGrid::kIq2S) return kIq2SGrid;
  if constexpr (kGrid == NumberGrid::kIq3Xxs) return kIq3XxsGrid;
  if constexpr (kGrid == NumberGrid::kIq3S) return kIq3SGrid;
}

// So many registers of indices share what a look-up loads.
constexpr int kIndicesTogether = 4;

// found = the codes at each of the indices, of kSize.
template <int kSize>
OCTAVO_INLINE void look_up_codes(const std::uint16_t* codes, const Integers (&indices)[kIndicesTogether],
                                 Integers (&found)[kIndicesTogether]) {
  if constexpr (kSize == 64) {
    const Integers lower = _mm512_loadu_si512(codes), upper = _mm512_loadu_si512(codes + 32);
    OCTAVO_UNROLL
    for (int i = 0; i < kIndicesTogether; ++i) found[i] = _mm512_permutex2var_epi16(lower, indices[i], upper);
  } else {
    Integers upper[kIndicesTogether];
    look_up_codes<kSize / 2>(codes, indices, found);
    look_up_codes<kSize / 2>(codes + kSize / 2, indices, upper);
    OCTAVO_UNROLL
    for (int i = 0; i < kIndicesTogether; ++i) {
      const __mmask32 is_upper = _mm512_test_epi16_mask(indices[i], all_words(kSize / 2));
      found[i] = _mm512_mask_mov_epi16(found[i], is_upper, upper[i]);
    }
  }
}

// The upper bits of all indices of each row, twice.
template <NumberGrid kGrid>
OCTAVO_INLINE Integers high_bits_of_rows(const std::byte* group) {
  constexpr GridTraits kTraits = traits_of(kGrid);
  const auto* const high = reinterpret_cast<const __m128i*>(group + kTraits.index_bytes());
  __m128i bytes;
  if constexpr (kTraits.high_bytes() == kPanelRows) {
    bytes = _mm_loadu_si128(high);
  } else {
    static_assert(kTraits.high_bytes() == kPanelRows / 2);
    const __m128i pairs = _mm_loadl_epi64(high);
    bytes = _mm_unpacklo_epi64(pairs, _mm_srli_epi16(pairs, 4));
  }
  return _mm512_broadcast_i64x4(_mm256_cvtepu8_epi16(bytes));
}

// Of entries `first` and first + 1, the indices of the 16 rows of each.
template <NumberGrid kGrid>
OCTAVO_INLINE Integers indices_of_entries(const std::byte* group, int first) {
  constexpr int kBits = traits_of(kGrid).high_bits;
  const Integers low_bits =
      _mm512_cvtepu8_epi16(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(group + first * kPanelRows)));
  if constexpr (kBits == 0) {
    return low_bits;
  } else {
    const auto shift = static_cast<short>(kBits * first), next = static_cast<short>(shift + kBits);
    const Integers shifts = _mm512_inserti64x4(all_words(shift), _mm256_set1_epi16(next), 1);
    const Integers high_bits =
        bit_and(_mm512_srlv_epi16(high_bits_of_rows<kGrid>(group), shifts), all_words((1 << kBits) - 1));
    return bit_or(low_bits, _mm512_slli_epi16(high_bits, 8));
  }
}

// Each word of one half of the register, twice.
OCTAVO_INLINE Integers words_twice(Integers words, int half) {
  const __m512i rows = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  const __m512i places = _mm512_or_si512(rows, _mm512_slli_epi32(rows, 16));
  return _mm512_permutexvar_epi16(_mm512_add_epi16(places, all_words(static_cast<short>(16 * half))), words);
}

// The numbers of quad `index` of an entry, of each row. In each word first the first and the third column's
// code stand lowest, then the second and the fourth one's in the byte above.
template <NumberGrid kGrid>
OCTAVO_INLINE Integers quad_of_codes(Integers twice, int index) {
  constexpr int kBits = traits_of(kGrid).entry_columns == 4 ? 3 : 2, kCode = (1 << kBits) - 1;
  const int first = 4 * kBits * index, third = first + 2 * kBits;
  const Integers pairs = _mm512_srlv_epi16(twice, all_integers(first | third << 16));
  const Integers odd = bit_and(_mm512_slli_epi16(pairs, 8 - kBits), all_words(kCode << 8));
  return look_up(grid_of<kGrid>().values, bit_or(bit_and(pairs, all_words(kCode)), odd));
}

// What entries `first` and first + 1 of a group stand for, plus `offset`.
//   out  [8 quads][16 rows][4 columns], of the group
template <NumberGrid kGrid>
OCTAVO_INLINE void expand_entries(const std::byte* group, Integers codes, int first, int offset,
                                  std::byte* out) {
  constexpr GridTraits kTraits = traits_of(kGrid);
  constexpr int kQuads = kTraits.entry_columns / 4;
  const Integers signs = load_integers(group + kTraits.index_bytes() + kTraits.high_bytes());
  OCTAVO_UNROLL
  for (int i = 0; i < 2 * kQuads; ++i) {
    const int quad = first * kQuads + i;
    const Integers numbers = quad_of_codes<kGrid>(words_twice(codes, i / kQuads), i % kQuads);
    store_integers(out + 64 * quad, signed_numbers(numbers, signs, quad, offset));
  }
}

// As expand_groups in matmul_grids.h.
template <NumberGrid kGrid>
OCTAVO_INLINE void expand_groups_in_registers(const std::byte* groups, std::int64_t group_bytes, int offset,
                                              std::byte* out, std::int64_t out_bytes) {
  constexpr int kPairs = traits_of(kGrid).num_entries() / 2, kTogether = kIndicesTogether / kPairs;
  const auto& codes_of_grid = grid_of<kGrid>().codes;
  constexpr int kSize = static_cast<int>(sizeof codes_of_grid / sizeof codes_of_grid[0]);
  for (int first = 0; first < kSuperGroups; first += kTogether) {
    const std::byte* const group = groups + first * group_bytes;
    Integers indices[kIndicesTogether], codes[kIndicesTogether];
    OCTAVO_UNROLL
    for (int i = 0; i < kIndicesTogether; ++i)
      indices[i] = indices_of_entries<kGrid>(group + i / kPairs * group_bytes, 2 * (i % kPairs));
    look_up_codes<kSize>(codes_of_grid, indices, codes);
    OCTAVO_UNROLL
    for (int i = 0; i < kIndicesTogether; ++i) {
      expand_entries<kGrid>(group + i / kPairs * group_bytes, codes[i], 2 * (i % kPairs), offset,
                            out + (first + i / kPairs) * out_bytes);
    }
  }
}

}  // namespace octavo::kernels::cpu::OCTAVO_ISA
