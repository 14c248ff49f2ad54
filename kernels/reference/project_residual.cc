#include "kernels/reference/reference_backend.h"

namespace octavo::kernels::reference {

void ReferenceBackend::project_residual(const ProjectionWeights& weights, ConstMatrixView input,
                                        MatrixView residual) {
  const auto& matrix = static_cast<const ReferenceMatrix&>(*weights.matrix);
  std::vector<float> product(static_cast<std::size_t>(matrix.rows()));
  for (std::int64_t row = 0; row < input.rows; ++row) {
    matrix.multiply({input.row(row), input.row(row) + matrix.columns()}, weights.bias, product.data());
    if (!weights.post_norm.weight.empty()) product = norm(product.data(), weights.post_norm);
    for (std::size_t i = 0; i < product.size(); ++i) residual.row(row)[i] += product[i];
  }
}

}  // namespace octavo::kernels::reference
