#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/dequantize.h"
#include "kernels/reference/reference_backend.h"

namespace octavo::kernels::reference {
namespace {

constexpr std::size_t kGroup = 32;

float largest_integer(Activation activation) { return activation == Activation::kInt8 ? 127.0f : 32639.0f; }

void round_group(float* group, float most) {
  float largest = 0.0f;
  bool finite = true;
  for (std::size_t i = 0; i < kGroup; ++i) {
    largest = std::max(largest, std::fabs(group[i]));
    finite = finite && std::isfinite(group[i]);
  }
  if (!finite) {
    std::fill_n(group, kGroup, std::numeric_limits<float>::quiet_NaN());
    return;
  }
  float scale = largest / most;
  if (scale < std::numeric_limits<float>::min()) scale = 0.0f;
  for (std::size_t i = 0; i < kGroup; ++i) {
    group[i] = scale == 0.0f ? 0.0f : scale * std::nearbyintf(group[i] / scale);
  }
}

}  // namespace

void round_activations(Activation activation, std::vector<float>& row) {
  if (activation == Activation::kF32) return;
  for (std::size_t i = 0; i < row.size(); i += kGroup)
    round_group(row.data() + i, largest_integer(activation));
}

ReferenceMatrix::ReferenceMatrix(const MatrixSource& source, Activation activation)
    : Matrix(source.rows, source.columns),
      weights_(static_cast<std::size_t>(source.rows * source.columns)),
      activation_(meets_integers(source.type) ? activation : Activation::kF32),
      scale_(source.scale),
      column_order_(source.column_order.begin(), source.column_order.end()) {
  dequantize(source.type, source.bytes.data(), source.rows * source.columns, weights_.data());
}

void ReferenceMatrix::multiply(const std::vector<float>& a, std::span<const float> bias, float* out) const {
  std::vector<float> row = a;
  for (std::size_t i = 0; i < column_order_.size(); ++i)
    row[i] = a[static_cast<std::size_t>(column_order_[i])];
  round_activations(activation_, row);
  for (std::int64_t n = 0; n < rows(); ++n) {
    double sum = bias.empty() ? 0.0 : double{bias[static_cast<std::size_t>(n)]};
    const float* weights = weights_.data() + n * columns();
    for (std::size_t k = 0; k < row.size(); ++k) sum += double{weights[k]} * double{row[k]} * double{scale_};
    out[n] = static_cast<float>(sum);
  }
}

std::vector<float> product(const Matrix& matrix, const std::vector<float>& x, std::span<const float> bias) {
  std::vector<float> out(static_cast<std::size_t>(matrix.rows()));
  static_cast<const ReferenceMatrix&>(matrix).multiply(x, bias, out.data());
  return out;
}

}  // namespace octavo::kernels::reference
