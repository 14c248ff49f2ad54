// Integer products of one group of weights in plain C++; matmul_avx2.h and matmul_avx512.h hold the same
// functions. Included by matmul.cc only, inside the namespace of the instruction set.
#pragma once

#include "kernels/cpu/simd.h"
#include "kernels/cpu/simd/matmul_table.h"

namespace octavo::kernels::cpu::OCTAVO_ISA {

// Stored weights of 16 rows and 32 columns as bytes; quads[q] holds columns 4q..4q+3 of row r at 4r..4r+3.
struct GroupWeights {
  std::uint8_t quads[8][64];
};

OCTAVO_INLINE GroupWeights unpack_nibbles(const std::byte* source) {
  GroupWeights weights;
  for (int i = 0; i < 256; ++i) {
    const auto pair = static_cast<std::uint8_t>(source[i]);
    weights.quads[i / 64][i % 64] = pair & 15u;
    weights.quads[i / 64 + 4][i % 64] = static_cast<std::uint8_t>(pair >> 4);
  }
  return weights;
}

OCTAVO_INLINE GroupWeights load_bytes(const std::byte* source) {
  GroupWeights weights;
  __builtin_memcpy(weights.quads, source, sizeof weights.quads);
  return weights;
}

// float(sum of (stored - offset) * value) over quads kFirst <= q < kLast, exact. `negative_sum` is minus the
// sum of the same values; the offset is 8 for nibbles, 128 for bytes, if the format has one.
template <int kFirst, int kLast, bool kNibbles, bool kOffset>
OCTAVO_INLINE F32x16 dot(const GroupWeights& weights, const Int8Line& line, std::int32_t negative_sum) {
  std::int32_t sums[kLanes];
  for (int r = 0; r < kLanes; ++r) sums[r] = kOffset ? negative_sum * (kNibbles ? 8 : 128) : 0;
  for (int q = kFirst; q < kLast; ++q) {
    for (int r = 0; r < kLanes; ++r) {
      for (int c = 0; c < 4; ++c) sums[r] += weights.quads[q][4 * r + c] * line.values[4 * q + c];
    }
  }
  F32x16 result;
  for (int r = 0; r < kLanes; ++r) result.lane[r] = static_cast<float>(sums[r]);
  return result;
}

// The stored numbers of one column.
OCTAVO_INLINE F32x16 stored_column(const GroupWeights& weights, int column) {
  F32x16 result;
  for (int r = 0; r < kLanes; ++r) {
    result.lane[r] = static_cast<float>(weights.quads[column / 4][4 * r + column % 4]);
  }
  return result;
}

// 16 pairs of 6-bit numbers in 24 bytes. Byte r: scale of row r, and above it the low two bits of its min;
// byte 16 + r: the high four bits of the mins of rows r and r + 8.
OCTAVO_INLINE void load_six_bit_pairs(const std::byte* source, F32x16& scales, F32x16& mins) {
  for (int r = 0; r < kLanes; ++r) {
    const auto first = static_cast<std::uint32_t>(source[r]);
    const auto nibbles = static_cast<std::uint32_t>(source[16 + r % 8]);
    scales.lane[r] = static_cast<float>(first & 63u);
    mins.lane[r] = static_cast<float>(first >> 6 | (nibbles >> (r / 8 * 4) & 15u) << 2);
  }
}

}  // namespace octavo::kernels::cpu::OCTAVO_ISA
