// The tile registers of AMX (Intel SDM, volume 1, chapter 18): eight, each up to 16 rows of 64 bytes. Written
// as assembly, because intrinsics want the number of a register as a literal.
#pragma once

#include "kernels/cpu/simd.h"

namespace octavo::kernels::cpu::OCTAVO_ISA {

constexpr int kTileRegisterRows = 16, kTileRegisterBytes = 64;

// What LDTILECFG reads.
struct alignas(64) TileShapes {
  std::uint8_t palette = 1, start_row = 0;
  std::uint8_t reserved[14] = {};
  std::uint16_t row_bytes[16] = {};
  std::uint8_t rows[16] = {};
};

OCTAVO_INLINE void set_tile_shapes(const TileShapes& shapes) {
  asm volatile("ldtilecfg %0" : : "m"(shapes) : "memory");
}
// Tiles in use are state that the system saves at every switch of threads.
OCTAVO_INLINE void release_tiles() { asm volatile("tilerelease"); }

template <int kTile>
OCTAVO_INLINE void zero_tile() {
  asm volatile("tilezero %%tmm%c0" : : "i"(kTile));
}
template <int kTile>
OCTAVO_INLINE void load_tile(const void* source, std::int64_t stride) {
  asm volatile("tileloadd (%1,%2,1), %%tmm%c0" : : "i"(kTile), "r"(source), "r"(stride) : "memory");
}
template <int kTile>
OCTAVO_INLINE void store_tile_register(void* target, std::int64_t stride) {
  asm volatile("tilestored %%tmm%c0, (%1,%2,1)" : : "i"(kTile), "r"(target), "r"(stride) : "memory");
}
// Adds to the 32-bit numbers of kSum[r][n] the sums over k of rows[r][k] * columns[k / 4][n][k % 4], signed
// bytes.
template <int kSum, int kRows, int kColumns>
OCTAVO_INLINE void add_tile_products() {
  asm volatile("tdpbssd %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(kSum), "i"(kRows), "i"(kColumns));
}

}  // namespace octavo::kernels::cpu::OCTAVO_ISA
