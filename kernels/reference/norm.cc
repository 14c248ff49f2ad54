#include <cmath>

#include "kernels/reference/reference_backend.h"

namespace octavo::kernels::reference {
namespace {

double mean_of(const float* x, std::size_t size) {
  double sum = 0.0;
  for (std::size_t i = 0; i < size; ++i) sum += double{x[i]};
  return sum / static_cast<double>(size);
}

}  // namespace

std::vector<float> norm(const float* x, const NormWeights& weights) {
  const std::size_t size = weights.weight.size();
  const double centre = weights.kind == NormKind::kLayer ? mean_of(x, size) : 0.0;
  double sum = 0.0;
  for (std::size_t i = 0; i < size; ++i) sum += (double{x[i]} - centre) * (double{x[i]} - centre);
  const double scale = 1.0 / std::sqrt(sum / static_cast<double>(size) + double{weights.epsilon});
  std::vector<float> out(size);
  for (std::size_t i = 0; i < size; ++i) {
    const double bias = weights.bias.empty() ? 0.0 : double{weights.bias[i]};
    out[i] = static_cast<float>((double{x[i]} - centre) * scale * double{weights.weight[i]} + bias);
  }
  return out;
}

std::vector<float> norm_of_row(ConstMatrixView x, std::int64_t row, const NormWeights& weights) {
  if (weights.weight.empty()) return {x.row(row), x.row(row) + x.columns};
  return norm(x.row(row), weights);
}

}  // namespace octavo::kernels::reference
