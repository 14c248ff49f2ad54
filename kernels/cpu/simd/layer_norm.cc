#include "kernels/cpu/simd/chained_sum.h"

namespace octavo::kernels::cpu::OCTAVO_ISA {

void layer_norm(const float* x, const float* weight, const float* bias, float epsilon, std::int64_t size,
                float* out) {
  const float count = static_cast<float>(size);
  const float mean =
      chained_sum(x, size,
                  [](F32x16 sum, F32x16 values, int) OCTAVO_INLINE_LAMBDA { return add(sum, values); }) /
      count;
  const F32x16 centre = set1(mean);
  const float variance =
      chained_sum(x, size,
                  [centre](F32x16 sum, F32x16 values, int num_values) OCTAVO_INLINE_LAMBDA {
                    const F32x16 apart = select_first(num_values, sub(values, centre), zero());
                    return fma(apart, apart, sum);
                  }) /
      count;
  const F32x16 scale = set1(1.0f / __builtin_sqrtf(variance + epsilon));
  const auto normalised = [=](F32x16 values, F32x16 weights, F32x16 added) OCTAVO_INLINE_LAMBDA {
    return fma(mul(sub(values, centre), scale), weights, added);
  };
  std::int64_t i = 0;
  for (; i + kLanes <= size; i += kLanes) {
    const F32x16 added = bias == nullptr ? zero() : load(bias + i);
    store(out + i, normalised(load(x + i), load(weight + i), added));
  }
  if (i == size) return;
  const int num_left = static_cast<int>(size - i);
  const F32x16 added = bias == nullptr ? zero() : load_first(bias + i, num_left);
  store_first(out + i, normalised(load_first(x + i, num_left), load_first(weight + i, num_left), added),
              num_left);
}

}  // namespace octavo::kernels::cpu::OCTAVO_ISA
