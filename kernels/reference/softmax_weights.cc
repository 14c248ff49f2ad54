#include <algorithm>
#include <cmath>

#include "kernels/reference/reference_backend.h"

namespace octavo::kernels::reference {

void ReferenceBackend::softmax_weights(std::span<const double> scores, double best,
                                       double inverse_temperature, std::span<double> weights,
                                       std::span<double> piece_sums) {
  std::fill(piece_sums.begin(), piece_sums.end(), 0.0);
  for (std::size_t i = 0; i < scores.size(); ++i) {
    weights[i] = std::exp((scores[i] - best) * inverse_temperature);
    piece_sums[i / std::size_t{kLogitsPiece}] += weights[i];
  }
}

}  // namespace octavo::kernels::reference
