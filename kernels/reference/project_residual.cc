#include "kernels/reference/reference_backend.h"

namespace octavo::kernels::reference {

void ReferenceBackend::project_residual(const ProjectionWeights& weights, ConstMatrixView input,
                                        MatrixView residual) {
  const auto& matrix = static_cast<const ReferenceMatrix&>(*weights.matrix);
  std::vector<float> product(static_cast<std::size_t>(matrix.rows()));
  for (std::int64_t row = 0; row < input.rows; ++row) {
    matrix.multiply({input.row(row), input.row(row) + matrix.columns()}, weights.bias, product.data());
    if (!weights.post_norm.weight.empty()) product = norm(product.data(), weights.post_norm);
    float* const sums = residual.row(row);
    for (std::size_t i = 0; i < product.size(); ++i)
      sums[i] = (sums[i] + product[i]) * weights.residual_scale;
  }
}

}  // namespace octavo::kernels::reference
