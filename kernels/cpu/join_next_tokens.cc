// Both halves of a row stand side by side before they are rounded, as one row of the product.
#include "kernels/cpu/cpu_backend.h"

namespace octavo::kernels::cpu {

void CpuBackend::join_next_tokens(const NextTokenWeights& weights, ConstMatrixView tokens, ConstMatrixView x,
                                  std::span<const std::int32_t> rows, MatrixView out) {
  const auto& matrix = static_cast<const PackedMatrix&>(*weights.matrix);
  const std::int64_t width = x.columns, num_rows = std::ssize(rows);
  activations_.reserve(num_rows, 2 * width, matrix.activation_forms());
  for_each_row(num_rows, [&](std::int64_t i, std::int32_t worker) {
    float* const joined = worker_scratch_[static_cast<std::size_t>(worker)].reserve(2 * width);
    normalise(weights.token_norm, tokens.row(i), joined);
    normalise(weights.output_norm, x.row(rows[static_cast<std::size_t>(i)]), joined + width);
    normalise(weights.hidden_norm, joined + width, joined + width);
    activations_.set_row(i, joined);
  });
  const Product products[] = {{&matrix, out}};
  multiply(products);
}

}  // namespace octavo::kernels::cpu
