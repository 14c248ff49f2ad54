#include <algorithm>

#include "kernels/cpu/cpu_backend.h"

namespace octavo::kernels::cpu {

void CpuBackend::project_residual(const ProjectionWeights& weights, ConstMatrixView input,
                                  MatrixView residual) {
  const auto& matrix = static_cast<const PackedMatrix&>(*weights.matrix);
  const std::int64_t rows = input.rows, width = matrix.rows();
  const bool has_norm = !weights.post_norm.weight.empty();
  const MatrixView product{product_rows_.reserve(rows * width), rows, width, width};
  set_activations(input, matrix.activation_form());
  const std::int64_t size = panels_per_item(matrix.num_panels());
  pool_->parallel_for_in_runs((matrix.num_panels() + size - 1) / size, [&](std::int64_t item, std::int32_t) {
    const std::int64_t first_panel = item * size,
                       last_panel = std::min(first_panel + size, matrix.num_panels());
    multiply_panels(matrix, activations_, first_panel, last_panel, product);
    const std::int64_t first = first_panel * kPanelRows,
                       count = std::min(last_panel * kPanelRows, width) - first;
    for (std::int64_t row = 0; row < rows; ++row) {
      add_bias(weights.bias, product.row(row), first, count);
      if (has_norm) continue;
      kernels_.add_row(residual.row(row) + first, product.row(row) + first, count);
      scale_residual(weights.residual_scale, residual.row(row) + first, count);
    }
  });
  if (!has_norm) return;
  for_each_row(rows, [&](std::int64_t row, std::int32_t) {  // needs the whole row
    normalise(weights.post_norm, product.row(row), product.row(row));
    kernels_.add_row(residual.row(row), product.row(row), width);
    scale_residual(weights.residual_scale, residual.row(row), width);
  });
}

}  // namespace octavo::kernels::cpu
