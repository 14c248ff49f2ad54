#include <algorithm>

#include "kernels/reference/reference_backend.h"

namespace octavo::kernels::reference {

void ReferenceBackend::project_heads(std::span<const Matrix* const> heads, ConstMatrixView input,
                                     MatrixView out) {
  const auto num_heads = static_cast<std::int64_t>(heads.size());
  for (std::int64_t row = 0; row < input.rows; ++row) {
    for (std::int64_t head = 0; head < num_heads; ++head) {
      const Matrix& matrix = *heads[static_cast<std::size_t>(head)];
      const float* part = input.row(row) + head * (input.columns / num_heads);
      const std::vector<float> result = product(matrix, {part, part + matrix.columns()});
      std::copy(result.begin(), result.end(), out.row(row) + head * (out.columns / num_heads));
    }
  }
}

}  // namespace octavo::kernels::reference
