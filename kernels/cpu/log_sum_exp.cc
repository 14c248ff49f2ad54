#include <algorithm>
#include <cmath>

#include "kernels/cpu/cpu_backend.h"

namespace octavo::kernels::cpu {

void CpuBackend::log_sum_exp(ConstMatrixView logits, std::span<float> out) {
  constexpr std::int64_t kPiece = 4096;  // entries of the vocabulary
  const std::int64_t num_pieces = (logits.columns + kPiece - 1) / kPiece;
  float* const maxima = piece_sums_.reserve(2 * logits.rows * num_pieces);  // [rows][num_pieces]
  float* const sums = maxima + logits.rows * num_pieces;

  pool_->parallel_for(logits.rows * num_pieces, [&](std::int64_t item, std::int32_t) {
    const std::int64_t row = item / num_pieces, first = item % num_pieces * kPiece;
    kernels_.max_and_exp_sum(logits.row(row) + first, std::min(kPiece, logits.columns - first), maxima + item,
                             sums + item);
  });
  for (std::int64_t row = 0; row < logits.rows; ++row) {
    float* const max = maxima + row * num_pieces;
    float* const sum = sums + row * num_pieces;
    for (std::int64_t piece = 1; piece < num_pieces; ++piece) {
      kernels_.merge_exp_sums(max, sum, max[piece], sum[piece]);
    }
    out[static_cast<std::size_t>(row)] = static_cast<float>(double{*max} + std::log(double{*sum}));
  }
}

}  // namespace octavo::kernels::cpu
