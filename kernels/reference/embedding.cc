#include <algorithm>

#include "kernels/reference/reference_backend.h"

namespace octavo::kernels::reference {

void ReferenceBackend::embed(const Matrix& table, std::span<const std::int32_t> token_ids, MatrixView out) {
  const auto& rows = static_cast<const ReferenceMatrix&>(table);
  for (std::size_t i = 0; i < token_ids.size(); ++i) {
    const std::span<const float> row = rows.row(token_ids[i]);
    std::copy(row.begin(), row.end(), out.row(static_cast<std::int64_t>(i)));
  }
}

}  // namespace octavo::kernels::reference
