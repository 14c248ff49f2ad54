// Logits of rows and their summary where they stand: for the host here, for draw_tokens.cu on the device.
#include <algorithm>
#include <cstring>
#include <limits>

#include "engine/base/check.h"
#include "kernels/cuda/cuda_backend.h"
#include "kernels/cuda/product_arguments.h"
#include "kernels/cuda/sampling/logits_summary.h"

namespace octavo::kernels::cuda {

namespace {

// As those of a decode step do: then they need no list on the device.
bool follow_each_other(std::span<const std::int32_t> rows) {
  for (std::size_t i = 1; i < rows.size(); ++i) {
    if (rows[i] != rows[i - 1] + 1) return false;
  }
  return true;
}

}  // namespace

CudaBackend::LogitsRows CudaBackend::logits_rows_of(std::span<const std::int32_t> rows) {
  LogitsRows result{.count = static_cast<std::int32_t>(rows.size()), .first = rows.front()};
  if (follow_each_other(rows)) return result;
  UploadRing& inputs = scratch_->inputs;
  inputs.begin(*compute_, UploadRing::padded(static_cast<std::int64_t>(rows.size_bytes())));
  result.indices = inputs.put(rows);
  inputs.send(*compute_);
  return result;
}

AdjustableRows CudaBackend::start_logits(const OutputHead& output, ConstMatrixView x,
                                         const LogitsRows& rows) {
  const Matrix& weights = *output.matrix;
  const std::int32_t num_rows = rows.count;
  OCTAVO_CHECK(
      scratch_.has_value() && num_rows <= scratch_->logits_rows && weights.rows() <= shape_.vocabulary_size,
      "logits of %d rows, %d are reserved", num_rows, shape_.num_logits_rows);
  Scratch& scratch = *scratch_;
  const std::int64_t vocabulary = weights.rows();
  ProductInput input = normalised(x, output.norm);
  input.num_rows = num_rows;
  input.indices = rows.indices;
  if (rows.indices == nullptr) input.data = x.row(rows.first);
  const Product head = product(&weights, output.bias, scratch.logits.as<float>(), vocabulary);
  products_->multiply(input, std::span(&head, 1));
  summarise_logits(*compute_, scratch.logits.as<float>(), num_rows, vocabulary, output.soft_cap,
                   scratch.sums.as<float>(), scratch.piece_maxima.as<float>(),
                   scratch.piece_sums.as<float>());
  return {.logits = scratch.logits.as<float>(),
          .log_sum_exp = scratch.sums.as<float>(),
          .piece_maxima = scratch.piece_maxima.as<float>(),
          .vocabulary = vocabulary};
}

void CudaBackend::logits(const OutputHead& output, ConstMatrixView x, std::span<const std::int32_t> rows,
                         MatrixView out, LogitsSummary summary) {
  if (rows.empty()) return;
  const auto num_rows = static_cast<std::int64_t>(rows.size());
  OCTAVO_CHECK(num_rows <= shape_.num_logits_rows, "logits of %lld rows, %d are reserved",
               static_cast<long long>(num_rows), shape_.num_logits_rows);
  const std::int64_t vocabulary = start_logits(output, x, logits_rows_of(rows)).vocabulary;
  Scratch& scratch = *scratch_;
  const std::int64_t sums_bytes = num_rows * static_cast<std::int64_t>(sizeof(float));
  const std::int64_t logits_bytes = vocabulary * sums_bytes,
                     pieces_bytes = num_logits_pieces(vocabulary) * sums_bytes;
  compute_->copy(scratch.host_logits.data(), scratch.logits.data(), logits_bytes);
  compute_->copy(scratch.host_sums.data(), scratch.sums.data(), sums_bytes);
  compute_->copy(scratch.host_piece_maxima.data(), scratch.piece_maxima.data(), pieces_bytes);
  compute_->synchronize();

  if (!status_.ok()) {  // nobody may take what the memory held before for an answer
    constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
    for (std::int64_t row = 0; row < num_rows; ++row) std::fill_n(out.row(row), vocabulary, kNan);
    std::fill_n(summary.log_sum_exp.begin(), rows.size(), kNan);
    return;
  }
  for (std::int64_t row = 0; row < num_rows; ++row) {
    std::copy_n(scratch.host_logits.as<float>() + row * vocabulary, vocabulary, out.row(row));
  }
  std::memcpy(summary.log_sum_exp.data(), scratch.host_sums.data(), static_cast<std::size_t>(sums_bytes));
  std::memcpy(summary.piece_maxima.data(), scratch.host_piece_maxima.data(),
              static_cast<std::size_t>(pieces_bytes));
}

}  // namespace octavo::kernels::cuda
