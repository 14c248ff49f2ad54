#include "kernels/cpu/simd/machine_limits.h"

#include <cstddef>
#include <cstdint>

#include "kernels/cpu/simd.h"

#if defined(OCTAVO_SIMD_AVX512)
#include "kernels/cpu/simd/integers_avx512.h"
#elif defined(OCTAVO_SIMD_AVX2)
#include "kernels/cpu/simd/integers_avx2.h"
#endif

namespace octavo::kernels::cpu::OCTAVO_ISA {
namespace {

// Twelve independent chains hide the latency of every multiply-add there is.
constexpr int kChains = 12;

std::int64_t read(const std::byte* data, std::int64_t num_bytes) {
  const auto* words = reinterpret_cast<const float*>(data);
  F32x16 sums[8];
  for (F32x16& sum : sums) sum = set1(0.0f);
  for (std::int64_t i = 0; i < num_bytes / 4; i += 8 * kLanes) {
    OCTAVO_UNROLL
    for (int j = 0; j < 8; ++j) {
      const float* line = words + i + j * kLanes;
      __builtin_prefetch(line + 1024);  // 4 KiB ahead, past the end too, which does no harm
      sums[j] = max(sums[j], load(line));
    }
  }
  float lanes[kLanes];
  F32x16 all = sums[0];
  for (int j = 1; j < 8; ++j) all = max(all, sums[j]);
  store(lanes, all);
  return lanes[0] > 0.5f ? 1 : 0;
}

// The compiler must believe that the value changes, so that no product is computed once for several chains.
#if defined(OCTAVO_SIMD_PORTABLE)
#define OCTAVO_CHANGED(value) asm volatile("" : "+r"(value))
#else
#define OCTAVO_CHANGED(value) asm volatile("" : "+v"(value))
#endif

float float_rounds(std::int64_t num_rounds) {
  float starts[kChains * kLanes];
  for (int i = 0; i < kChains * kLanes; ++i) starts[i] = static_cast<float>(i);
  F32x16 sums[kChains];
  for (int i = 0; i < kChains; ++i) sums[i] = load(starts + i * kLanes);
  const F32x16 factor = set1(0.999f), term = set1(0.001f);
  for (std::int64_t round = 0; round < num_rounds; ++round) {
    OCTAVO_UNROLL
    for (int i = 0; i < kChains; ++i) sums[i] = fma(sums[i], factor, term);
  }
  for (int i = 1; i < kChains; ++i) sums[0] = add(sums[0], sums[i]);
  return horizontal_sum(sums[0]);  // of all lanes: none may be left out
}

#if defined(OCTAVO_SIMD_PORTABLE)
using Integers = std::int32_t;
constexpr std::int64_t kInt8PerStep = 1;
OCTAVO_INLINE Integers all_bytes(char a) { return a; }
OCTAVO_INLINE Integers int8_step(Integers sum, Integers a, Integers& b) {
  OCTAVO_CHANGED(b);
  return (sum + a * b) & 0xffff;
}
OCTAVO_INLINE Integers add_integers(Integers a, Integers b) { return a + b; }
OCTAVO_INLINE float first_of(Integers a) { return static_cast<float>(a); }
#elif defined(OCTAVO_SIMD_VNNI)
constexpr std::int64_t kInt8PerStep = 64 / kParts;
OCTAVO_INLINE Integers int8_step(Integers sum, Integers a, Integers& b) { return add_dot_bytes(sum, a, b); }
#else
// Four products of small numbers fit into 16 bits before they are widened.
constexpr std::int64_t kInt8PerStep = 4 * 64 / kParts;
OCTAVO_INLINE Integers int8_step(Integers sum, Integers a, Integers& b) {
  Integers words = multiply_bytes(a, b);
  for (int i = 1; i < 4; ++i) {
    OCTAVO_CHANGED(b);
    words = add_words(words, multiply_bytes(a, b));
  }
  return add_integers(sum, multiply_words(words, all_words(1)));
}
#endif
#if !defined(OCTAVO_SIMD_PORTABLE)
OCTAVO_INLINE float first_of(Integers a) {
  float lanes[kLanes / kParts];
  __builtin_memcpy(lanes, &a, sizeof lanes);
  return lanes[0];
}
#endif

float int8_rounds(std::int64_t num_rounds) {
  Integers sums[kChains];
  for (int i = 0; i < kChains; ++i) sums[i] = all_bytes(static_cast<char>(i));
  const Integers a = all_bytes(3);
  Integers b = all_bytes(5);
  for (std::int64_t round = 0; round < num_rounds; ++round) {
    OCTAVO_UNROLL
    for (int i = 0; i < kChains; ++i) sums[i] = int8_step(sums[i], a, b);
    OCTAVO_CHANGED(b);
  }
  for (int i = 1; i < kChains; ++i) sums[0] = add_integers(sums[0], sums[i]);
  return first_of(sums[0]);
}

}  // namespace

extern const MachineLimitKernels kMachineLimitKernels;
const MachineLimitKernels kMachineLimitKernels = {read, int8_rounds, float_rounds, kChains* kInt8PerStep,
                                                  kChains* kLanes};

}  // namespace octavo::kernels::cpu::OCTAVO_ISA
