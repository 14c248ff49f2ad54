// Vectors of small integers, 512 bits wide, in the words that integer products are written in (matmul_dot.h).
// Each holds one 32-bit number, two words or four bytes for each of the 16 rows of a panel.
#pragma once

#include "kernels/cpu/simd.h"

namespace octavo::kernels::cpu::OCTAVO_ISA {

using Integers = __m512i;
using Floats = F32x16;
constexpr int kParts = 1;  // vectors that the rows of a panel take

template <int kPart>
OCTAVO_INLINE Floats& part_of(F32x16& a) {
  return a;
}
template <int kPart>
OCTAVO_INLINE Floats part_of(const F32x16& a) {
  return a;
}
OCTAVO_INLINE Floats broadcast(float a) { return set1(a); }
OCTAVO_INLINE Floats to_floats(Integers a) { return {_mm512_cvtepi32_ps(a)}; }

OCTAVO_INLINE Integers load_integers(const std::byte* source) { return _mm512_loadu_si512(source); }
OCTAVO_INLINE void store_integers(std::byte* target, Integers a) { _mm512_storeu_si512(target, a); }
OCTAVO_INLINE Integers all_zero() { return _mm512_setzero_si512(); }
OCTAVO_INLINE Integers all_bytes(char a) { return _mm512_set1_epi8(a); }
OCTAVO_INLINE Integers all_words(short a) { return _mm512_set1_epi16(a); }
OCTAVO_INLINE Integers all_integers(std::int32_t a) { return _mm512_set1_epi32(a); }

OCTAVO_INLINE Integers bit_and(Integers a, Integers b) { return _mm512_and_si512(a, b); }
OCTAVO_INLINE Integers bit_or(Integers a, Integers b) { return _mm512_or_si512(a, b); }
OCTAVO_INLINE Integers bit_xor(Integers a, Integers b) { return _mm512_xor_si512(a, b); }
// Bytes 0..15 as the table's bytes at those places.
OCTAVO_INLINE Integers look_up(const std::uint8_t (&table)[16], Integers places) {
  const __m128i line = _mm_loadu_si128(reinterpret_cast<const __m128i*>(table));
  return _mm512_shuffle_epi8(_mm512_broadcast_i32x4(line), places);
}
template <unsigned kBits>
OCTAVO_INLINE Integers shift_words_right(Integers a) {
  return _mm512_srli_epi16(a, kBits);
}
template <unsigned kBits>
OCTAVO_INLINE Integers shift_integers_right(Integers a) {
  return _mm512_srli_epi32(a, kBits);
}
OCTAVO_INLINE Integers add_words(Integers a, Integers b) { return _mm512_add_epi16(a, b); }
OCTAVO_INLINE Integers subtract_words(Integers a, Integers b) { return _mm512_sub_epi16(a, b); }
OCTAVO_INLINE Integers add_integers(Integers a, Integers b) { return _mm512_add_epi32(a, b); }
OCTAVO_INLINE Integers add_bytes(Integers a, Integers b) { return _mm512_add_epi8(a, b); }
// Bytes of a become negative where those of `bits` share a bit with `bit`.
OCTAVO_INLINE Integers negate_where(Integers bits, char bit, Integers a) {
  return _mm512_mask_sub_epi8(a, _mm512_test_epi8_mask(bits, all_bytes(bit)), _mm512_setzero_si512(), a);
}
// Every second number of a, then of b: the first and so on, or the second.
OCTAVO_INLINE Integers even_integers(Integers a, Integers b) {
  const __m512i places = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
  return _mm512_permutex2var_epi32(a, places, b);
}
OCTAVO_INLINE Integers odd_integers(Integers a, Integers b) {
  const __m512i places = _mm512_setr_epi32(1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31);
  return _mm512_permutex2var_epi32(a, places, b);
}
OCTAVO_INLINE Integers load_words_as_integers(const std::byte* source) {
  return _mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(source)));
}

// Sums of two neighbouring products: of 16 bits into 32, and of unsigned times signed bytes into 16, where
// they saturate.
OCTAVO_INLINE Integers multiply_words(Integers a, Integers b) { return _mm512_madd_epi16(a, b); }
OCTAVO_INLINE Integers multiply_bytes(Integers a, Integers b) { return _mm512_maddubs_epi16(a, b); }

// Bytes -128..127 as magnitude 0..128, and others with their signs moved onto them.
OCTAVO_INLINE Integers magnitudes(Integers bytes) { return _mm512_abs_epi8(bytes); }
OCTAVO_INLINE Integers with_signs_of(Integers signs, Integers bytes) {
  return _mm512_mask_sub_epi8(bytes, _mm512_movepi8_mask(signs), _mm512_setzero_si512(), bytes);
}

#if defined(OCTAVO_SIMD_VNNI)
// sum + four products of unsigned times signed bytes, or + two products of 16 bits.
OCTAVO_INLINE Integers add_dot_bytes(Integers sum, Integers a, Integers b) {
  return _mm512_dpbusd_epi32(sum, a, b);
}
OCTAVO_INLINE Integers add_dot_words(Integers sum, Integers a, Integers b) {
  return _mm512_dpwssd_epi32(sum, a, b);
}
#endif

OCTAVO_INLINE F32x16 join(const Floats (&parts)[kParts]) { return parts[0]; }

// Floats that hold small integers, as those: 32 bytes, or 16 words in the order of Int16Line.
OCTAVO_INLINE void store_bytes(std::int8_t* target, F32x16 low, F32x16 high) {
  auto* const halves = reinterpret_cast<__m128i*>(target);
  _mm_storeu_si128(halves, _mm512_cvtepi32_epi8(_mm512_cvtps_epi32(low.value)));
  _mm_storeu_si128(halves + 1, _mm512_cvtepi32_epi8(_mm512_cvtps_epi32(high.value)));
}
OCTAVO_INLINE void store_paired_words(std::int16_t* target, F32x16 a) {
  const __m256i words = _mm512_cvtepi32_epi16(_mm512_cvtps_epi32(a.value));
  const __m256i paired = _mm256_shufflehi_epi16(_mm256_shufflelo_epi16(words, 0xd8), 0xd8);
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(target), paired);
}

// 16 pairs of 6-bit numbers in 24 bytes: matmul_portable.h.
OCTAVO_INLINE void load_six_bit_pairs(const std::byte* source, F32x16& scales, F32x16& mins) {
  const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(source));
  const __m128i nibbles = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(source + 16));
  const __m128i high_bits =
      _mm_and_si128(_mm_unpacklo_epi64(nibbles, _mm_srli_epi16(nibbles, 4)), _mm_set1_epi8(15));
  const __m512i first = _mm512_cvtepu8_epi32(bytes);
  const __m512i high = _mm512_slli_epi32(_mm512_cvtepu8_epi32(high_bits), 2);
  scales.value = _mm512_cvtepi32_ps(_mm512_and_si512(first, _mm512_set1_epi32(63)));
  mins.value = _mm512_cvtepi32_ps(_mm512_or_si512(_mm512_srli_epi32(first, 6), high));
}

// 16 bytes, by matmul_portable.h too: nibbles, and exponents of powers of two. Where the power is denormal,
// (e - 1) << 23 is not positive and the smaller of the two bits stands in its place.
OCTAVO_INLINE void load_nibble_pairs(const std::byte* source, F32x16& low, F32x16& high) {
  const __m512i pairs = _mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(source)));
  low.value = _mm512_cvtepi32_ps(_mm512_and_si512(pairs, _mm512_set1_epi32(15)));
  high.value = _mm512_cvtepi32_ps(_mm512_srli_epi32(pairs, 4));
}
OCTAVO_INLINE F32x16 load_powers(const std::byte* source) {
  const __m512i exponents = _mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(source)));
  const __m512i next = _mm512_add_epi32(exponents, _mm512_set1_epi32(1));
  const __m512i denormal = _mm512_slli_epi32(_mm512_min_epi32(next, _mm512_set1_epi32(2)), 21);
  const __m512i normal = _mm512_slli_epi32(_mm512_sub_epi32(exponents, _mm512_set1_epi32(1)), 23);
  return {_mm512_castsi512_ps(_mm512_max_epi32(normal, denormal))};
}

// Scales of grids and of NVFP4: matmul_portable.h.
OCTAVO_INLINE F32x16 load_row_nibbles(const std::byte* source) {
  const __m128i bytes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(source));
  const __m128i nibbles =
      _mm_and_si128(_mm_unpacklo_epi64(bytes, _mm_srli_epi16(bytes, 4)), _mm_set1_epi8(15));
  return {_mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(nibbles))};
}
template <int kFirst>
OCTAVO_INLINE F32x16 load_three_bits(const std::byte* source) {
  const __m512i words = _mm512_srli_epi32(load_words_as_integers(source), kFirst);
  return {_mm512_cvtepi32_ps(_mm512_and_si512(words, _mm512_set1_epi32(7)))};
}
OCTAVO_INLINE F32x16 load_halved_e4m3(const std::byte* source) {
  const __m256i words = _mm256_cvtepu8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(source)));
  return {_mm512_mul_ps(_mm512_cvtph_ps(_mm256_slli_epi16(words, 7)), _mm512_set1_ps(128.0f))};
}

}  // namespace octavo::kernels::cpu::OCTAVO_ISA
