#include <algorithm>
#include <cmath>

#include "kernels/reference/reference_backend.h"

namespace octavo::kernels::reference {

void ReferenceBackend::log_sum_exp(ConstMatrixView logits, std::span<float> out) {
  for (std::int64_t row = 0; row < logits.rows; ++row) {
    const float* values = logits.row(row);
    const double largest = *std::max_element(values, values + logits.columns);
    double sum = 0.0;
    for (std::int64_t i = 0; i < logits.columns; ++i) sum += std::exp(double{values[i]} - largest);
    out[static_cast<std::size_t>(row)] = static_cast<float>(largest + std::log(sum));
  }
}

}  // namespace octavo::kernels::reference
