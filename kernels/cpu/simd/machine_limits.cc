#include "kernels/cpu/simd/machine_limits.h"

#include <cstddef>
#include <cstdint>

#include "kernels/cpu/simd.h"

namespace octavo::kernels::cpu::OCTAVO_ISA {
namespace {

// Twelve independent chains hide the latency of every multiply-add there is.
constexpr int kChains = 12;

std::int64_t read(const std::byte* data, std::int64_t num_bytes) {
  const auto* words = reinterpret_cast<const float*>(data);
  F32x16 sums[8];
  for (F32x16& sum : sums) sum = set1(0.0f);
  for (std::int64_t i = 0; i < num_bytes / 4; i += 8 * kLanes) {
    for (int j = 0; j < 8; ++j) sums[j] = max(sums[j], load(words + i + j * kLanes));
  }
  float lanes[kLanes];
  F32x16 all = sums[0];
  for (int j = 1; j < 8; ++j) all = max(all, sums[j]);
  store(lanes, all);
  return lanes[0] > 0.5f ? 1 : 0;
}

float float_rounds(std::int64_t num_rounds) {
  F32x16 sums[kChains];
  for (int i = 0; i < kChains; ++i) sums[i] = set1(static_cast<float>(i));
  F32x16 factor = set1(0.999f);
  F32x16 term = set1(0.001f);
  for (std::int64_t round = 0; round < num_rounds; ++round) {
    for (F32x16& sum : sums) sum = fma(sum, factor, term);
  }
  float lanes[kLanes];
  for (int i = 1; i < kChains; ++i) sums[0] = add(sums[0], sums[i]);
  store(lanes, sums[0]);
  return lanes[0];
}

#if defined(OCTAVO_SIMD_PORTABLE)
#define OCTAVO_IN_REGISTER(value) "+r"(value)
#else
#define OCTAVO_IN_REGISTER(value) "+v"(value)
#endif

#if defined(OCTAVO_ISA_AVX512_VNNI)
constexpr std::int64_t kInt8PerInstruction = 64;
using Int8Vector = __m512i;
OCTAVO_INLINE Int8Vector int8_set1(char value) { return _mm512_set1_epi8(value); }
OCTAVO_INLINE Int8Vector int8_multiply_add(Int8Vector sum, Int8Vector a, Int8Vector b) { return _mm512_dpbusd_epi32(sum, a, b); }
OCTAVO_INLINE Int8Vector int8_add(Int8Vector a, Int8Vector b) { return _mm512_add_epi32(a, b); }
OCTAVO_INLINE std::int64_t int8_first(Int8Vector a) { return _mm_cvtsi128_si32(_mm512_castsi512_si128(a)); }
#elif defined(OCTAVO_SIMD_AVX512)
constexpr std::int64_t kInt8PerInstruction = 64;
using Int8Vector = __m512i;
OCTAVO_INLINE Int8Vector int8_set1(char value) { return _mm512_set1_epi8(value); }
OCTAVO_INLINE Int8Vector int8_multiply_add(Int8Vector sum, Int8Vector a, Int8Vector b) {
  return _mm512_add_epi32(sum, _mm512_madd_epi16(_mm512_maddubs_epi16(a, b), _mm512_set1_epi16(1)));
}
OCTAVO_INLINE Int8Vector int8_add(Int8Vector a, Int8Vector b) { return _mm512_add_epi32(a, b); }
OCTAVO_INLINE std::int64_t int8_first(Int8Vector a) { return _mm_cvtsi128_si32(_mm512_castsi512_si128(a)); }
#elif defined(OCTAVO_SIMD_AVX2)
constexpr std::int64_t kInt8PerInstruction = 32;
using Int8Vector = __m256i;
OCTAVO_INLINE Int8Vector int8_set1(char value) { return _mm256_set1_epi8(value); }
OCTAVO_INLINE Int8Vector int8_multiply_add(Int8Vector sum, Int8Vector a, Int8Vector b) {
  return _mm256_add_epi32(sum, _mm256_madd_epi16(_mm256_maddubs_epi16(a, b), _mm256_set1_epi16(1)));
}
OCTAVO_INLINE Int8Vector int8_add(Int8Vector a, Int8Vector b) { return _mm256_add_epi32(a, b); }
OCTAVO_INLINE std::int64_t int8_first(Int8Vector a) { return _mm_cvtsi128_si32(_mm256_castsi256_si128(a)); }
#else
constexpr std::int64_t kInt8PerInstruction = 1;
using Int8Vector = std::int32_t;
OCTAVO_INLINE Int8Vector int8_set1(char value) { return value; }
OCTAVO_INLINE Int8Vector int8_multiply_add(Int8Vector sum, Int8Vector a, Int8Vector b) { return (sum + a * b) & 0xffff; }
OCTAVO_INLINE Int8Vector int8_add(Int8Vector a, Int8Vector b) { return a + b; }
OCTAVO_INLINE std::int64_t int8_first(Int8Vector a) { return a; }
#endif

std::int64_t int8_rounds(std::int64_t num_rounds) {
  Int8Vector sums[kChains];
  for (int i = 0; i < kChains; ++i) sums[i] = int8_set1(static_cast<char>(i));
  Int8Vector a = int8_set1(3);
  Int8Vector b = int8_set1(5);
  for (std::int64_t round = 0; round < num_rounds; ++round) {
    for (Int8Vector& sum : sums) sum = int8_multiply_add(sum, a, b);
    asm volatile("" : OCTAVO_IN_REGISTER(a), OCTAVO_IN_REGISTER(b));  // the products must not be moved out of the loop
  }
  for (int i = 1; i < kChains; ++i) sums[0] = int8_add(sums[0], sums[i]);
  return int8_first(sums[0]);
}

}  // namespace

extern const MachineLimitKernels kMachineLimitKernels;
const MachineLimitKernels kMachineLimitKernels = {read, int8_rounds, float_rounds, kChains * kInt8PerInstruction, kChains * kLanes};

}  // namespace octavo::kernels::cpu::OCTAVO_ISA
