#include "kernels/cuda/add_normalised.h"

#include "kernels/cuda/matmul/norm.cuh"

namespace octavo::kernels::cuda {
namespace {

constexpr unsigned kThreads = 512;

// A block to a row.
__global__ void __launch_bounds__(kThreads)
    add_normalised_kernel(const float* sums, std::int64_t width, const float* weight, float epsilon,
                          float* residual, std::int64_t residual_stride) {
  const float* const row = sums + std::int64_t{blockIdx.x} * width;
  float* const target = residual + std::int64_t{blockIdx.x} * residual_stride;
  const float factor = norm_factor(row, 0.0f, width, epsilon);
  for (std::int64_t column = threadIdx.x; column < width; column += blockDim.x) {
    target[column] += row[column] * factor * weight[column];
  }
}

}  // namespace

void add_normalised(Stream& stream, const float* sums, std::int32_t num_rows, std::int64_t width,
                    const float* weight, float epsilon, float* residual, std::int64_t residual_stride) {
  launch(add_normalised_kernel, {.grid = dim3(static_cast<unsigned>(num_rows)), .block = dim3(kThreads)},
         stream, sums, width, weight, epsilon, residual, residual_stride);
}

}  // namespace octavo::kernels::cuda
