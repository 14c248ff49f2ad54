#include "kernels/cpu/simd/kernels.h"

namespace octavo::kernels::cpu::OCTAVO_ISA {
namespace {

OCTAVO_INLINE F32x16 silu(F32x16 z) { return div(z, add(set1(1.0f), exp(sub(zero(), z)))); }

}  // namespace

void silu_mul(float* gate, const float* up, std::int64_t size) {
  std::int64_t i = 0;
  for (; i + kLanes <= size; i += kLanes) store(gate + i, mul(silu(load(gate + i)), load(up + i)));
  if (i == size) return;
  const int count = static_cast<int>(size - i);
  store_first(gate + i, mul(silu(load_first(gate + i, count)), load_first(up + i, count)), count);
}

void add_row(float* a, const float* b, std::int64_t size) {
  for (std::int64_t i = 0; i < size; ++i) a[i] += b[i];
}

}  // namespace octavo::kernels::cpu::OCTAVO_ISA
