// Integer products of one group of weights with some rows of activations in plain C++; matmul_dot.h holds
// the same functions. Included by matmul_numbers.h only.
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
    number = bits_of_planes<kNumbers.low_bits>(weights, quad, in_quad) << kNumbers.shift;
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

// 16 bytes: their low and their high nibbles.
OCTAVO_INLINE void load_nibble_pairs(const std::byte* source, F32x16& low, F32x16& high) {
  for (int r = 0; r < kLanes; ++r) {
    low.lane[r] = static_cast<float>(static_cast<int>(source[r]) & 15);
    high.lane[r] = static_cast<float>(static_cast<int>(source[r]) >> 4);
  }
}

// 16 exponents as 2^(e - 128). The two smallest are denormal: a bit of the mantissa and no exponent.
OCTAVO_INLINE F32x16 load_powers(const std::byte* source) {
  std::uint32_t bits[kLanes];
  for (int r = 0; r < kLanes; ++r) {
    const auto exponent = static_cast<std::uint32_t>(source[r]);
    bits[r] = exponent < 2 ? 0x00200000u << exponent : (exponent - 1) << 23;
  }
  F32x16 powers;
  __builtin_memcpy(powers.lane, bits, sizeof bits);
  return powers;
}

// 8 bytes: the nibbles of rows 0..7 below those of rows 8..15.
OCTAVO_INLINE F32x16 load_row_nibbles(const std::byte* source) {
  F32x16 result;
  for (int r = 0; r < kLanes; ++r)
    result.lane[r] = static_cast<float>(static_cast<int>(source[r % 8]) >> (r / 8 * 4) & 15);
  return result;
}

// 16 words: bits kFirst..kFirst+2 of each.
template <int kFirst>
OCTAVO_INLINE F32x16 load_three_bits(const std::byte* source) {
  std::uint16_t words[kLanes];
  __builtin_memcpy(words, source, sizeof words);
  F32x16 result;
  for (int r = 0; r < kLanes; ++r) result.lane[r] = static_cast<float>(words[r] >> kFirst & 7);
  return result;
}

// 16 bytes of seven bits, half of what they are as floats with four bits of exponent: as 16-bit floats their
// exponent is smaller by 8.
OCTAVO_INLINE F32x16 load_halved_e4m3(const std::byte* source) {
  F32x16 result;
  for (int r = 0; r < kLanes; ++r)
    result.lane[r] = half_to_float(static_cast<std::uint16_t>(static_cast<int>(source[r]) << 7)) * 128.0f;
  return result;
}

// Quad `index` of entries [16 rows][kQuads][4 columns], negated where bit `bit` of the same byte of `signs`
// is set, plus `offset`: 64 bytes.
template <int kQuads>
OCTAVO_INLINE void sign_quad(const std::byte* entries, int index, const std::byte* signs, int bit, int offset,
                             std::byte* out) {
  for (int i = 0; i < 4 * kLanes; ++i) {
    const int magnitude = static_cast<int>(entries[(i / 4 * kQuads + index) * 4 + i % 4]);
    const bool is_negative = (static_cast<int>(signs[i]) >> bit & 1) != 0;
    out[i] = static_cast<std::byte>(offset + (is_negative ? -magnitude : magnitude));
  }
}

// The same of signed numbers times 8, and one more, or one less where bit `bit` of the row's word is set.
template <int kQuads>
OCTAVO_INLINE void move_quad(const std::byte* entries, int index, const std::byte* words, int bit, int offset,
                             std::byte* out) {
  std::uint16_t directions[kLanes];
  __builtin_memcpy(directions, words, sizeof directions);
  for (int i = 0; i < 4 * kLanes; ++i) {
    const auto number = static_cast<std::int8_t>(entries[(i / 4 * kQuads + index) * 4 + i % 4]);
    const int moved = 8 * number + ((directions[i / 4] >> bit & 1) != 0 ? -1 : 1);
    out[i] = static_cast<std::byte>(offset + moved);
  }
}

}  // namespace octavo::kernels::cpu::OCTAVO_ISA
