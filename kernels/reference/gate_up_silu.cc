#include <cmath>

#include "kernels/reference/reference_backend.h"

namespace octavo::kernels::reference {

void ReferenceBackend::gate_up_silu(const GateUpWeights& weights, ConstMatrixView x, MatrixView out) {
  std::vector<float> gate(static_cast<std::size_t>(weights.gate->rows())), up(gate.size());
  for (std::int64_t row = 0; row < x.rows; ++row) {
    const std::vector<float> normalised = rms_norm(x.row(row), weights.norm, weights.norm_epsilon);
    static_cast<const ReferenceMatrix&>(*weights.gate).multiply(normalised, weights.gate_bias, gate.data());
    static_cast<const ReferenceMatrix&>(*weights.up).multiply(normalised, weights.up_bias, up.data());
    for (std::size_t i = 0; i < gate.size(); ++i) {
      const double z = gate[i];
      out.row(row)[i] = static_cast<float>(z / (1.0 + std::exp(-z)) * double{up[i]});
    }
  }
}

}  // namespace octavo::kernels::reference
