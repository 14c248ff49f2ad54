#include "kernels/cpu/simd/kernels.h"

namespace octavo::kernels::cpu::OCTAVO_ISA {
namespace {

// Eight at once, through the compilers' vector extension: the same additions and multiplications in every
// instruction set, and never a fused one.
constexpr int kWide = 8;
using F64x8 = double __attribute__((vector_size(8 * kWide)));
using I64x8 = std::int64_t __attribute__((vector_size(8 * kWide)));

// x = exp(x) for x <= 0 within three units in the last place; 0 below -708.8, minus infinity included.
//
// x = n ln 2 + r as in simd.h's exp; exp(r) by Taylor's series to the 12th
// power, whose rest is below 1e-16 for
// |r| <= ln(2) / 2, its terms paired as Estrin does.
OCTAVO_INLINE void replace_by_exp(F64x8& x) {
  constexpr double kLowest = -709.0;  // its power of two is 2^-1023, which has the bits of 0
  x = x > kLowest ? x : F64x8{} + kLowest;
  const F64x8 shifted = x * 0x1.71547652b82fep0 + 0x1.8p52;
  const F64x8 n = shifted - 0x1.8p52;
  const F64x8 r = (x - n * 0x1.62e42fefa0000p-1) - n * 0x1.cf79abc9e3b3ap-40;
  const F64x8 r2 = r * r, r4 = r2 * r2;
  const F64x8 low = ((1.0 + r) + r2 * (1.0 / 2 + r * (1.0 / 6))) +
                    r4 * ((1.0 / 24 + r * (1.0 / 120)) + r2 * (1.0 / 720 + r * (1.0 / 5040)));
  const F64x8 high = ((1.0 / 40320 + r * (1.0 / 362880)) + r2 * (1.0 / 3628800 + r * (1.0 / 39916800))) +
                     r4 * (1.0 / 479001600);
  const I64x8 power = ((I64x8)shifted + 1023) << 52;
  x = (low + r4 * r4 * high) * (F64x8)power;
}

// Weights of up to kWide scores; those past the end are 0.
OCTAVO_INLINE void weigh(const double* scores, std::int64_t count, double best, double inverse_temperature,
                         double* weights, F64x8& sum) {
  F64x8 x = F64x8{} - __builtin_inf();
  if (count >= kWide) {
    __builtin_memcpy(&x, scores, sizeof x);
  } else {
    for (int i = 0; i < count; ++i) x[i] = scores[i];
  }
  x = (x - best) * inverse_temperature;
  replace_by_exp(x);
  sum += x;
  if (count >= kWide) {
    __builtin_memcpy(weights, &x, sizeof x);
  } else {
    for (int i = 0; i < count; ++i) weights[i] = x[i];
  }
}

}  // namespace

void softmax_weights(const double* scores, std::int64_t size, double best, double inverse_temperature,
                     double* weights, double* piece_sums) {
  for (std::int64_t first = 0; first < size; first += kPieceEntries) {
    F64x8 sum = {};
    const std::int64_t end = first + kPieceEntries < size ? first + kPieceEntries : size;
    for (std::int64_t i = first; i < end; i += kWide)
      weigh(scores + i, end - i, best, inverse_temperature, weights + i, sum);
    piece_sums[first / kPieceEntries] =
        ((sum[0] + sum[4]) + (sum[1] + sum[5])) + ((sum[2] + sum[6]) + (sum[3] + sum[7]));
  }
}

}  // namespace octavo::kernels::cpu::OCTAVO_ISA
