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

// Of a quad, what planes of kBits from `planes` on hold.
template <int kBits>
OCTAVO_INLINE unsigned bits_of_planes(const std::byte* planes, int quad, int in_quad) {
  constexpr int kQuadsInPlane = 8 / kBits;
  const auto byte = static_cast<unsigned>(planes[64 * (quad / kQuadsInPlane) + in_quad]);
  return byte >> (quad % kQuadsInPlane * kBits) & ((1u << kBits) - 1u);
}

// The stored number of column 4 * quad + in_quad % 4 in row in_quad / 4.
template <StoredNumbers kNumbers>
OCTAVO_INLINE std::uint8_t stored_number(const std::byte* weights, int quad, int in_quad) {
  unsigned number;
  if constexpr (kNumbers.nibble_pairs) {
    number = static_cast<unsigned>(weights[64 * (quad % 4) + in_quad]) >> (quad / 4 * 4) & 15u;
    if constexpr (kNumbers.table != NibbleTable::kNone) number = numbers_of(kNumbers.table)[number];
  } else {
    number = bits_of_planes<kNumbers.low_bits>(weights, quad, in_quad);
    if constexpr (kNumbers.high_bits > 0) {
      number |= bits_of_planes<kNumbers.high_bits>(weights + 64 * kNumbers.low_bits, quad, in_quad)
                << kNumbers.low_bits;
    }
  }
  return static_cast<std::uint8_t>(number);
}

// The stored numbers of a quad plus `added`, 64 bytes.
template <StoredNumbers kNumbers>
OCTAVO_INLINE void expand_quad(const std::byte* weights, int quad, int added, std::byte* out) {
  for (int i = 0; i < 4 * kLanes; ++i)
    out[i] = static_cast<std::byte>(stored_number<kNumbers>(weights, quad, i) + added);
}

// The stored numbers of column 4 * quad + column_in_quad.
template <StoredNumbers kNumbers>
OCTAVO_INLINE F32x16 stored_column(const std::byte* weights, int quad, int column_in_quad) {
  F32x16 result;
  for (int r = 0; r < kLanes; ++r) {
    result.lane[r] = static_cast<float>(stored_number<kNumbers>(weights, quad, 4 * r + column_in_quad));
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

// sums[r] = sum of (stored - offset) * value over quads kFirst <= q < kLast and line r, exact.
template <StoredNumbers kNumbers, int kPart, int kFirst, int kLast, class Line, int kRows>
OCTAVO_INLINE void dot(const std::byte* weights, const Line* lines, Integers (&sums)[kRows]) {
  std::uint8_t stored[8][4 * kLanes];
  for (int q = kFirst; q < kLast; ++q) {
    for (int i = 0; i < 4 * kLanes; ++i) stored[q][i] = stored_number<kNumbers>(weights, q, i);
  }
  for (int r = 0; r < kRows; ++r) {
    std::int32_t value_sum = 0;
    for (int q = kFirst; q < kLast; ++q) {
      for (int c = 0; c < 4; ++c) value_sum += value_of(lines[r], q, c);
    }
    for (int lane = 0; lane < kLanes; ++lane) sums[r].lane[lane] = -kNumbers.offset * value_sum;
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
