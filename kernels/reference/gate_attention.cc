#include "kernels/reference/reference_backend.h"

namespace octavo::kernels::reference {

void ReferenceBackend::gate_attention(const AttentionGateWeights& weights, ConstMatrixView x,
                                      MatrixView attention) {
  for (std::int64_t row = 0; row < x.rows; ++row) {
    const std::vector<float> gate = product(*weights.matrix, norm(x.row(row), weights.norm));
    for (std::size_t i = 0; i < gate.size(); ++i) {
      float& number = attention.row(row)[i];
      number = static_cast<float>(double{number} * sigmoid(double{gate[i]}));
    }
  }
}

}  // namespace octavo::kernels::reference
