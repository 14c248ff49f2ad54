#include "kernels/cpu/cpu_backend.h"

namespace octavo::kernels::cpu {

void CpuBackend::logits(std::span<const float> norm, float norm_epsilon, const Matrix& weights,
                        std::span<const float> bias, ConstMatrixView x, std::span<const std::int32_t> rows,
                        MatrixView out) {
  if (rows.empty()) return;
  const auto& matrix = static_cast<const PackedMatrix&>(weights);
  set_normalised(norm, norm_epsilon, x, rows, matrix.activation_form());
  const Product products[] = {{&matrix, out}};
  multiply(products);
  if (bias.empty()) return;
  for_each_row(static_cast<std::int64_t>(rows.size()), [&](std::int64_t row, std::int32_t) {
    kernels_.add_row(out.row(row), bias.data(), static_cast<std::int64_t>(bias.size()));
  });
}

}  // namespace octavo::kernels::cpu
