// Integer products of one group of weights, 512 bits at a time: with vpdpbusd where the machine has it, else
// with vpmaddubsw. The functions are those of matmul_portable.h. Included by matmul.cc only, inside the
// namespace of the instruction set.
#pragma once

#include "kernels/cpu/simd.h"
#include "kernels/cpu/simd/matmul_table.h"

namespace octavo::kernels::cpu::OCTAVO_ISA {

// Stored weights of 16 rows and 32 columns as bytes; lane r of quads[q] holds columns 4q..4q+3 of row r.
struct GroupWeights {
  __m512i quads[8];
};

OCTAVO_INLINE GroupWeights unpack_nibbles(const std::byte* source) {
  const __m512i low_nibbles = _mm512_set1_epi8(15);
  GroupWeights weights;
  for (int i = 0; i < 4; ++i) {
    const __m512i pairs = _mm512_loadu_si512(source + 64 * i);
    weights.quads[i] = _mm512_and_si512(pairs, low_nibbles);
    weights.quads[i + 4] = _mm512_and_si512(_mm512_srli_epi16(pairs, 4), low_nibbles);
  }
  return weights;
}

OCTAVO_INLINE GroupWeights load_bytes(const std::byte* source) {
  GroupWeights weights;
  for (int q = 0; q < 8; ++q) weights.quads[q] = _mm512_loadu_si512(source + 64 * q);
  return weights;
}

OCTAVO_INLINE __m512i broadcast_quad(const std::int8_t* values) {
  std::int32_t quad;
  __builtin_memcpy(&quad, values, sizeof quad);
  return _mm512_set1_epi32(quad);
}

#if defined(OCTAVO_ISA_AVX512_VNNI)

template <int kFirst, int kLast, bool kNibbles, bool kOffset>
OCTAVO_INLINE F32x16 dot(const GroupWeights& weights, const Int8Line& line, std::int32_t negative_sum) {
  __m512i sum = _mm512_setzero_si512();
  if constexpr (kOffset) sum = _mm512_slli_epi32(_mm512_set1_epi32(negative_sum), kNibbles ? 3 : 7);
  for (int q = kFirst; q < kLast; ++q) {
    sum = _mm512_dpbusd_epi32(sum, weights.quads[q], broadcast_quad(line.values + 4 * q));
  }
  return {_mm512_cvtepi32_ps(sum)};
}

#else

// Sums of two neighbouring products, in 16 bits: at most 2 * 128 * 127 where the format has bytes with an
// offset (the sign moves to the activation, since 2 * 255 * 127 would saturate), 2 * 31 * 127 for other
// bytes, 2 * 15 * 127 for nibbles.
template <bool kSigned>
OCTAVO_INLINE __m512i pair_products(__m512i stored, __m512i values) {
  if constexpr (!kSigned) return _mm512_maddubs_epi16(stored, values);
  const __m512i weights = _mm512_xor_si512(stored, _mm512_set1_epi8(-128));
  const __m512i signed_values =
      _mm512_mask_sub_epi8(values, _mm512_movepi8_mask(weights), _mm512_setzero_si512(), values);
  return _mm512_maddubs_epi16(_mm512_abs_epi8(weights), signed_values);
}

template <int kFirst, int kLast, bool kNibbles, bool kOffset>
OCTAVO_INLINE F32x16 dot(const GroupWeights& weights, const Int8Line& line, std::int32_t negative_sum) {
  constexpr bool kSigned = kOffset && !kNibbles;
  constexpr int kStep =
      kSigned ? 1 : 4;  // products whose 16-bit sums cannot overflow: 4 * 2 * 31 * 127 < 2^15
  __m512i sum = _mm512_setzero_si512();
  if constexpr (kOffset && kNibbles) sum = _mm512_slli_epi32(_mm512_set1_epi32(negative_sum), 3);
  for (int first = kFirst; first < kLast; first += kStep) {
    __m512i pairs = pair_products<kSigned>(weights.quads[first], broadcast_quad(line.values + 4 * first));
    for (int q = first + 1; q < first + kStep; ++q) {
      pairs = _mm512_add_epi16(pairs,
                               pair_products<kSigned>(weights.quads[q], broadcast_quad(line.values + 4 * q)));
    }
    sum = _mm512_add_epi32(sum, _mm512_madd_epi16(pairs, _mm512_set1_epi16(1)));
  }
  return {_mm512_cvtepi32_ps(sum)};
}

#endif

OCTAVO_INLINE F32x16 stored_column(const GroupWeights& weights, int column) {
  const __m512i shifted =
      _mm512_srli_epi32(weights.quads[column / 4], static_cast<unsigned>(8 * (column % 4)));
  return {_mm512_cvtepi32_ps(_mm512_and_si512(shifted, _mm512_set1_epi32(255)))};
}

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

}  // namespace octavo::kernels::cpu::OCTAVO_ISA
