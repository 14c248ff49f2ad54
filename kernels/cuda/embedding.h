// Rows of a prepared matrix, expanded to float.
#pragma once

#include <cstdint>

#include "kernels/cuda/matmul/weight_planes.h"
#include "kernels/cuda/runtime/device.h"

namespace octavo::kernels::cuda {

// A table and which of its rows to take.
struct ChosenRows {
  WeightPlanes table = {};  // no bytes: none
  const std::int32_t* indices = nullptr;
};

// out[i, 0 .. columns) = row tokens.indices[i] times scale, plus row positions.indices[i] if there are any.
// All in device memory. REQUIRES: as many columns in both tables.
void gather_rows(Stream& stream, const ChosenRows& tokens, float scale, const ChosenRows& positions,
                 std::int32_t num_tokens, float* out, std::int64_t out_stride);

}  // namespace octavo::kernels::cuda
