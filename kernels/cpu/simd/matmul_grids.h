// Groups of a grid's indices (matmul_table.h) as bytes: looking entries up one after the other, unless
// grids_avx512.h does it in registers, and putting signs on them. Included by matmul_floats.cc only.
#pragma once

#include "kernels/cpu/simd.h"
#include "kernels/cpu/simd/matmul_numbers.h"
#include "kernels/cpu/simd/matmul_table.h"
#include "kernels/dequantize_grids.h"
#if defined(OCTAVO_SIMD_AVX512)
#include "kernels/cpu/simd/grids_avx512.h"
#endif

namespace octavo::kernels::cpu::OCTAVO_ISA {

template <NumberGrid kGrid>
OCTAVO_INLINE const auto* entries_of() {
  if constexpr (kGrid == NumberGrid::kIq2Xxs) return kIq2XxsGrid.entries;
  if constexpr (kGrid == NumberGrid::kIq2Xs) return kIq2XsGrid.entries;
  if constexpr (kGrid == NumberGrid::kIq2S) return kIq2SGrid.entries;
  if constexpr (kGrid == NumberGrid::kIq3Xxs) return kIq3XxsGrid.entries;
  if constexpr (kGrid == NumberGrid::kIq3S) return kIq3SGrid.entries;
  if constexpr (kGrid == NumberGrid::kIq1S || kGrid == NumberGrid::kIq1M) return kIq1Grid.entries;
}

// The upper bits of all indices of each row.
template <NumberGrid kGrid>
OCTAVO_INLINE void load_high_bits(const std::byte* group, std::uint16_t (&bits)[kPanelRows]) {
  constexpr GridTraits kTraits = traits_of(kGrid);
  const std::byte* const high = group + kTraits.index_bytes();
  if constexpr (kTraits.high_bytes() == kPanelRows / 2) {
    for (int r = 0; r < kPanelRows / 2; ++r) {
      bits[r] = static_cast<std::uint16_t>(high[r]) & 15;
      bits[kPanelRows / 2 + r] = static_cast<std::uint16_t>(high[r]) >> 4;
    }
  } else if constexpr (kTraits.high_bytes() == kPanelRows) {
    for (int r = 0; r < kPanelRows; ++r) bits[r] = static_cast<std::uint16_t>(high[r]);
  } else if constexpr (kTraits.high_bytes() > 0) {
    __builtin_memcpy(bits, high, sizeof bits);
  }
}

// out  [entries][16 rows][columns of an entry], 512 bytes
template <NumberGrid kGrid>
OCTAVO_INLINE void look_up_entries(const std::byte* group, std::byte* out) {
  constexpr GridTraits kTraits = traits_of(kGrid);
  constexpr int kEntries = kTraits.num_entries();
  const auto* const entries = entries_of<kGrid>();
  std::uint16_t high_bits[kPanelRows] = {};
  load_high_bits<kGrid>(group, high_bits);
  OCTAVO_UNROLL
  for (int i = 0; i < kEntries; ++i) {
    std::uint16_t indices[kPanelRows];
    for (int r = 0; r < kPanelRows; ++r) {
      const int high = high_bits[r] >> (kTraits.high_bits * i) & ((1 << kTraits.high_bits) - 1);
      indices[r] = static_cast<std::uint16_t>(static_cast<int>(group[i * kPanelRows + r]) | high << 8);
    }
    std::byte* const target = out + i * kPanelRows * kTraits.entry_columns;
    for (int r = 0; r < kPanelRows; ++r)
      __builtin_memcpy(target + r * kTraits.entry_columns, &entries[indices[r]], sizeof entries[0]);
  }
}

// What the entries of a group stand for, plus `offset`.
//   out  [8 quads][16 rows][4 columns]
template <NumberGrid kGrid>
OCTAVO_INLINE void sign_entries(const std::byte* group, const std::byte* looked_up, int offset,
                                std::byte* out) {
  constexpr GridTraits kTraits = traits_of(kGrid);
  constexpr int kQuads = kTraits.entry_columns / 4;
  const std::byte* const behind_indices = group + kTraits.index_bytes();
  OCTAVO_UNROLL
  for (int q = 0; q < kGroupColumns / 4; ++q) {
    const std::byte* const entries = looked_up + q / kQuads * 64 * kQuads;
    if constexpr (kTraits.has_signs) {
      sign_quad<kQuads>(entries, q % kQuads, behind_indices + kTraits.high_bytes(), q, offset, out + 64 * q);
    } else {
      const int bit = kGrid == NumberGrid::kIq1S ? 15 : 12 + q / kQuads;
      move_quad<kQuads>(entries, q % kQuads, behind_indices, bit, offset, out + 64 * q);
    }
  }
}

// kSuperGroups groups, each so many bytes behind the one before it. All entries are looked up before the
// first of them is read again: a load of a whole vector would wait until the entries that it covers have left
// the store buffer.
template <NumberGrid kGrid>
OCTAVO_INLINE void expand_groups(const std::byte* groups, std::int64_t group_bytes, int offset,
                                 std::byte* out, std::int64_t out_bytes) {
#if defined(OCTAVO_SIMD_AVX512)
  if constexpr (fits_registers(kGrid))
    return expand_groups_in_registers<kGrid>(groups, group_bytes, offset, out, out_bytes);
#endif
  alignas(64) std::byte looked_up[kSuperGroups][kGroupColumns * kPanelRows];
  for (int i = 0; i < kSuperGroups; ++i) look_up_entries<kGrid>(groups + i * group_bytes, looked_up[i]);
  for (int i = 0; i < kSuperGroups; ++i)
    sign_entries<kGrid>(groups + i * group_bytes, looked_up[i], offset, out + i * out_bytes);
}

}  // namespace octavo::kernels::cpu::OCTAVO_ISA
