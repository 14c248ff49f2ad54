// Each item multiplies the same panels of gate and up and combines them while they are in the cache.
#include "kernels/cpu/cpu_backend.h"

namespace octavo::kernels::cpu {

void CpuBackend::feed_forward_input(const FeedForwardInputWeights& weights, ConstMatrixView x,
                                    MatrixView out) {
  const auto* up = static_cast<const PackedMatrix*>(weights.up);
  const auto* gate = static_cast<const PackedMatrix*>(weights.gate);
  const auto activate = activation_of(weights.activation);
  const auto activate_and_multiply = gated_activation(weights.activation);
  const std::int64_t rows = x.rows, width = out.columns;
  const PackedMatrix& first_matrix = gate == nullptr ? *up : *gate;
  // Without a gate the products of `up` are the output's.
  const bool has_both = gate != nullptr && up != nullptr;
  const MatrixView up_rows =
      has_both ? MatrixView{product_rows_.reserve(rows * width), rows, width, width} : out;
  const ConstMatrixView factors = up == nullptr ? weights.factors : ConstMatrixView(up_rows);
  ActivationForms forms = first_matrix.activation_forms();
  if (has_both) forms = forms | up->activation_forms();
  set_normalised(weights.norm, x, {}, forms);
  for_each_panel_piece(first_matrix, [&](const PanelPiece& piece) {
    const auto [first_panel, last_panel, first, count] = piece;
    if (gate != nullptr) multiply_panels(*gate, activations_, first_panel, last_panel, out);
    if (up != nullptr) multiply_panels(*up, activations_, first_panel, last_panel, up_rows);
    for (std::int64_t row = 0; row < rows; ++row) {
      if (up != nullptr) add_bias(weights.up_bias, up_rows.row(row), first, count);
      if (gate == nullptr) {
        activate(out.row(row) + first, count);
        continue;
      }
      add_bias(weights.gate_bias, out.row(row), first, count);
      activate_and_multiply(out.row(row) + first, factors.row(row) + first, count);
    }
  });
}

}  // namespace octavo::kernels::cpu
