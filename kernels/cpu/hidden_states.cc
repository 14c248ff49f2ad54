#include <algorithm>

#include "kernels/cpu/cpu_backend.h"

namespace octavo::kernels::cpu {

void CpuBackend::hidden_states(const NormWeights& weights, ConstMatrixView x,
                               std::span<const std::int32_t> rows, MatrixView out) {
  for_each_row(static_cast<std::int64_t>(rows.size()), [&](std::int64_t i, std::int32_t) {
    const float* const row = x.row(rows[static_cast<std::size_t>(i)]);
    if (weights.weight.empty()) {
      std::copy_n(row, x.columns, out.row(i));
    } else {
      normalise(weights, row, out.row(i));
    }
  });
}

}  // namespace octavo::kernels::cpu
