#include "kernels/cpu/simd/kernels.h"

namespace octavo::kernels::cpu::OCTAVO_ISA {
namespace {

constexpr float kMinusInfinity = -__builtin_inff();

// Group i of `size` values; lanes past the end are -infinity, whose exponential is an exact zero.
OCTAVO_INLINE F32x16 load_group(const float* values, std::int64_t i, std::int64_t size) {
  if (i + kLanes <= size) return load(values + i);
  const int count = static_cast<int>(size - i);
  return select_first(count, load_first(values + i, count), set1(kMinusInfinity));
}

}  // namespace

void max_and_exp_sum(const float* logits, std::int64_t size, float* max_out, float* sum_out) {
  F32x16 largest = set1(kMinusInfinity);
  for (std::int64_t i = 0; i < size; i += kLanes) largest = max(load_group(logits, i, size), largest);
  *max_out = horizontal_max(largest);
  // In a piece of nothing but impossible tokens the sum is 0; a NaN, which max passes over, still shows in
  // it.
  const F32x16 shift = set1(*max_out == kMinusInfinity ? 0.0f : *max_out);
  F32x16 sum = zero();
  for (std::int64_t i = 0; i < size; i += kLanes)
    sum = add(sum, exp(sub(load_group(logits, i, size), shift)));
  *sum_out = horizontal_sum(sum);
}

void merge_exp_sums(float* max, float* sum, float later_max, float later_sum) {
  const float largest = *max > later_max ? *max : later_max;
  if (largest == kMinusInfinity) {
    *sum += later_sum;
    return;
  }
  *sum = __builtin_fmaf(*sum, exp_of(*max - largest), later_sum * exp_of(later_max - largest));
  *max = largest;
}

}  // namespace octavo::kernels::cpu::OCTAVO_ISA
