// Sums over a row in one order on every machine.
#pragma once

#include "kernels/cpu/simd/kernels.h"

namespace octavo::kernels::cpu::OCTAVO_ISA {

// Four accumulators, taken in turn by groups of 16: sum = function(sum, x, count). Behind the last number
// `function` gets zeros; `count` says how many are numbers.
template <class Function>
OCTAVO_INLINE float chained_sum(const float* x, std::int64_t size, const Function& function) {
  constexpr int kChains = 4;
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

}  // namespace octavo::kernels::cpu::OCTAVO_ISA
