// Integer products of one group of weights with some rows of activations in plain C++; matmul_dot.h holds
// the same functions. Included by matmul.cc only, inside the namespace of the instruction set.
#pragma once

#include "kernels/cpu/simd.h"
#include "kernels/cpu/simd/matmul_table.h"

namespace octavo::kernels::cpu::OCTAVO_ISA {

// One number for each of the rows that a vector covers; a panel takes kParts of them.
struct Integers {
  std::int32_t lane[kLanes];
};
using Floats = F32x16;
constexpr int kParts = 1;

template <int kPart>
OCTAVO_INLINE Floats& part_of(F32x16& a) {
  return a;
}
template <int kPart>
OCTAVO_INLINE Floats part_of(const F32x16& a) {
  return a;
}
OCTAVO_INLINE Floats broadcast(float a) { return set1(a); }
OCTAVO_INLINE Floats to_floats(const Integers& a) {
  Floats result;
  for (int r = 0; r < kLanes; ++r) result.lane[r] = static_cast<float>(a.lane[r]);
  return result;
}

// The stored number of column 4 * quad + in_quad % 4 in row in_quad / 4.
template <bool kNibbles>
OCTAVO_INLINE std::uint8_t stored_number(const std::byte* weights, int quad, int in_quad) {
  if constexpr (!kNibbles) return static_cast<std::uint8_t>(weights[64 * quad + in_quad]);
  const auto pair = static_cast<unsigned>(weights[64 * (quad % 4) + in_quad]);
  return static_cast<std::uint8_t>(quad < 4 ? pair & 15u : pair >> 4);
}

// The stored numbers of column 4 * quad + column_in_quad.
template <bool kNibbles>
OCTAVO_INLINE F32x16 stored_column(const std::byte* weights, int quad, int column_in_quad) {
  F32x16 result;
  for (int r = 0; r < kLanes; ++r) {
    result.lane[r] = static_cast<float>(stored_number<kNibbles>(weights, quad, 4 * r + column_in_quad));
  }
  return result;
}

constexpr int kPlaceInInt16Line[4] = {0, 2, 1, 3};
OCTAVO_INLINE std::int32_t value_of(const Int8Line& line, int quad, int column) {
  return line.values[4 * quad + column];
}
OCTAVO_INLINE std::int32_t value_of(const Int16Line& line, int quad, int column) {
  return line.values[4 * quad + kPlaceInInt16Line[column]];
}

// sums[r] = sum of (stored - offset) * value over quads kFirst <= q < kLast and line r, exact. The offset is
// 8 for nibbles and 128 for bytes, if the format has one.
template <bool kNibbles, bool kOffset, int kPart, int kFirst, int kLast, class Line, int kRows>
OCTAVO_INLINE void dot(const std::byte* weights, const Line* lines, Integers (&sums)[kRows]) {
  constexpr std::int32_t kSubtracted = !kOffset ? 0 : kNibbles ? 8 : 128;
  std::uint8_t stored[8][4 * kLanes];
  for (int q = kFirst; q < kLast; ++q) {
    for (int i = 0; i < 4 * kLanes; ++i) stored[q][i] = stored_number<kNibbles>(weights, q, i);
  }
  for (int r = 0; r < kRows; ++r) {
    std::int32_t value_sum = 0;
    for (int q = kFirst; q < kLast; ++q) {
      for (int c = 0; c < 4; ++c) value_sum += value_of(lines[r], q, c);
    }
    for (int lane = 0; lane < kLanes; ++lane) sums[r].lane[lane] = -kSubtracted * value_sum;
    for (int q = kFirst; q < kLast; ++q) {
      for (int lane = 0; lane < kLanes; ++lane) {
        for (int c = 0; c < 4; ++c) {
          sums[r].lane[lane] += stored[q][4 * lane + c] * value_of(lines[r], q, c);
        }
      }
    }
  }
}

// Floats that hold small integers, as those: 32 bytes, or 16 words in the order of Int16Line.
OCTAVO_INLINE void store_bytes(std::int8_t* target, const F32x16& low, const F32x16& high) {
  for (int i = 0; i < kLanes; ++i) target[i] = static_cast<std::int8_t>(low.lane[i]);
  for (int i = 0; i < kLanes; ++i) target[kLanes + i] = static_cast<std::int8_t>(high.lane[i]);
}
OCTAVO_INLINE void store_paired_words(std::int16_t* target, const F32x16& a) {
  for (int i = 0; i < kLanes; ++i) {
    target[i / 4 * 4 + kPlaceInInt16Line[i % 4]] = static_cast<std::int16_t>(a.lane[i]);
  }
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
