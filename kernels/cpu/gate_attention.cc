// Each item multiplies a few panels and gates the columns that they compute while these are in the cache.
#include "kernels/cpu/cpu_backend.h"

namespace octavo::kernels::cpu {

void CpuBackend::gate_attention(const AttentionGateWeights& weights, ConstMatrixView x,
                                MatrixView attention) {
  const auto& matrix = static_cast<const PackedMatrix&>(*weights.matrix);
  const std::int64_t rows = x.rows, width = matrix.rows();
  const MatrixView gate{product_rows_.reserve(rows * width), rows, width, width};
  set_normalised(weights.norm, x, {}, matrix.activation_forms());
  for_each_panel_piece(matrix, [&](const PanelPiece& piece) {
    multiply_panels(matrix, activations_, piece.first_panel, piece.last_panel, gate);
    for (std::int64_t row = 0; row < rows; ++row)
      kernels_.sigmoid_mul(attention.row(row) + piece.first, gate.row(row) + piece.first, piece.count);
  });
}

}  // namespace octavo::kernels::cpu
