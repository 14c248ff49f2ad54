// Without a post-norm the product adds where it stores; with one its rows are complete first.
#include "engine/base/check.h"
#include "kernels/cuda/cuda_backend.h"
#include "kernels/cuda/matmul/norm.cuh"
#include "kernels/cuda/product_arguments.h"
#include "kernels/cuda/runtime/hardware.cuh"

namespace octavo::kernels::cuda {
namespace {

constexpr unsigned kThreads = 512;

// A block to a row.
__global__ void __launch_bounds__(kThreads)
    add_normalised_kernel(const float* sums, std::int64_t width, const float* weight, float epsilon,
                          float* residual, std::int64_t residual_stride) {
  let_next_begin();
  await_inputs();
  const float* const row = sums + std::int64_t{blockIdx.x} * width;
  float* const target = residual + std::int64_t{blockIdx.x} * residual_stride;
  const float factor = norm_factor<kThreads>(row, 0.0f, width, epsilon);
  for (std::int64_t column = threadIdx.x; column < width; column += blockDim.x) {
    target[column] += row[column] * factor * weight[column];
  }
}

// residual[i, :] += sums[i, :] / sqrt(mean(sums[i, :]^2) + epsilon) * weight. All in device memory; rows of
// `sums` are `width` apart, rows of `residual` residual_stride. The sums run in one order, whatever the
// number of rows.
void add_normalised(Stream& stream, const float* sums, std::int32_t num_rows, std::int64_t width,
                    const float* weight, float epsilon, float* residual, std::int64_t residual_stride) {
  launch(add_normalised_kernel,
         {.grid = dim3(static_cast<unsigned>(num_rows)), .block = dim3(kThreads), .awaits_inputs = true},
         stream, sums, width, weight, epsilon, residual, residual_stride);
}

}  // namespace

void CudaBackend::project_residual(const ProjectionWeights& weights, ConstMatrixView input,
                                   MatrixView residual) {
  Product sum = product(weights.matrix, weights.bias, residual.data, residual.stride);
  sum.epilogue = Epilogue::kAdd;
  if (!weights.post_norm.weight.empty()) {
    sum.epilogue = Epilogue::kStore;
    sum.out = scratch_->added.as<float>();
    sum.out_stride = residual.columns;
    OCTAVO_CHECK(input.rows * residual.columns * 4 <= scratch_->added.bytes(),
                 "post-norms were not reserved");
  }
  products_->multiply(rows_of(input), std::span(&sum, 1));
  if (weights.post_norm.weight.empty()) return;
  add_normalised(*compute_, sum.out, static_cast<std::int32_t>(input.rows), residual.columns,
                 weights.post_norm.weight.data(), weights.post_norm.epsilon, residual.data, residual.stride);
}

}  // namespace octavo::kernels::cuda
