// What post-norms do to the residual stream.
#pragma once

#include <cstdint>

#include "kernels/cuda/runtime/device.h"

namespace octavo::kernels::cuda {

// residual[i, :] += sums[i, :] / sqrt(mean(sums[i, :]^2) + epsilon) * weight. All in device memory; rows of
// `sums` are `width` apart, rows of `residual` residual_stride. The sums run in one order, whatever the
// number of rows.
void add_normalised(Stream& stream, const float* sums, std::int32_t num_rows, std::int64_t width,
                    const float* weight, float epsilon, float* residual, std::int64_t residual_stride);

}  // namespace octavo::kernels::cuda
