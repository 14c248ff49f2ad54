// Sixteen floats at once, in the same bits on every instruction set: the vocabulary of kernels/cpu/simd/.
//
// Sources there are compiled once for each instruction set (isa.h), into a namespace of its name. Two rules
// keep that sound:
//   1. Everything that those sources define or include inline stands in that namespace. An inline function
//      of std:: or of another header could be emitted by the AVX-512 object and picked by the linker for
//      everybody; so those sources use plain loops, plain structs, this header, and nothing of <algorithm>,
//      <vector> or <bit>.
//   2. An operation gives the same bits everywhere: fused where it says fma and nowhere else, sums across
//      lanes in one order, own exponential. Bits of a NaN are not part of that promise.
//
// Macros from the build: OCTAVO_ISA (name of the namespace) and OCTAVO_ISA_<NAME>. This header derives
// OCTAVO_SIMD_{AVX512,AVX2,PORTABLE}, the width of registers, and OCTAVO_SIMD_VNNI where dot products of
// small integers are one instruction.
#pragma once

#include <cstddef>
#include <cstdint>

#if defined(OCTAVO_ISA_AVX512) || defined(OCTAVO_ISA_AVX512_VNNI) || defined(OCTAVO_ISA_AMX)
#define OCTAVO_SIMD_AVX512 1
#elif defined(OCTAVO_ISA_AVX2) || defined(OCTAVO_ISA_AVX_VNNI)
#define OCTAVO_SIMD_AVX2 1
#else
#define OCTAVO_SIMD_PORTABLE 1
#endif
#if defined(OCTAVO_ISA_AVX512_VNNI) || defined(OCTAVO_ISA_AVX_VNNI) || defined(OCTAVO_ISA_AMX)
#define OCTAVO_SIMD_VNNI 1
#endif

#if defined(OCTAVO_SIMD_PORTABLE)
#include "engine/base/half.h"
#include "kernels/float8.h"
#else
#include <immintrin.h>
#endif

#define OCTAVO_INLINE static inline __attribute__((always_inline))
#define OCTAVO_INLINE_LAMBDA __attribute__((always_inline))  // behind its parameters
#define OCTAVO_INLINE_MEMBER inline __attribute__((always_inline))

// Before a loop over an array of vectors that must become registers.
#if defined(OCTAVO_SIMD_PORTABLE)
#define OCTAVO_UNROLL
#elif defined(__clang__)
#define OCTAVO_UNROLL _Pragma("clang loop unroll(full)")
#else
#define OCTAVO_UNROLL _Pragma("GCC unroll 32")
#endif
// Before one over rows that are many, or not known before.
#if defined(__clang__)
#define OCTAVO_UNROLL_SOME _Pragma("clang loop unroll_count(4)")
#else
#define OCTAVO_UNROLL_SOME _Pragma("GCC unroll 4")
#endif

namespace octavo::kernels::cpu::OCTAVO_ISA {

constexpr int kLanes = 16;

// ---- the type, and everything that depends on the instruction set
//
// Loads of stored numbers take sixteen in a row, or two halves of eight from different places.

// load_e4m3 gives e4m3 numbers divided by this, which saves a multiplication of every element; sums are exact
// multiples.
constexpr float kE4m3Factor = 256.0f;

#if !defined(OCTAVO_SIMD_PORTABLE)

OCTAVO_INLINE __m128i load_bytes(const void* source) {
  return _mm_loadu_si128(static_cast<const __m128i*>(source));
}
OCTAVO_INLINE __m128i load_bytes(const void* low, const void* high) {
  return _mm_unpacklo_epi64(_mm_loadl_epi64(static_cast<const __m128i*>(low)),
                            _mm_loadl_epi64(static_cast<const __m128i*>(high)));
}
// As f16, whose bias of the exponent is 15 instead of 7, so that the number is divided by 2^8. Only a NaN,
// all ones, carries into the highest bit of the exponent when one is added to its last place.
OCTAVO_INLINE __m256i halves_of_e4m3(__m128i bytes) {
  const __m256i words = _mm256_cvtepi8_epi16(bytes);
  const __m256i magnitude = _mm256_and_si256(_mm256_slli_epi16(words, 7), _mm256_set1_epi16(0x3f80));
  const __m256i next = _mm256_add_epi16(magnitude, _mm256_set1_epi16(0x80));
  const __m256i carry = _mm256_and_si256(next, _mm256_set1_epi16(0x4000));
  const __m256i sign = _mm256_and_si256(words, _mm256_set1_epi16(-0x8000));
  return _mm256_or_si256(_mm256_or_si256(magnitude, carry), sign);
}
// e5m2 is the upper half of an f16.
OCTAVO_INLINE __m256i halves_of_e5m2(__m128i bytes) {
  return _mm256_slli_epi16(_mm256_cvtepu8_epi16(bytes), 8);
}

#endif

#if defined(OCTAVO_SIMD_AVX512)

struct F32x16 {
  __m512 value;
};

OCTAVO_INLINE F32x16 load(const float* source) { return {_mm512_loadu_ps(source)}; }
OCTAVO_INLINE void store(float* target, F32x16 a) { _mm512_storeu_ps(target, a.value); }
OCTAVO_INLINE F32x16 set1(float a) { return {_mm512_set1_ps(a)}; }
OCTAVO_INLINE F32x16 fma(F32x16 a, F32x16 b, F32x16 c) {
  return {_mm512_fmadd_ps(a.value, b.value, c.value)};
}
OCTAVO_INLINE F32x16 add(F32x16 a, F32x16 b) { return {_mm512_add_ps(a.value, b.value)}; }
OCTAVO_INLINE F32x16 sub(F32x16 a, F32x16 b) { return {_mm512_sub_ps(a.value, b.value)}; }
OCTAVO_INLINE F32x16 mul(F32x16 a, F32x16 b) { return {_mm512_mul_ps(a.value, b.value)}; }
OCTAVO_INLINE F32x16 div(F32x16 a, F32x16 b) { return {_mm512_div_ps(a.value, b.value)}; }
// b in lanes where either is a NaN: the rule of the instruction, kept by all.
OCTAVO_INLINE F32x16 max(F32x16 a, F32x16 b) { return {_mm512_max_ps(a.value, b.value)}; }

OCTAVO_INLINE __m256i load_words(const std::uint16_t* source) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(source));
}
OCTAVO_INLINE __m256i load_words(const std::uint16_t* low, const std::uint16_t* high) {
  return _mm256_inserti128_si256(_mm256_castsi128_si256(load_bytes(low)), load_bytes(high), 1);
}

OCTAVO_INLINE F32x16 load(const float* low, const float* high) {
  return {_mm512_insertf32x8(_mm512_castps256_ps512(_mm256_loadu_ps(low)), _mm256_loadu_ps(high), 1)};
}
template <class... Sources>
OCTAVO_INLINE F32x16 load_f16(Sources... sources) {
  return {_mm512_cvtph_ps(load_words(sources...))};
}
OCTAVO_INLINE void store_f16(std::uint16_t* target, F32x16 a) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(target),
                      _mm512_cvtps_ph(a.value, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}
template <class... Sources>
OCTAVO_INLINE F32x16 load_bf16(Sources... sources) {
  return {_mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(load_words(sources...)), 16))};
}
OCTAVO_INLINE void store_bf16(std::uint16_t* target, F32x16 a) {
  const __m512i bits = _mm512_castps_si512(a.value);
  const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
  const __m512i rounded = _mm512_add_epi32(bits, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff)));
  const __m512i quiet = _mm512_or_si512(bits, _mm512_set1_epi32(0x400000));
  const __mmask16 is_nan = _mm512_cmp_ps_mask(a.value, a.value, _CMP_UNORD_Q);
  const __m512i words = _mm512_srli_epi32(_mm512_mask_mov_epi32(rounded, is_nan, quiet), 16);
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(target), _mm512_cvtepi32_epi16(words));
}
template <class... Sources>
OCTAVO_INLINE F32x16 load_int8(Sources... sources) {
  return {_mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(load_bytes(sources...)))};
}
template <class... Sources>
OCTAVO_INLINE F32x16 load_e4m3(Sources... sources) {
  return {_mm512_cvtph_ps(halves_of_e4m3(load_bytes(sources...)))};
}
template <class... Sources>
OCTAVO_INLINE F32x16 load_e5m2(Sources... sources) {
  return {_mm512_cvtph_ps(halves_of_e5m2(load_bytes(sources...)))};
}

// Lanes below `count` from a, the others from b.
OCTAVO_INLINE F32x16 select_first(int count, F32x16 a, F32x16 b) {
  const auto mask = static_cast<__mmask16>(count >= kLanes ? 0xffffu : (1u << count) - 1u);
  return {_mm512_mask_blend_ps(mask, b.value, a.value)};
}
// Lanes of `result` where a < b become `replacement`.
OCTAVO_INLINE F32x16 replace_where_less(F32x16 a, F32x16 b, F32x16 result, F32x16 replacement) {
  return {_mm512_mask_blend_ps(_mm512_cmp_ps_mask(a.value, b.value, _CMP_LT_OQ), result.value,
                               replacement.value)};
}
// a * 2^n for the integers n that stand in the low bits of `shifted` (see exp). Exact while nothing leaves
// the range of normal numbers.
OCTAVO_INLINE F32x16 scale_by_power(F32x16 a, F32x16 shifted) {
  const __m512i n = _mm512_srai_epi32(_mm512_slli_epi32(_mm512_castps_si512(shifted.value), 10), 10);
  const __m512i half = _mm512_srai_epi32(n, 1);
  const __m512i bias = _mm512_set1_epi32(127);
  const __m512 first = _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_add_epi32(half, bias), 23));
  const __m512 second =
      _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_add_epi32(_mm512_sub_epi32(n, half), bias), 23));
  return {_mm512_mul_ps(_mm512_mul_ps(a.value, first), second)};
}

#elif defined(OCTAVO_SIMD_AVX2)

struct F32x16 {
  __m256 low, high;
};

OCTAVO_INLINE F32x16 load(const float* source) {
  return {_mm256_loadu_ps(source), _mm256_loadu_ps(source + 8)};
}
OCTAVO_INLINE void store(float* target, F32x16 a) {
  _mm256_storeu_ps(target, a.low);
  _mm256_storeu_ps(target + 8, a.high);
}
OCTAVO_INLINE F32x16 set1(float a) { return {_mm256_set1_ps(a), _mm256_set1_ps(a)}; }
OCTAVO_INLINE F32x16 fma(F32x16 a, F32x16 b, F32x16 c) {
  return {_mm256_fmadd_ps(a.low, b.low, c.low), _mm256_fmadd_ps(a.high, b.high, c.high)};
}
OCTAVO_INLINE F32x16 add(F32x16 a, F32x16 b) {
  return {_mm256_add_ps(a.low, b.low), _mm256_add_ps(a.high, b.high)};
}
OCTAVO_INLINE F32x16 sub(F32x16 a, F32x16 b) {
  return {_mm256_sub_ps(a.low, b.low), _mm256_sub_ps(a.high, b.high)};
}
OCTAVO_INLINE F32x16 mul(F32x16 a, F32x16 b) {
  return {_mm256_mul_ps(a.low, b.low), _mm256_mul_ps(a.high, b.high)};
}
OCTAVO_INLINE F32x16 div(F32x16 a, F32x16 b) {
  return {_mm256_div_ps(a.low, b.low), _mm256_div_ps(a.high, b.high)};
}
OCTAVO_INLINE F32x16 max(F32x16 a, F32x16 b) {
  return {_mm256_max_ps(a.low, b.low), _mm256_max_ps(a.high, b.high)};
}

OCTAVO_INLINE __m256 half_to_float8(const std::uint16_t* source) {
  return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(source)));
}
OCTAVO_INLINE F32x16 load(const float* low, const float* high) {
  return {_mm256_loadu_ps(low), _mm256_loadu_ps(high)};
}
OCTAVO_INLINE F32x16 load_f16(const std::uint16_t* low, const std::uint16_t* high) {
  return {half_to_float8(low), half_to_float8(high)};
}
OCTAVO_INLINE F32x16 load_f16(const std::uint16_t* source) { return load_f16(source, source + 8); }
OCTAVO_INLINE void store_f16(std::uint16_t* target, F32x16 a) {
  constexpr int kNearest = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
  _mm_storeu_si128(reinterpret_cast<__m128i*>(target), _mm256_cvtps_ph(a.low, kNearest));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(target + 8), _mm256_cvtps_ph(a.high, kNearest));
}
OCTAVO_INLINE __m256 bfloat16_to_float8(const std::uint16_t* source) {
  const __m128i words = _mm_loadu_si128(reinterpret_cast<const __m128i*>(source));
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(words), 16));
}
OCTAVO_INLINE F32x16 load_bf16(const std::uint16_t* low, const std::uint16_t* high) {
  return {bfloat16_to_float8(low), bfloat16_to_float8(high)};
}
OCTAVO_INLINE F32x16 load_bf16(const std::uint16_t* source) { return load_bf16(source, source + 8); }
OCTAVO_INLINE __m256i bfloat16_words(__m256 a) {
  const __m256i bits = _mm256_castps_si256(a);
  const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
  const __m256i rounded = _mm256_add_epi32(bits, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff)));
  const __m256i quiet = _mm256_or_si256(bits, _mm256_set1_epi32(0x400000));
  const __m256i is_nan = _mm256_castps_si256(_mm256_cmp_ps(a, a, _CMP_UNORD_Q));
  return _mm256_srli_epi32(_mm256_blendv_epi8(rounded, quiet, is_nan), 16);
}
OCTAVO_INLINE void store_bf16(std::uint16_t* target, F32x16 a) {
  const __m256i packed = _mm256_packus_epi32(bfloat16_words(a.low), bfloat16_words(a.high));
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(target), _mm256_permute4x64_epi64(packed, 0xd8));
}
OCTAVO_INLINE F32x16 expand_halves(__m256i halves) {
  return {_mm256_cvtph_ps(_mm256_castsi256_si128(halves)),
          _mm256_cvtph_ps(_mm256_extracti128_si256(halves, 1))};
}
OCTAVO_INLINE __m256 int8_to_float8(const std::int8_t* source) {
  return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(source))));
}
OCTAVO_INLINE F32x16 load_int8(const std::int8_t* low, const std::int8_t* high) {
  return {int8_to_float8(low), int8_to_float8(high)};
}
OCTAVO_INLINE F32x16 load_int8(const std::int8_t* source) { return load_int8(source, source + 8); }
template <class... Sources>
OCTAVO_INLINE F32x16 load_e4m3(Sources... sources) {
  return expand_halves(halves_of_e4m3(load_bytes(sources...)));
}
template <class... Sources>
OCTAVO_INLINE F32x16 load_e5m2(Sources... sources) {
  return expand_halves(halves_of_e5m2(load_bytes(sources...)));
}

OCTAVO_INLINE __m256 first_lanes_mask(int count) {
  const __m256i lanes = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
  return _mm256_castsi256_ps(_mm256_cmpgt_epi32(_mm256_set1_epi32(count), lanes));
}
OCTAVO_INLINE F32x16 select_first(int count, F32x16 a, F32x16 b) {
  return {_mm256_blendv_ps(b.low, a.low, first_lanes_mask(count)),
          _mm256_blendv_ps(b.high, a.high, first_lanes_mask(count - 8))};
}
OCTAVO_INLINE F32x16 replace_where_less(F32x16 a, F32x16 b, F32x16 result, F32x16 replacement) {
  return {_mm256_blendv_ps(result.low, replacement.low, _mm256_cmp_ps(a.low, b.low, _CMP_LT_OQ)),
          _mm256_blendv_ps(result.high, replacement.high, _mm256_cmp_ps(a.high, b.high, _CMP_LT_OQ))};
}
OCTAVO_INLINE __m256 scale_by_power8(__m256 a, __m256 shifted) {
  const __m256i n = _mm256_srai_epi32(_mm256_slli_epi32(_mm256_castps_si256(shifted), 10), 10);
  const __m256i half = _mm256_srai_epi32(n, 1);
  const __m256i bias = _mm256_set1_epi32(127);
  const __m256 first = _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(half, bias), 23));
  const __m256 second =
      _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(_mm256_sub_epi32(n, half), bias), 23));
  return _mm256_mul_ps(_mm256_mul_ps(a, first), second);
}
OCTAVO_INLINE F32x16 scale_by_power(F32x16 a, F32x16 shifted) {
  return {scale_by_power8(a.low, shifted.low), scale_by_power8(a.high, shifted.high)};
}

#else

struct F32x16 {
  float lane[kLanes];
};

// Operations change their first argument, a copy, and return it: loops over lanes that any compiler
// understands.

OCTAVO_INLINE F32x16 load(const float* source) {
  F32x16 a;
  for (int i = 0; i < kLanes; ++i) a.lane[i] = source[i];
  return a;
}
OCTAVO_INLINE void store(float* target, F32x16 a) {
  for (int i = 0; i < kLanes; ++i) target[i] = a.lane[i];
}
OCTAVO_INLINE F32x16 set1(float value) {
  F32x16 a;
  for (int i = 0; i < kLanes; ++i) a.lane[i] = value;
  return a;
}
OCTAVO_INLINE F32x16 fma(F32x16 a, F32x16 b, F32x16 c) {
  for (int i = 0; i < kLanes; ++i) a.lane[i] = __builtin_fmaf(a.lane[i], b.lane[i], c.lane[i]);
  return a;
}
OCTAVO_INLINE F32x16 add(F32x16 a, F32x16 b) {
  for (int i = 0; i < kLanes; ++i) a.lane[i] += b.lane[i];
  return a;
}
OCTAVO_INLINE F32x16 sub(F32x16 a, F32x16 b) {
  for (int i = 0; i < kLanes; ++i) a.lane[i] -= b.lane[i];
  return a;
}
OCTAVO_INLINE F32x16 mul(F32x16 a, F32x16 b) {
  for (int i = 0; i < kLanes; ++i) a.lane[i] *= b.lane[i];
  return a;
}
OCTAVO_INLINE F32x16 div(F32x16 a, F32x16 b) {
  for (int i = 0; i < kLanes; ++i) a.lane[i] /= b.lane[i];
  return a;
}
OCTAVO_INLINE F32x16 max(F32x16 a, F32x16 b) {
  for (int i = 0; i < kLanes; ++i) a.lane[i] = a.lane[i] > b.lane[i] ? a.lane[i] : b.lane[i];
  return a;
}

template <class Word, class Convert>
OCTAVO_INLINE F32x16 load_converted(const Word* low, const Word* high, Convert convert) {
  F32x16 a;
  for (int i = 0; i < kLanes / 2; ++i) a.lane[i] = convert(low[i]);
  for (int i = 0; i < kLanes / 2; ++i) a.lane[i + kLanes / 2] = convert(high[i]);
  return a;
}
OCTAVO_INLINE F32x16 load(const float* low, const float* high) {
  return load_converted(low, high, [](float value) { return value; });
}
OCTAVO_INLINE F32x16 load_f16(const std::uint16_t* low, const std::uint16_t* high) {
  return load_converted(low, high, half_to_float);
}
OCTAVO_INLINE F32x16 load_bf16(const std::uint16_t* low, const std::uint16_t* high) {
  return load_converted(low, high, bfloat16_to_float);
}
OCTAVO_INLINE F32x16 load_int8(const std::int8_t* low, const std::int8_t* high) {
  return load_converted(low, high, [](std::int8_t value) { return static_cast<float>(value); });
}
OCTAVO_INLINE F32x16 load_e4m3(const std::uint8_t* low, const std::uint8_t* high) {
  return load_converted(low, high, [](std::uint8_t code) { return Fp8E4m3::to_float(code) / kE4m3Factor; });
}
OCTAVO_INLINE F32x16 load_e5m2(const std::uint8_t* low, const std::uint8_t* high) {
  return load_converted(low, high, Fp8E5m2::to_float);
}
OCTAVO_INLINE F32x16 load_f16(const std::uint16_t* source) { return load_f16(source, source + 8); }
OCTAVO_INLINE F32x16 load_bf16(const std::uint16_t* source) { return load_bf16(source, source + 8); }
OCTAVO_INLINE F32x16 load_int8(const std::int8_t* source) { return load_int8(source, source + 8); }
OCTAVO_INLINE F32x16 load_e4m3(const std::uint8_t* source) { return load_e4m3(source, source + 8); }
OCTAVO_INLINE F32x16 load_e5m2(const std::uint8_t* source) { return load_e5m2(source, source + 8); }
OCTAVO_INLINE void store_f16(std::uint16_t* target, F32x16 a) {
  for (int i = 0; i < kLanes; ++i) target[i] = float_to_half(a.lane[i]);
}
OCTAVO_INLINE void store_bf16(std::uint16_t* target, F32x16 a) {
  for (int i = 0; i < kLanes; ++i) target[i] = float_to_bfloat16(a.lane[i]);
}

OCTAVO_INLINE F32x16 select_first(int count, F32x16 a, F32x16 b) {
  for (int i = 0; i < kLanes; ++i) a.lane[i] = i < count ? a.lane[i] : b.lane[i];
  return a;
}
OCTAVO_INLINE F32x16 replace_where_less(F32x16 a, F32x16 b, F32x16 result, F32x16 replacement) {
  for (int i = 0; i < kLanes; ++i)
    result.lane[i] = a.lane[i] < b.lane[i] ? replacement.lane[i] : result.lane[i];
  return result;
}
OCTAVO_INLINE float power_of_two(std::int32_t n) {
  return __builtin_bit_cast(float, static_cast<std::uint32_t>(n + 127) << 23);
}
OCTAVO_INLINE F32x16 scale_by_power(F32x16 a, F32x16 shifted) {
  for (int i = 0; i < kLanes; ++i) {
    const std::uint32_t bits = __builtin_bit_cast(std::uint32_t, shifted.lane[i]);
    const std::int32_t n = static_cast<std::int32_t>(bits << 10) >> 10;
    const std::int32_t half = n >> 1;
    a.lane[i] = a.lane[i] * power_of_two(half) * power_of_two(n - half);
  }
  return a;
}

#endif

// ---- built from the above, so equal everywhere

OCTAVO_INLINE F32x16 zero() { return set1(0.0f); }

// The first `count` floats; the other lanes are zero, and their memory is not touched.
OCTAVO_INLINE F32x16 load_first(const float* source, int count) {
  alignas(64) float lanes[kLanes] = {};
  for (int i = 0; i < count; ++i) lanes[i] = source[i];
  return load(lanes);
}
OCTAVO_INLINE void store_first(float* target, F32x16 a, int count) {
  alignas(64) float lanes[kLanes];
  store(lanes, a);
  for (int i = 0; i < count; ++i) target[i] = lanes[i];
}

// ((l0 + l8) + (l4 + l12)) + ((l2 + l10) + (l6 + l14)), plus the same of the odd lanes: halves folded onto
// each other. The larger of all lanes is found in the same order.
#if defined(OCTAVO_SIMD_PORTABLE)
OCTAVO_INLINE float horizontal_sum(F32x16 a) {
  for (int width = kLanes / 2; width > 0; width /= 2) {
    for (int i = 0; i < width; ++i) a.lane[i] += a.lane[i + width];
  }
  return a.lane[0];
}
OCTAVO_INLINE float horizontal_max(F32x16 a) {
  for (int width = kLanes / 2; width > 0; width /= 2) {
    for (int i = 0; i < width; ++i) a.lane[i] = a.lane[i] > a.lane[i + width] ? a.lane[i] : a.lane[i + width];
  }
  return a.lane[0];
}
#else
#if defined(OCTAVO_SIMD_AVX512)
OCTAVO_INLINE __m256 low_half(F32x16 a) { return _mm512_castps512_ps256(a.value); }
OCTAVO_INLINE __m256 high_half(F32x16 a) { return _mm512_extractf32x8_ps(a.value, 1); }
#else
OCTAVO_INLINE __m256 low_half(F32x16 a) { return a.low; }
OCTAVO_INLINE __m256 high_half(F32x16 a) { return a.high; }
#endif
OCTAVO_INLINE float horizontal_sum(F32x16 a) {
  const __m256 eight = _mm256_add_ps(low_half(a), high_half(a));
  const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}
OCTAVO_INLINE float horizontal_max(F32x16 a) {
  const __m256 eight = _mm256_max_ps(low_half(a), high_half(a));
  const __m128 four = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)));
}
#endif

// exp(x) within 1.5 units in the last place. Below -87 it is 0 (so exp(-infinity) = 0), above 88.72 infinity;
// NaN stays NaN.
//
// x = n ln 2 + r with |r| <= ln(2)/2: adding 1.5 * 2^23 rounds to the nearest integer and leaves n in the low
// bits of the sum. exp(r) = 1 + r + r^2 q(r), q of degree 4 fitted for least relative error (3.2e-9). ln 2 is
// subtracted in two parts (Cody & Waite 1980), the first short enough for n times it to be exact.
// exp_remainder gives exp(r) and, in the low bits of `shifted`, n.
OCTAVO_INLINE F32x16 exp_remainder(F32x16 x, F32x16& shifted) {
  const F32x16 magic = set1(0x1.8p23f);
  shifted = fma(x, set1(0x1.715476p0f), magic);
  const F32x16 n = sub(shifted, magic);
  const F32x16 r = fma(n, set1(-0x1.7f7d1cp-20f), fma(n, set1(-0x1.62e4p-1f), x));
  F32x16 q = set1(0x1.6a1f62p-10f);
  q = fma(q, r, set1(0x1.123cccp-7f));
  q = fma(q, r, set1(0x1.555904p-5f));
  q = fma(q, r, set1(0x1.55548ep-3f));
  q = fma(q, r, set1(0x1.fffffcp-2f));
  return add(fma(mul(r, r), q, r), set1(1.0f));
}
OCTAVO_INLINE F32x16 exp(F32x16 x) {
  F32x16 shifted;
  const F32x16 power = exp_remainder(x, shifted);
  F32x16 result = scale_by_power(power, shifted);
  result = replace_where_less(x, set1(-87.0f), result, zero());
  return replace_where_less(set1(0x1.62e42ep6f), x, result, set1(__builtin_inff()));
}

// a * 2^n for the integers n >= -126 that stand in the low bits of `shifted`, 0 where x < -87.
#if defined(OCTAVO_SIMD_AVX512)
OCTAVO_INLINE F32x16 scale_down_by_power(F32x16 a, F32x16 shifted, F32x16 x) {
  const __mmask16 kept = _mm512_cmp_ps_mask(x.value, _mm512_set1_ps(-87.0f), _CMP_NLT_UQ);
  const __m512i bits = _mm512_slli_epi32(_mm512_castps_si512(shifted.value), 23);
  const __m512 power = _mm512_castsi512_ps(_mm512_add_epi32(bits, _mm512_set1_epi32(127 << 23)));
  return {_mm512_maskz_mul_ps(kept, a.value, power)};
}
#elif defined(OCTAVO_SIMD_AVX2)
OCTAVO_INLINE __m256 scale_down_by_power8(__m256 a, __m256 shifted, __m256 x) {
  const __m256i bits = _mm256_slli_epi32(_mm256_castps_si256(shifted), 23);
  const __m256 power = _mm256_castsi256_ps(_mm256_add_epi32(bits, _mm256_set1_epi32(127 << 23)));
  const __m256 kept = _mm256_cmp_ps(x, _mm256_set1_ps(-87.0f), _CMP_NLT_UQ);
  return _mm256_and_ps(kept, _mm256_mul_ps(a, power));
}
OCTAVO_INLINE F32x16 scale_down_by_power(F32x16 a, F32x16 shifted, F32x16 x) {
  return {scale_down_by_power8(a.low, shifted.low, x.low),
          scale_down_by_power8(a.high, shifted.high, x.high)};
}
#else
OCTAVO_INLINE F32x16 scale_down_by_power(F32x16 a, F32x16 shifted, F32x16 x) {
  for (int i = 0; i < kLanes; ++i) {
    const std::uint32_t bits = __builtin_bit_cast(std::uint32_t, shifted.lane[i]);
    const float power = __builtin_bit_cast(float, (bits << 23) + (127u << 23));
    a.lane[i] = x.lane[i] < -87.0f ? 0.0f : a.lane[i] * power;
  }
  return a;
}
#endif

// The same bits as exp for x <= 0 and NaN, with fewer instructions.
OCTAVO_INLINE F32x16 exp_not_positive(F32x16 x) {
  F32x16 shifted;
  const F32x16 power = exp_remainder(x, shifted);
  return scale_down_by_power(power, shifted, x);
}

// cap * tanh(x / cap), NaN where x is not finite. With y = x / cap: below 5/8 the continued fraction of
// tanh cut behind the fifth number (relative error 1e-9), above 1 - 2 / (exp(2 |y|) + 1), whose
// rounding would show near zero.
OCTAVO_INLINE F32x16 soft_capped(F32x16 x, float cap) {
  const F32x16 y = div(x, set1(cap)), minus_y = sub(zero(), y), one = set1(1.0f);
  const F32x16 magnitude = max(y, minus_y), square = mul(y, y);
  const F32x16 numerator = fma(add(square, set1(105.0f)), square, set1(945.0f));
  const F32x16 denominator = fma(fma(square, set1(15.0f), set1(420.0f)), square, set1(945.0f));
  const F32x16 small = div(mul(y, numerator), denominator);
  const F32x16 large = sub(one, div(set1(2.0f), add(exp(add(magnitude, magnitude)), one)));
  const F32x16 signed_large = replace_where_less(y, zero(), large, sub(zero(), large));
  const F32x16 tanh = replace_where_less(magnitude, set1(0.625f), signed_large, small);
  return add(mul(tanh, set1(cap)), sub(x, x));
}

}  // namespace octavo::kernels::cpu::OCTAVO_ISA
