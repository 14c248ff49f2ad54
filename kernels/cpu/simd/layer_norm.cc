#include "kernels/cpu/simd/kernels.h"

namespace octavo::kernels::cpu::OCTAVO_ISA {
namespace {

constexpr int kChains = 4;

// Sum of function(x) in four accumulators, taken in turn by groups of 16. `function` gets zeros behind the
// last number and how many are none.
template <class Function>
OCTAVO_INLINE float sum_of(const float* x, std::int64_t size, const Function& function) {
  F32x16 sums[kChains] = {zero(), zero(), zero(), zero()};
  std::int64_t i = 0;
  for (; i + kChains * kLanes <= size; i += kChains * kLanes) {
    for (int chain = 0; chain < kChains; ++chain) {
      sums[chain] = function(sums[chain], load(x + i + chain * kLanes), kLanes);
    }
  }
  for (int chain = 0; i < size; i += kLanes, ++chain) {
    const int count = static_cast<int>(size - i < kLanes ? size - i : kLanes);
    sums[chain] = function(sums[chain], load_first(x + i, count), count);
  }
  return horizontal_sum(add(add(sums[0], sums[1]), add(sums[2], sums[3])));
}

}  // namespace

void layer_norm(const float* x, const float* weight, const float* bias, float epsilon, std::int64_t size,
                float* out) {
  const float count = static_cast<float>(size);
  const float mean =
      sum_of(x, size, [](F32x16 sum, F32x16 values, int) OCTAVO_INLINE_LAMBDA { return add(sum, values); }) /
      count;
  const F32x16 centre = set1(mean);
  const float variance = sum_of(x, size,
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
