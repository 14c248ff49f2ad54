#include "kernels/reference/reference_backend.h"

namespace octavo::kernels::reference {

void ReferenceBackend::logits(std::span<const float> norm, float norm_epsilon, const Matrix& weights,
                              std::span<const float> bias, ConstMatrixView x,
                              std::span<const std::int32_t> rows, MatrixView out) {
  for (std::size_t i = 0; i < rows.size(); ++i) {
    static_cast<const ReferenceMatrix&>(weights).multiply(rms_norm(x.row(rows[i]), norm, norm_epsilon), bias,
                                                          out.row(static_cast<std::int64_t>(i)));
  }
}

}  // namespace octavo::kernels::reference
