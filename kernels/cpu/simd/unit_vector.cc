#include "kernels/cpu/simd/chained_sum.h"

namespace octavo::kernels::cpu::OCTAVO_ISA {

void unit_vector(float* a, float epsilon, float scale, std::int64_t size) {
  const auto add_square = [](F32x16 sum, F32x16 values, int)
                              OCTAVO_INLINE_LAMBDA { return fma(values, values, sum); };
  const float factor = scale / __builtin_sqrtf(chained_sum(a, size, add_square) + epsilon);
  for (std::int64_t i = 0; i < size; ++i) a[i] *= factor;
}

}  // namespace octavo::kernels::cpu::OCTAVO_ISA
