// Vectors of small integers, 256 bits wide, each for half the rows of a panel. The functions are those of
// integers_avx512.h.
#pragma once

#include "kernels/cpu/simd.h"

namespace octavo::kernels::cpu::OCTAVO_ISA {

using Integers = __m256i;
using Floats = __m256;
constexpr int kParts = 2;

template <int kPart>
OCTAVO_INLINE Floats& part_of(F32x16& a) {
  return kPart == 0 ? a.low : a.high;
}
template <int kPart>
OCTAVO_INLINE Floats part_of(const F32x16& a) {
  return kPart == 0 ? a.low : a.high;
}
OCTAVO_INLINE Floats broadcast(float a) { return _mm256_set1_ps(a); }
OCTAVO_INLINE Floats to_floats(Integers a) { return _mm256_cvtepi32_ps(a); }
OCTAVO_INLINE Floats mul(Floats a, Floats b) { return _mm256_mul_ps(a, b); }
OCTAVO_INLINE Floats fma(Floats a, Floats b, Floats c) { return _mm256_fmadd_ps(a, b, c); }

OCTAVO_INLINE Integers load_integers(const std::byte* source) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(source));
}
OCTAVO_INLINE void store_integers(std::byte* target, Integers a) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(target), a);
}
OCTAVO_INLINE Integers all_zero() { return _mm256_setzero_si256(); }
OCTAVO_INLINE Integers all_bytes(char a) { return _mm256_set1_epi8(a); }
OCTAVO_INLINE Integers all_words(short a) { return _mm256_set1_epi16(a); }
OCTAVO_INLINE Integers all_integers(std::int32_t a) { return _mm256_set1_epi32(a); }

OCTAVO_INLINE Integers bit_and(Integers a, Integers b) { return _mm256_and_si256(a, b); }
OCTAVO_INLINE Integers bit_or(Integers a, Integers b) { return _mm256_or_si256(a, b); }
OCTAVO_INLINE Integers bit_xor(Integers a, Integers b) { return _mm256_xor_si256(a, b); }
OCTAVO_INLINE Integers look_up(const std::uint8_t (&table)[16], Integers places) {
  const __m128i line = _mm_loadu_si128(reinterpret_cast<const __m128i*>(table));
  return _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(line), places);
}
template <int kBits>
OCTAVO_INLINE Integers shift_words_right(Integers a) {
  return _mm256_srli_epi16(a, kBits);
}
template <int kBits>
OCTAVO_INLINE Integers shift_integers_right(Integers a) {
  return _mm256_srli_epi32(a, kBits);
}
OCTAVO_INLINE Integers add_words(Integers a, Integers b) { return _mm256_add_epi16(a, b); }
OCTAVO_INLINE Integers subtract_words(Integers a, Integers b) { return _mm256_sub_epi16(a, b); }
OCTAVO_INLINE Integers add_integers(Integers a, Integers b) { return _mm256_add_epi32(a, b); }
OCTAVO_INLINE Integers add_bytes(Integers a, Integers b) { return _mm256_add_epi8(a, b); }
OCTAVO_INLINE Integers negate_where(Integers bits, char bit, Integers a) {
  const Integers mask = all_bytes(bit);
  const Integers chosen = _mm256_cmpeq_epi8(_mm256_and_si256(bits, mask), mask);
  return _mm256_sub_epi8(_mm256_xor_si256(a, chosen), chosen);
}
template <int kWhich>
OCTAVO_INLINE Integers every_second(Integers a, Integers b) {
  constexpr int kPlaces = _MM_SHUFFLE(2 + kWhich, kWhich, 2 + kWhich, kWhich);
  const __m256 mixed = _mm256_shuffle_ps(_mm256_castsi256_ps(a), _mm256_castsi256_ps(b), kPlaces);
  return _mm256_permute4x64_epi64(_mm256_castps_si256(mixed), 0xd8);
}
OCTAVO_INLINE Integers even_integers(Integers a, Integers b) { return every_second<0>(a, b); }
OCTAVO_INLINE Integers odd_integers(Integers a, Integers b) { return every_second<1>(a, b); }
OCTAVO_INLINE Integers load_words_as_integers(const std::byte* source) {
  return _mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(source)));
}
OCTAVO_INLINE Integers multiply_words(Integers a, Integers b) { return _mm256_madd_epi16(a, b); }
OCTAVO_INLINE Integers multiply_bytes(Integers a, Integers b) { return _mm256_maddubs_epi16(a, b); }
OCTAVO_INLINE Integers magnitudes(Integers bytes) { return _mm256_abs_epi8(bytes); }
OCTAVO_INLINE Integers with_signs_of(Integers signs, Integers bytes) {
  return _mm256_sign_epi8(bytes, signs);
}

#if defined(OCTAVO_SIMD_VNNI)
OCTAVO_INLINE Integers add_dot_bytes(Integers sum, Integers a, Integers b) {
  return _mm256_dpbusd_avx_epi32(sum, a, b);
}
OCTAVO_INLINE Integers add_dot_words(Integers sum, Integers a, Integers b) {
  return _mm256_dpwssd_avx_epi32(sum, a, b);
}
#endif

OCTAVO_INLINE F32x16 join(const Floats (&parts)[kParts]) { return {parts[0], parts[1]}; }

OCTAVO_INLINE __m256i to_words(F32x16 a) {
  const __m256i mixed = _mm256_packs_epi32(_mm256_cvtps_epi32(a.low), _mm256_cvtps_epi32(a.high));
  return _mm256_permute4x64_epi64(mixed, 0xd8);
}
OCTAVO_INLINE void store_bytes(std::int8_t* target, F32x16 low, F32x16 high) {
  const __m256i mixed = _mm256_packs_epi16(to_words(low), to_words(high));
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(target), _mm256_permute4x64_epi64(mixed, 0xd8));
}
OCTAVO_INLINE void store_paired_words(std::int16_t* target, F32x16 a) {
  const __m256i paired = _mm256_shufflehi_epi16(_mm256_shufflelo_epi16(to_words(a), 0xd8), 0xd8);
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(target), paired);
}

OCTAVO_INLINE void load_six_bit_pairs(const std::byte* source, F32x16& scales, F32x16& mins) {
  const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(source));
  const __m128i nibbles = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(source + 16));
  const __m128i six_bits = _mm_and_si128(bytes, _mm_set1_epi8(63));
  const __m128i low_bits = _mm_and_si128(_mm_srli_epi16(bytes, 6), _mm_set1_epi8(3));
  const __m128i high_bits =
      _mm_and_si128(_mm_unpacklo_epi64(nibbles, _mm_srli_epi16(nibbles, 4)), _mm_set1_epi8(15));
  const __m128i min_bytes = _mm_or_si128(low_bits, _mm_slli_epi16(high_bits, 2));
  scales = {_mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(six_bits)),
            _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_srli_si128(six_bits, 8)))};
  mins = {_mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(min_bytes)),
          _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_srli_si128(min_bytes, 8)))};
}

OCTAVO_INLINE __m256i load_bytes_as_integers(const std::byte* source) {
  return _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(source)));
}
OCTAVO_INLINE void load_nibble_pairs(const std::byte* source, F32x16& low, F32x16& high) {
  const __m256i first = load_bytes_as_integers(source), second = load_bytes_as_integers(source + 8);
  const __m256i low_bits = _mm256_set1_epi32(15);
  low = {_mm256_cvtepi32_ps(_mm256_and_si256(first, low_bits)),
         _mm256_cvtepi32_ps(_mm256_and_si256(second, low_bits))};
  high = {_mm256_cvtepi32_ps(_mm256_srli_epi32(first, 4)), _mm256_cvtepi32_ps(_mm256_srli_epi32(second, 4))};
}
OCTAVO_INLINE __m256 powers_of(__m256i exponents) {
  const __m256i next = _mm256_add_epi32(exponents, _mm256_set1_epi32(1));
  const __m256i denormal = _mm256_slli_epi32(_mm256_min_epi32(next, _mm256_set1_epi32(2)), 21);
  const __m256i normal = _mm256_slli_epi32(_mm256_sub_epi32(exponents, _mm256_set1_epi32(1)), 23);
  return _mm256_castsi256_ps(_mm256_max_epi32(normal, denormal));
}
OCTAVO_INLINE F32x16 load_powers(const std::byte* source) {
  return {powers_of(load_bytes_as_integers(source)), powers_of(load_bytes_as_integers(source + 8))};
}

OCTAVO_INLINE F32x16 load_row_nibbles(const std::byte* source) {
  const __m128i bytes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(source));
  const __m128i low_bits = _mm_set1_epi8(15);
  const __m128i low = _mm_and_si128(bytes, low_bits),
                high = _mm_and_si128(_mm_srli_epi16(bytes, 4), low_bits);
  return {_mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(low)), _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(high))};
}
template <int kFirst>
OCTAVO_INLINE F32x16 load_three_bits(const std::byte* source) {
  const __m256i low = _mm256_srli_epi32(load_words_as_integers(source), kFirst);
  const __m256i high = _mm256_srli_epi32(load_words_as_integers(source + 16), kFirst);
  const __m256i three_bits = _mm256_set1_epi32(7);
  return {_mm256_cvtepi32_ps(_mm256_and_si256(low, three_bits)),
          _mm256_cvtepi32_ps(_mm256_and_si256(high, three_bits))};
}
OCTAVO_INLINE F32x16 load_halved_e4m3(const std::byte* source) {
  const __m256i words = _mm256_cvtepu8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(source)));
  const __m256i halves = _mm256_slli_epi16(words, 7);
  const __m256 factor = _mm256_set1_ps(128.0f);
  return {_mm256_mul_ps(_mm256_cvtph_ps(_mm256_castsi256_si128(halves)), factor),
          _mm256_mul_ps(_mm256_cvtph_ps(_mm256_extracti128_si256(halves, 1)), factor)};
}

}  // namespace octavo::kernels::cpu::OCTAVO_ISA
