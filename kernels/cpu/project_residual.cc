#include "kernels/cpu/cpu_backend.h"

namespace octavo::kernels::cpu {

void CpuBackend::project_residual(const ProjectionWeights& weights, ConstMatrixView input,
                                  MatrixView residual) {
  const auto& matrix = static_cast<const PackedMatrix&>(*weights.matrix);
  const std::int64_t rows = input.rows, width = matrix.rows();
  const bool has_norm = !weights.post_norm.weight.empty();
  const MatrixView product{product_rows_.reserve(rows * width), rows, width, width};
  set_activations(input, matrix.activation_forms());
  for_each_panel_piece(matrix, [&](const PanelPiece& piece) {
    const auto [first_panel, last_panel, first, count] = piece;
    multiply_panels(matrix, activations_, first_panel, last_panel, product);
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
