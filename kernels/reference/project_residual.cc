#include "kernels/reference/reference_backend.h"

namespace octavo::kernels::reference {

void ReferenceBackend::project_residual(const Matrix& weights, std::span<const float> bias,
                                        ConstMatrixView input, MatrixView residual) {
  const auto& matrix = static_cast<const ReferenceMatrix&>(weights);
  std::vector<float> product(static_cast<std::size_t>(matrix.rows()));
  for (std::int64_t row = 0; row < input.rows; ++row) {
    matrix.multiply({input.row(row), input.row(row) + matrix.columns()}, bias, product.data());
    for (std::size_t i = 0; i < product.size(); ++i) residual.row(row)[i] += product[i];
  }
}

}  // namespace octavo::kernels::reference
