#include <algorithm>
#include <cmath>

#include "kernels/reference/reference_backend.h"

namespace octavo::kernels::reference {
namespace {

float log_sum_exp(const float* values, std::int64_t count) {
  const double largest = *std::max_element(values, values + count);
  double sum = 0.0;
  for (std::int64_t i = 0; i < count; ++i) sum += std::exp(double{values[i]} - largest);
  return static_cast<float>(largest + std::log(sum));
}

}  // namespace

void ReferenceBackend::logits(const OutputHead& head, ConstMatrixView x, std::span<const std::int32_t> rows,
                              MatrixView out, LogitsSummary summary) {
  const std::int64_t vocabulary = head.matrix->rows(), num_pieces = num_logits_pieces(vocabulary);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    float* const row = out.row(static_cast<std::int64_t>(i));
    static_cast<const ReferenceMatrix&>(*head.matrix)
        .multiply(norm(x.row(rows[i]), head.norm), head.bias, row);
    for (std::int64_t token = 0; token < vocabulary; ++token)
      row[token] = static_cast<float>(soft_capped(row[token], head.soft_cap));
    summary.log_sum_exp[i] = log_sum_exp(row, vocabulary);
    for (std::int64_t piece = 0; piece < num_pieces; ++piece) {
      const std::int64_t first = piece * kLogitsPiece;
      summary.piece_maxima[i * static_cast<std::size_t>(num_pieces) + static_cast<std::size_t>(piece)] =
          *std::max_element(row + first, row + std::min(first + kLogitsPiece, vocabulary));
    }
  }
}

}  // namespace octavo::kernels::reference
