#include "kernels/cpu/simd/kernels.h"

namespace octavo::kernels::cpu::OCTAVO_ISA {
namespace {

// Four accumulators, taken in turn by groups of 16; the last group is filled up with zeros.
float sum_of_squares(const float* x, std::int64_t size) {
  constexpr int kChains = 4;
  F32x16 sums[kChains] = {zero(), zero(), zero(), zero()};
  std::int64_t i = 0;
  for (; i + kChains * kLanes <= size; i += kChains * kLanes) {
    for (int chain = 0; chain < kChains; ++chain) {
      const F32x16 values = load(x + i + chain * kLanes);
      sums[chain] = fma(values, values, sums[chain]);
    }
  }
  for (int chain = 0; i < size; i += kLanes, ++chain) {
    const F32x16 values = load_first(x + i, static_cast<int>(size - i < kLanes ? size - i : kLanes));
    sums[chain] = fma(values, values, sums[chain]);
  }
  return horizontal_sum(add(add(sums[0], sums[1]), add(sums[2], sums[3])));
}

}  // namespace

void rms_norm(const float* x, const float* weight, float epsilon, std::int64_t size, float* out) {
  const float mean = sum_of_squares(x, size) / static_cast<float>(size);
  const float scale = 1.0f / __builtin_sqrtf(mean + epsilon);
  for (std::int64_t i = 0; i < size; ++i) out[i] = x[i] * scale * weight[i];
}

}  // namespace octavo::kernels::cpu::OCTAVO_ISA
