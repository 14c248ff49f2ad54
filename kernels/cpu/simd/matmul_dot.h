// Integer products of one group of weights with some rows of activations, in the vectors of integers_avx512.h
// or integers_avx2.h: by the instructions for dot products where the machine has them, else by multiplying
// pairs. matmul_portable.h says the same in plain C++. Included by matmul_numbers.h only.
//
// Order of the loops: one quad of weights in a register meets all rows before the next. The rows' sums are
// independent, so that no instruction waits for the one before it, and few registers are needed.
#pragma once

#include <algorithm>
#include <bit>

#include "kernels/cpu/simd.h"
#include "kernels/cpu/simd/matmul_table.h"

namespace octavo::kernels::cpu::OCTAVO_ISA {

// ---- stored weights

// Shifts by what is known when loops are unrolled.
typedef std::uint32_t Words __attribute__((vector_size(sizeof(Integers))));
OCTAVO_INLINE Integers shift_left(Integers a, int bits) { return (Integers)((Words)a << bits); }
OCTAVO_INLINE Integers shift_right(Integers a, int bits) { return (Integers)((Words)a >> bits); }
typedef std::int32_t SignedWords __attribute__((vector_size(sizeof(Integers))));
OCTAVO_INLINE Integers shift_right_signed(Integers a, int bits) { return (Integers)((SignedWords)a >> bits); }

// Bits [first, first + count) of every byte, at [place, place + count).
OCTAVO_INLINE Integers take_bits(Integers line, int first, int count, int place) {
  const Integers moved = place >= first ? shift_left(line, place - first) : shift_right(line, first - place);
  return bit_and(moved, all_bytes(static_cast<char>(((1 << count) - 1) << place)));
}

// Of quad q, what planes of kBits from `planes` on hold.
template <int kBits, int kPlace, int kPart>
OCTAVO_INLINE Integers bits_of_planes(const std::byte* planes, int q) {
  constexpr int kQuadsInPlane = 8 / kBits, kPartBytes = 64 / kParts;
  const Integers line = load_integers(planes + q / kQuadsInPlane * 64 + kPart * kPartBytes);
  return kBits == 8 ? line : take_bits(line, q % kQuadsInPlane * kBits, kBits, kPlace);
}

// Columns 4q..4q+3 of each row of the part, as unsigned bytes.
template <StoredNumbers kNumbers, int kPart>
OCTAVO_INLINE Integers stored_quad(const std::byte* weights, int q) {
  constexpr int kPartBytes = 64 / kParts;
  if constexpr (kNumbers.nibble_pairs) {
    const Integers nibbles =
        take_bits(load_integers(weights + 64 * (q % 4) + kPart * kPartBytes), q / 4 * 4, 4, 0);
    if constexpr (kNumbers.table == NibbleTable::kNone) return nibbles;
    return look_up(numbers_of(kNumbers.table), nibbles);
  } else {
    const Integers low = bits_of_planes<kNumbers.low_bits, kNumbers.shift, kPart>(weights, q);
    if constexpr (kNumbers.high_bits == 0) return low;
    if constexpr (kNumbers.high_bits > 0) {
      return bit_or(low, bits_of_planes<kNumbers.high_bits, kNumbers.low_bits, kPart>(
                             weights + 64 * kNumbers.low_bits, q));
    }
  }
}

// The same plus `added`, 64 bytes.
template <StoredNumbers kNumbers, int kPart = 0>
OCTAVO_INLINE void expand_quad(const std::byte* weights, int q, int added, std::byte* out) {
  const Integers quad = stored_quad<kNumbers, kPart>(weights, q);
  store_integers(out + kPart * (64 / kParts), add_words(quad, all_bytes(static_cast<char>(added))));
  if constexpr (kPart + 1 < kParts) expand_quad<kNumbers, kPart + 1>(weights, q, added, out);
}

// ---- entries of grids

// Of entries [16 rows][kQuads][4 columns].
template <int kQuads, int kPart>
OCTAVO_INLINE Integers quad_of_entries(const std::byte* entries, int index) {
  constexpr int kPartBytes = 64 / kParts;
  const std::byte* const part = entries + kPart * kPartBytes * kQuads;
  if constexpr (kQuads == 1) return load_integers(part);
  const Integers first = load_integers(part), second = load_integers(part + kPartBytes);
  return index == 0 ? even_integers(first, second) : odd_integers(first, second);
}

// Negated where bit `bit` of the same byte of `signs` is set, plus `offset`.
OCTAVO_INLINE Integers signed_numbers(Integers magnitudes, Integers signs, int bit, int offset) {
  return add_bytes(negate_where(signs, static_cast<char>(1 << bit), magnitudes),
                   all_bytes(static_cast<char>(offset)));
}

template <int kQuads, int kPart = 0>
OCTAVO_INLINE void sign_quad(const std::byte* entries, int index, const std::byte* signs, int bit, int offset,
                             std::byte* out) {
  constexpr int kPartBytes = 64 / kParts;
  const Integers magnitudes = quad_of_entries<kQuads, kPart>(entries, index);
  const Integers bits = load_integers(signs + kPart * kPartBytes);
  store_integers(out + kPart * kPartBytes, signed_numbers(magnitudes, bits, bit, offset));
  if constexpr (kPart + 1 < kParts) sign_quad<kQuads, kPart + 1>(entries, index, signs, bit, offset, out);
}

template <int kQuads, int kPart = 0>
OCTAVO_INLINE void move_quad(const std::byte* entries, int index, const std::byte* words, int bit, int offset,
                             std::byte* out) {
  constexpr int kPartBytes = 64 / kParts;
  const Integers quad = quad_of_entries<kQuads, kPart>(entries, index);
  const Integers eighths = bit_and(shift_left(quad, 3), all_bytes(-8));
  // All bits of a row that is moved down, else none.
  const Integers down =
      shift_right_signed(shift_left(load_words_as_integers(words + kPart * kPartBytes / 2), 31 - bit), 31);
  const char up_byte = static_cast<char>(offset + 1), down_byte = static_cast<char>(offset - 1);
  const Integers added = bit_xor(all_bytes(up_byte), bit_and(down, all_bytes(up_byte ^ down_byte)));
  store_integers(out + kPart * kPartBytes, add_bytes(eighths, added));
  if constexpr (kPart + 1 < kParts) move_quad<kQuads, kPart + 1>(entries, index, words, bit, offset, out);
}

// ---- columns

template <StoredNumbers kNumbers, int kPart>
OCTAVO_INLINE Floats stored_column_of_part(const std::byte* weights, int quad, int column_in_quad) {
  const Integers bytes = stored_quad<kNumbers, kPart>(weights, quad);
  const Integers low_byte = all_integers(255);
  switch (column_in_quad) {
    case 0: return to_floats(bit_and(bytes, low_byte));
    case 1: return to_floats(bit_and(shift_integers_right<8>(bytes), low_byte));
    case 2: return to_floats(bit_and(shift_integers_right<16>(bytes), low_byte));
    default: return to_floats(shift_integers_right<24>(bytes));
  }
}

// The stored numbers of column 4 * quad + column_in_quad.
template <StoredNumbers kNumbers>
OCTAVO_INLINE F32x16 stored_column(const std::byte* weights, int quad, int column_in_quad) {
  Floats parts[kParts];
  parts[0] = stored_column_of_part<kNumbers, 0>(weights, quad, column_in_quad);
  if constexpr (kParts == 2) {
    parts[kParts - 1] = stored_column_of_part<kNumbers, kParts - 1>(weights, quad, column_in_quad);
  }
  return join(parts);
}

// ---- 8-bit activations

OCTAVO_INLINE Integers broadcast_quad(const std::int8_t* values) {
  std::int32_t quad;
  __builtin_memcpy(&quad, values, sizeof quad);
  return all_integers(quad);
}

// What a sum of stored * value starts with, to become one of (stored - offset) * value.
template <StoredNumbers kNumbers, int kFirst, int kLast>
OCTAVO_INLINE Integers start_of_sum(const Int8Line& line) {
  if constexpr (kNumbers.offset == 0) return all_zero();
  const std::int32_t negative_sum =
      kLast - kFirst == 8 ? line.negative_sum : line.negative_half_sums[kFirst / 4];
  return shift_left(all_integers(negative_sum), std::countr_zero(static_cast<unsigned>(kNumbers.offset)));
}

#if defined(OCTAVO_SIMD_VNNI)

template <StoredNumbers kNumbers, int kPart, int kFirst, int kLast, int kRows>
OCTAVO_INLINE void dot(const std::byte* weights, const Int8Line* lines, Integers (&sums)[kRows]) {
  OCTAVO_UNROLL
  for (int r = 0; r < kRows; ++r) sums[r] = start_of_sum<kNumbers, kFirst, kLast>(lines[r]);
  OCTAVO_UNROLL
  for (int q = kFirst; q < kLast; ++q) {
    const Integers quad = stored_quad<kNumbers, kPart>(weights, q);
    OCTAVO_UNROLL
    for (int r = 0; r < kRows; ++r) {
      sums[r] = add_dot_bytes(sums[r], quad, broadcast_quad(lines[r].values + 4 * q));
    }
  }
}

#else

// Numbers up to 127: sums of two products reach 2 * 15 * 127, 2 * 31 * 127, 2 * 63 * 127 or 2 * 127 * 127, so
// that eight, four, two or one of them fit into 16 bits together.
template <StoredNumbers kNumbers, int kPart, int kFirst, int kLast, int kRows>
OCTAVO_INLINE void dot_small(const std::byte* weights, const Int8Line* lines, Integers (&sums)[kRows]) {
  constexpr int kStep =
      std::min<int>(kLast - kFirst, static_cast<int>(std::bit_floor(32767u / (2 * 127 * kNumbers.largest))));
  OCTAVO_UNROLL
  for (int r = 0; r < kRows; ++r) sums[r] = start_of_sum<kNumbers, kFirst, kLast>(lines[r]);
  OCTAVO_UNROLL
  for (int first = kFirst; first < kLast; first += kStep) {
    Integers words[kRows];
    OCTAVO_UNROLL
    for (int q = first; q < first + kStep; ++q) {
      const Integers quad = stored_quad<kNumbers, kPart>(weights, q);
      OCTAVO_UNROLL
      for (int r = 0; r < kRows; ++r) {
        const Integers products = multiply_bytes(quad, broadcast_quad(lines[r].values + 4 * q));
        words[r] = q == first ? products : add_words(words[r], products);
      }
    }
    OCTAVO_UNROLL
    for (int r = 0; r < kRows; ++r) sums[r] = add_integers(sums[r], multiply_words(words[r], all_words(1)));
  }
}

// Bytes with an offset, or a table's: 2 * 255 * 127 would saturate, 2 * 128 * 127 does not; so the sign moves
// to the activation.
template <StoredNumbers kNumbers, int kPart, int kFirst, int kLast, int kRows>
OCTAVO_INLINE void dot_signed(const std::byte* weights, const Int8Line* lines, Integers (&sums)[kRows]) {
  OCTAVO_UNROLL
  for (int q = kFirst; q < kLast; ++q) {
    const Integers quad = bit_xor(stored_quad<kNumbers, kPart>(weights, q), all_bytes(-128));
    const Integers magnitude = magnitudes(quad);
    OCTAVO_UNROLL
    for (int r = 0; r < kRows; ++r) {
      const Integers values = with_signs_of(quad, broadcast_quad(lines[r].values + 4 * q));
      const Integers products = multiply_words(multiply_bytes(magnitude, values), all_words(1));
      sums[r] = q == kFirst ? products : add_integers(sums[r], products);
    }
  }
}

template <StoredNumbers kNumbers, int kPart, int kFirst, int kLast, int kRows>
OCTAVO_INLINE void dot(const std::byte* weights, const Int8Line* lines, Integers (&sums)[kRows]) {
  if constexpr (kNumbers.largest <= 127) {
    dot_small<kNumbers, kPart, kFirst, kLast>(weights, lines, sums);
  } else {
    static_assert(kNumbers.offset == 128);
    dot_signed<kNumbers, kPart, kFirst, kLast>(weights, lines, sums);
  }
}

#endif

// ---- 16-bit activations

OCTAVO_INLINE Integers broadcast_pair(const std::int16_t* values) {
  std::int32_t pair;
  __builtin_memcpy(&pair, values, sizeof pair);
  return all_integers(pair);
}

OCTAVO_INLINE Integers add_words_products(Integers sum, Integers a, Integers b) {
#if defined(OCTAVO_SIMD_VNNI)
  return add_dot_words(sum, a, b);
#else
  return add_integers(sum, multiply_words(a, b));
#endif
}

// At most 32 * 128 * 32639 < 2^27.
template <StoredNumbers kNumbers, int kPart, int kFirst, int kLast, int kRows>
OCTAVO_INLINE void dot(const std::byte* weights, const Int16Line* lines, Integers (&sums)[kRows]) {
  OCTAVO_UNROLL
  for (int r = 0; r < kRows; ++r) sums[r] = all_zero();
  OCTAVO_UNROLL
  for (int q = kFirst; q < kLast; ++q) {
    const Integers quad = stored_quad<kNumbers, kPart>(weights, q);
    Integers even = bit_and(quad, all_words(255)), odd = shift_words_right<8>(quad);
    if constexpr (kNumbers.offset > 0) {
      even = subtract_words(even, all_words(kNumbers.offset));
      odd = subtract_words(odd, all_words(kNumbers.offset));
    }
    OCTAVO_UNROLL
    for (int r = 0; r < kRows; ++r) {
      sums[r] = add_words_products(sums[r], even, broadcast_pair(lines[r].values + 4 * q));
    }
    OCTAVO_UNROLL
    for (int r = 0; r < kRows; ++r) {
      sums[r] = add_words_products(sums[r], odd, broadcast_pair(lines[r].values + 4 * q + 2));
    }
  }
}

}  // namespace octavo::kernels::cpu::OCTAVO_ISA
