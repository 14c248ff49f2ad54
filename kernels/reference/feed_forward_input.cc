#include <cmath>
#include <numbers>

#include "kernels/reference/reference_backend.h"

namespace octavo::kernels::reference {

double activated(FeedForwardActivation activation, double z) {
  if (activation == FeedForwardActivation::kSilu) return silu(z);
  if (activation == FeedForwardActivation::kRelu) return z < 0.0 ? 0.0 : z;             // keeps a NaN
  if (activation == FeedForwardActivation::kSquaredRelu) return z < 0.0 ? 0.0 : z * z;  // keeps a NaN
  const double inner = std::sqrt(2.0 / std::numbers::pi) * (z + 0.044715 * z * z * z);
  return 0.5 * z * (1.0 + std::tanh(inner));
}

double gated(FeedForwardActivation activation, double gate, double up) {
  if (activation != FeedForwardActivation::kClampedSwiglu) return activated(activation, gate) * up;
  const double limit = double{kSwigluLimit};
  const double g = gate > limit ? limit : gate;  // keeps a NaN
  const double u = up > limit ? limit : up < -limit ? -limit : up;
  return g / (1.0 + std::exp(-double{kSwigluSlope} * g)) * (u + 1.0);
}

void ReferenceBackend::feed_forward_input(const FeedForwardInputWeights& weights, ConstMatrixView x,
                                          MatrixView out) {
  std::vector<float> up(static_cast<std::size_t>(out.columns)), gate(up.size());
  for (std::int64_t row = 0; row < x.rows; ++row) {
    const std::vector<float> normalised = norm_of_row(x, row, weights.norm);
    if (weights.up == nullptr) {
      up.assign(weights.factors.row(row), weights.factors.row(row) + weights.factors.columns);
    } else {
      static_cast<const ReferenceMatrix&>(*weights.up).multiply(normalised, weights.up_bias, up.data());
    }
    if (weights.gate != nullptr) {
      static_cast<const ReferenceMatrix&>(*weights.gate).multiply(normalised, weights.gate_bias, gate.data());
    }
    for (std::size_t i = 0; i < up.size(); ++i) {
      const double value = weights.gate == nullptr ? activated(weights.activation, up[i])
                                                   : gated(weights.activation, gate[i], up[i]);
      out.row(row)[i] = static_cast<float>(value);
    }
  }
}

}  // namespace octavo::kernels::reference
