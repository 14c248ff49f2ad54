#include "kernels/cpu/simd/kernels.h"

namespace octavo::kernels::cpu::OCTAVO_ISA {
namespace {

OCTAVO_INLINE F32x16 silu_of(F32x16 z) { return div(z, add(set1(1.0f), exp(sub(zero(), z)))); }

// z / 2 * (1 + tanh(u)) = z / (1 + exp(-2 u)), u = sqrt(2 / pi) * (z + 0.044715 z^3).
OCTAVO_INLINE F32x16 gelu_of(F32x16 z) {
  constexpr float kSlope = -2.0f * 0.7978845608f;  // -2 sqrt(2 / pi)
  const F32x16 slope = fma(mul(z, z), set1(kSlope * 0.044715f), set1(kSlope));
  return div(z, add(set1(1.0f), exp(mul(z, slope))));
}

// a[i] = function(a[i], i) for vectors; the last one may be cut.
template <class Function>
OCTAVO_INLINE void replace_each(float* a, std::int64_t size, const Function& function) {
  std::int64_t i = 0;
  for (; i + kLanes <= size; i += kLanes) store(a + i, function(load(a + i)));
  if (i == size) return;
  const int count = static_cast<int>(size - i);
  store_first(a + i, function(load_first(a + i, count)), count);
}

template <class Function>
OCTAVO_INLINE void multiply_each(float* gate, const float* up, std::int64_t size, const Function& function) {
  std::int64_t i = 0;
  for (; i + kLanes <= size; i += kLanes) store(gate + i, mul(function(load(gate + i)), load(up + i)));
  if (i == size) return;
  const int count = static_cast<int>(size - i);
  store_first(gate + i, mul(function(load_first(gate + i, count)), load_first(up + i, count)), count);
}

}  // namespace

void silu_mul(float* gate, const float* up, std::int64_t size) {
  multiply_each(gate, up, size, [](F32x16 z) OCTAVO_INLINE_LAMBDA { return silu_of(z); });
}

void gelu_mul(float* gate, const float* up, std::int64_t size) {
  multiply_each(gate, up, size, [](F32x16 z) OCTAVO_INLINE_LAMBDA { return gelu_of(z); });
}

void silu(float* a, std::int64_t size) {
  replace_each(a, size, [](F32x16 z) OCTAVO_INLINE_LAMBDA { return silu_of(z); });
}

void gelu(float* a, std::int64_t size) {
  replace_each(a, size, [](F32x16 z) OCTAVO_INLINE_LAMBDA { return gelu_of(z); });
}

void soft_cap(float* a, float cap, std::int64_t size) {
  replace_each(a, size, [cap](F32x16 x) OCTAVO_INLINE_LAMBDA { return soft_capped(x, cap); });
}

void add_row(float* a, const float* b, std::int64_t size) {
  for (std::int64_t i = 0; i < size; ++i) a[i] += b[i];
}

void scale_row(float* a, float factor, std::int64_t size) {
  for (std::int64_t i = 0; i < size; ++i) a[i] *= factor;
}

}  // namespace octavo::kernels::cpu::OCTAVO_ISA
