#include "kernels/cpu/simd/chained_sum.h"

namespace octavo::kernels::cpu::OCTAVO_ISA {

void rms_norm(const float* x, const float* weight, float epsilon, std::int64_t size, float* out) {
  const auto add_square = [](F32x16 sum, F32x16 values, int)
                              OCTAVO_INLINE_LAMBDA { return fma(values, values, sum); };
  const float mean = chained_sum(x, size, add_square) / static_cast<float>(size);
  const float scale = 1.0f / __builtin_sqrtf(mean + epsilon);
  for (std::int64_t i = 0; i < size; ++i) out[i] = x[i] * scale * weight[i];
}

}  // namespace octavo::kernels::cpu::OCTAVO_ISA
