#include "kernels/cpu/simd/kernels.h"

namespace octavo::kernels::cpu::OCTAVO_ISA {
namespace {

// z / 2 * (1 + tanh(u)) = z / (1 + exp(-2 u)), u = sqrt(2 / pi) * (z + 0.044715 z^3).
OCTAVO_INLINE F32x16 gelu_of(F32x16 z) {
  constexpr float kSlope = -2.0f * 0.7978845608f;  // -2 sqrt(2 / pi)
  const F32x16 slope = fma(mul(z, z), set1(kSlope * 0.044715f), set1(kSlope));
  return div(z, add(set1(1.0f), exp(mul(z, slope))));
}

// min(z, limit): a NaN stays one, as max keeps its second argument there.
OCTAVO_INLINE F32x16 at_most(F32x16 z, float limit) { return sub(zero(), max(set1(-limit), sub(zero(), z))); }

OCTAVO_INLINE F32x16 clamped_swiglu_of(F32x16 gate, F32x16 up) {
  const F32x16 g = at_most(gate, kSwigluLimit);
  const F32x16 u = at_most(max(set1(-kSwigluLimit), up), kSwigluLimit);
  const F32x16 sigmoid_below = add(set1(1.0f), exp(mul(g, set1(-kSwigluSlope))));
  return mul(div(g, sigmoid_below), add(u, set1(1.0f)));
}

OCTAVO_INLINE F32x16 sigmoid_below(F32x16 z) { return add(set1(1.0f), exp(sub(zero(), z))); }

// log(1 + y) for 0 <= y <= 1: with s = y / (2 + y) it is 2 (s + s^3 / 3 + s^5 / 5 + ...), here up to s^15
// (relative error 1.6e-9).
OCTAVO_INLINE F32x16 log_of_one_and(F32x16 y) {
  const F32x16 s = div(y, add(set1(2.0f), y)), square = mul(s, s);
  constexpr float kTerms[] = {2.0f / 13, 2.0f / 11, 2.0f / 9, 2.0f / 7, 2.0f / 5, 2.0f / 3};
  F32x16 sum = set1(2.0f / 15);
  for (const float term : kTerms) sum = fma(sum, square, set1(term));
  return fma(mul(sum, square), s, add(s, s));
}

// max(x, 0) + log(1 + exp(-|x|)), which is x in float from 17 on.
OCTAVO_INLINE F32x16 softplus_of(F32x16 x) {
  const F32x16 minus_x = sub(zero(), x);
  const F32x16 positive = max(zero(), x), magnitude = max(minus_x, x);
  return add(positive, log_of_one_and(exp_not_positive(sub(zero(), magnitude))));
}

// max keeps its second argument where one is NaN.
OCTAVO_INLINE F32x16 relu_of(F32x16 z) { return max(zero(), z); }

OCTAVO_INLINE F32x16 squared_relu_of(F32x16 z) {
  const F32x16 positive = relu_of(z);
  return mul(positive, positive);
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

// gate[i] = function(gate[i], up[i])
template <class Function>
OCTAVO_INLINE void combine_each(float* gate, const float* up, std::int64_t size, const Function& function) {
  std::int64_t i = 0;
  for (; i + kLanes <= size; i += kLanes) store(gate + i, function(load(gate + i), load(up + i)));
  if (i == size) return;
  const int count = static_cast<int>(size - i);
  store_first(gate + i, function(load_first(gate + i, count), load_first(up + i, count)), count);
}

}  // namespace

void silu_mul(float* gate, const float* up, std::int64_t size) {
  combine_each(gate, up, size, [](F32x16 z, F32x16 u) OCTAVO_INLINE_LAMBDA { return mul(silu_of(z), u); });
}

void gelu_mul(float* gate, const float* up, std::int64_t size) {
  combine_each(gate, up, size, [](F32x16 z, F32x16 u) OCTAVO_INLINE_LAMBDA { return mul(gelu_of(z), u); });
}

void relu_mul(float* gate, const float* up, std::int64_t size) {
  combine_each(gate, up, size, [](F32x16 z, F32x16 u) OCTAVO_INLINE_LAMBDA { return mul(relu_of(z), u); });
}

void squared_relu_mul(float* gate, const float* up, std::int64_t size) {
  combine_each(gate, up, size,
               [](F32x16 z, F32x16 u) OCTAVO_INLINE_LAMBDA { return mul(squared_relu_of(z), u); });
}

void clamped_swiglu(float* gate, const float* up, std::int64_t size) {
  combine_each(gate, up, size,
               [](F32x16 z, F32x16 u) OCTAVO_INLINE_LAMBDA { return clamped_swiglu_of(z, u); });
}

void silu(float* a, std::int64_t size) {
  replace_each(a, size, [](F32x16 z) OCTAVO_INLINE_LAMBDA { return silu_of(z); });
}

void gelu(float* a, std::int64_t size) {
  replace_each(a, size, [](F32x16 z) OCTAVO_INLINE_LAMBDA { return gelu_of(z); });
}

void relu(float* a, std::int64_t size) {
  replace_each(a, size, [](F32x16 z) OCTAVO_INLINE_LAMBDA { return relu_of(z); });
}

void squared_relu(float* a, std::int64_t size) {
  replace_each(a, size, [](F32x16 z) OCTAVO_INLINE_LAMBDA { return squared_relu_of(z); });
}

void sigmoid_mul(float* a, const float* gate, std::int64_t size) {
  combine_each(a, gate, size,
               [](F32x16 x, F32x16 z) OCTAVO_INLINE_LAMBDA { return div(x, sigmoid_below(z)); });
}

void sigmoid(float* a, std::int64_t size) {
  replace_each(a, size, [](F32x16 z) OCTAVO_INLINE_LAMBDA { return div(set1(1.0f), sigmoid_below(z)); });
}

void softplus(float* a, const float* bias, std::int64_t size) {
  combine_each(a, bias, size, [](F32x16 x, F32x16 b) OCTAVO_INLINE_LAMBDA { return softplus_of(add(x, b)); });
}

void exp_scaled(float* a, const float* factor, std::int64_t size) {
  combine_each(a, factor, size, [](F32x16 x, F32x16 f) OCTAVO_INLINE_LAMBDA { return exp(mul(x, f)); });
}

void soft_cap(float* a, float cap, std::int64_t size) {
  replace_each(a, size, [cap](F32x16 x) OCTAVO_INLINE_LAMBDA { return soft_capped(x, cap); });
}

void add_row(float* a, const float* b, std::int64_t size) {
  for (std::int64_t i = 0; i < size; ++i) a[i] += b[i];
}

void multiply_row(float* a, const float* b, std::int64_t size) {
  for (std::int64_t i = 0; i < size; ++i) a[i] *= b[i];
}

void add_scaled_row(float* a, const float* b, float factor, std::int64_t size) {
  for (std::int64_t i = 0; i < size; ++i) a[i] += factor * b[i];
}

void scale_row(float* a, float factor, std::int64_t size) {
  for (std::int64_t i = 0; i < size; ++i) a[i] *= factor;
}

}  // namespace octavo::kernels::cpu::OCTAVO_ISA
