// Each item multiplies the same panels of gate and up and combines them while they are in the cache.
#include <algorithm>

#include "kernels/cpu/cpu_backend.h"

namespace octavo::kernels::cpu {

void CpuBackend::feed_forward_input(const FeedForwardInputWeights& weights, ConstMatrixView x,
                                    MatrixView out) {
  const auto& up = static_cast<const PackedMatrix&>(*weights.up);
  const auto* gate = static_cast<const PackedMatrix*>(weights.gate);
  const auto activate = weights.activation == FeedForwardActivation::kSilu ? kernels_.silu : kernels_.gelu;
  const auto activate_and_multiply = gated_activation(weights.activation);
  const std::int64_t rows = x.rows, width = up.rows();
  // Without a gate the products of `up` are the output's.
  const MatrixView up_rows =
      gate == nullptr ? out : MatrixView{product_rows_.reserve(rows * width), rows, width, width};
  set_normalised(weights.norm, x, {},
                 gate == nullptr ? up.activation_form() : gate->activation_form() | up.activation_form());
  const std::int64_t size = panels_per_item(up.num_panels());
  pool_->parallel_for_in_runs((up.num_panels() + size - 1) / size, [&](std::int64_t item, std::int32_t) {
    const std::int64_t first_panel = item * size, last_panel = std::min(first_panel + size, up.num_panels());
    if (gate != nullptr) multiply_panels(*gate, activations_, first_panel, last_panel, out);
    multiply_panels(up, activations_, first_panel, last_panel, up_rows);
    const std::int64_t first = first_panel * kPanelRows,
                       count = std::min(last_panel * kPanelRows, width) - first;
    for (std::int64_t row = 0; row < rows; ++row) {
      add_bias(weights.up_bias, up_rows.row(row), first, count);
      if (gate == nullptr) {
        activate(out.row(row) + first, count);
        continue;
      }
      add_bias(weights.gate_bias, out.row(row), first, count);
      activate_and_multiply(out.row(row) + first, up_rows.row(row) + first, count);
    }
  });
}

}  // namespace octavo::kernels::cpu
