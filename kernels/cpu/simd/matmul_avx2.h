// Integer products of one group of weights, 256 bits at a time. The functions are those of matmul_portable.h.
// Included by matmul.cc only, inside the namespace of the instruction set.
#pragma once

#include "kernels/cpu/simd.h"
#include "kernels/cpu/simd/matmul_table.h"

namespace octavo::kernels::cpu::OCTAVO_ISA {

// Stored weights of 16 rows and 32 columns as bytes; lane r of quads[q][h] holds columns 4q..4q+3 of row 8h +
// r.
struct GroupWeights {
  __m256i quads[8][2];
};

OCTAVO_INLINE __m256i load_256(const std::byte* source) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(source));
}

OCTAVO_INLINE GroupWeights unpack_nibbles(const std::byte* source) {
  const __m256i low_nibbles = _mm256_set1_epi8(15);
  GroupWeights weights;
  for (int i = 0; i < 8; ++i) {
    const __m256i pairs = load_256(source + 32 * i);
    weights.quads[i / 2][i % 2] = _mm256_and_si256(pairs, low_nibbles);
    weights.quads[i / 2 + 4][i % 2] = _mm256_and_si256(_mm256_srli_epi16(pairs, 4), low_nibbles);
  }
  return weights;
}

OCTAVO_INLINE GroupWeights load_bytes(const std::byte* source) {
  GroupWeights weights;
  for (int i = 0; i < 16; ++i) weights.quads[i / 2][i % 2] = load_256(source + 32 * i);
  return weights;
}

OCTAVO_INLINE __m256i broadcast_quad(const std::int8_t* values) {
  std::int32_t quad;
  __builtin_memcpy(&quad, values, sizeof quad);
  return _mm256_set1_epi32(quad);
}

// Sums of two neighbouring products, in 16 bits: at most 2 * 128 * 127 where the format has bytes with an
// offset (the sign moves to the activation, since 2 * 255 * 127 would saturate), 2 * 31 * 127 for other
// bytes, 2 * 15 * 127 for nibbles.
template <bool kSigned>
OCTAVO_INLINE __m256i pair_products(__m256i stored, __m256i values) {
  if constexpr (!kSigned) return _mm256_maddubs_epi16(stored, values);
  const __m256i weights = _mm256_xor_si256(stored, _mm256_set1_epi8(-128));
  return _mm256_maddubs_epi16(_mm256_abs_epi8(weights), _mm256_sign_epi8(values, weights));
}

template <int kFirst, int kLast, bool kNibbles, bool kOffset>
OCTAVO_INLINE __m256 dot_half_panel(const GroupWeights& weights, int half, const Int8Line& line,
                                    std::int32_t negative_sum) {
  constexpr bool kSigned = kOffset && !kNibbles;
  constexpr int kStep =
      kSigned ? 1 : 4;  // products whose 16-bit sums cannot overflow: 4 * 2 * 31 * 127 < 2^15
  __m256i sum = _mm256_setzero_si256();
  if constexpr (kOffset && kNibbles) sum = _mm256_slli_epi32(_mm256_set1_epi32(negative_sum), 3);
  for (int first = kFirst; first < kLast; first += kStep) {
    __m256i pairs =
        pair_products<kSigned>(weights.quads[first][half], broadcast_quad(line.values + 4 * first));
    for (int q = first + 1; q < first + kStep; ++q) {
      pairs = _mm256_add_epi16(
          pairs, pair_products<kSigned>(weights.quads[q][half], broadcast_quad(line.values + 4 * q)));
    }
    sum = _mm256_add_epi32(sum, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
  }
  return _mm256_cvtepi32_ps(sum);
}

template <int kFirst, int kLast, bool kNibbles, bool kOffset>
OCTAVO_INLINE F32x16 dot(const GroupWeights& weights, const Int8Line& line, std::int32_t negative_sum) {
  return {dot_half_panel<kFirst, kLast, kNibbles, kOffset>(weights, 0, line, negative_sum),
          dot_half_panel<kFirst, kLast, kNibbles, kOffset>(weights, 1, line, negative_sum)};
}

OCTAVO_INLINE __m256 stored_half_column(__m256i quad, int column_in_quad) {
  const __m256i shifted = _mm256_srli_epi32(quad, 8 * column_in_quad);
  return _mm256_cvtepi32_ps(_mm256_and_si256(shifted, _mm256_set1_epi32(255)));
}

OCTAVO_INLINE F32x16 stored_column(const GroupWeights& weights, int column) {
  return {stored_half_column(weights.quads[column / 4][0], column % 4),
          stored_half_column(weights.quads[column / 4][1], column % 4)};
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
