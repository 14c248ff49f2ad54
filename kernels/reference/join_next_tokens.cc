#include <algorithm>

#include "kernels/reference/reference_backend.h"

namespace octavo::kernels::reference {

void ReferenceBackend::join_next_tokens(const NextTokenWeights& weights, ConstMatrixView tokens,
                                        ConstMatrixView x, std::span<const std::int32_t> rows,
                                        MatrixView out) {
  for (std::size_t i = 0; i < rows.size(); ++i) {
    std::vector<float> joined = norm(tokens.row(static_cast<std::int64_t>(i)), weights.token_norm);
    const std::vector<float> hidden =
        norm(norm(x.row(rows[i]), weights.output_norm).data(), weights.hidden_norm);
    joined.insert(joined.end(), hidden.begin(), hidden.end());
    const std::vector<float> row = product(*weights.matrix, joined);
    std::copy(row.begin(), row.end(), out.row(static_cast<std::int64_t>(i)));
  }
}

}  // namespace octavo::kernels::reference
