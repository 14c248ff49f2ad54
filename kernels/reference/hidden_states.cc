#include <algorithm>

#include "kernels/reference/reference_backend.h"

namespace octavo::kernels::reference {

void ReferenceBackend::hidden_states(const NormWeights& weights, ConstMatrixView x,
                                     std::span<const std::int32_t> rows, MatrixView out) {
  for (std::size_t i = 0; i < rows.size(); ++i) {
    std::ranges::copy(norm_of_row(x, rows[i], weights), out.row(static_cast<std::int64_t>(i)));
  }
}

}  // namespace octavo::kernels::reference
