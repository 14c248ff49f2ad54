// Each item multiplies the same panels of gate and up and combines them while they are in the cache.
#include <algorithm>

#include "kernels/cpu/cpu_backend.h"

namespace octavo::kernels::cpu {

void CpuBackend::gate_up_silu(const GateUpWeights& weights, ConstMatrixView x, MatrixView out) {
  const auto& gate = static_cast<const PackedMatrix&>(*weights.gate);
  const auto& up = static_cast<const PackedMatrix&>(*weights.up);
  const std::int64_t rows = x.rows, width = gate.rows();
  const MatrixView up_rows{product_rows_.reserve(rows * width), rows, width, width};
  set_normalised(weights.norm, weights.norm_epsilon, x, {}, gate.activation_form() | up.activation_form());
  const std::int64_t size = panels_per_item(gate.num_panels());
  pool_->parallel_for_in_runs((gate.num_panels() + size - 1) / size, [&](std::int64_t item, std::int32_t) {
    const std::int64_t first_panel = item * size,
                       last_panel = std::min(first_panel + size, gate.num_panels());
    multiply_panels(gate, activations_, first_panel, last_panel, out);
    multiply_panels(up, activations_, first_panel, last_panel, up_rows);
    const std::int64_t first = first_panel * kPanelRows,
                       count = std::min(last_panel * kPanelRows, width) - first;
    for (std::int64_t row = 0; row < rows; ++row) {
      float* gate_row = out.row(row) + first;
      float* up_row = up_rows.row(row) + first;
      if (!weights.gate_bias.empty()) kernels_.add_row(gate_row, weights.gate_bias.data() + first, count);
      if (!weights.up_bias.empty()) kernels_.add_row(up_row, weights.up_bias.data() + first, count);
      kernels_.silu_mul(gate_row, up_row, count);
    }
  });
}

}  // namespace octavo::kernels::cpu
