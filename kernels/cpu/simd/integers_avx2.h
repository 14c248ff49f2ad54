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

}  // namespace octavo::kernels::cpu::OCTAVO_ISA
