// Rows of a prepared matrix, expanded to float.
#pragma once

#include <cstdint>

#include "kernels/cuda/device.h"
#include "kernels/cuda/weight_planes.h"

namespace octavo::kernels::cuda {

// out[i, 0 .. table.columns) = row token_ids[i]. All in device memory.
void gather_rows(Stream& stream, const WeightPlanes& table, const std::int32_t* token_ids,
                 std::int32_t num_tokens, float* out, std::int64_t out_stride);

}  // namespace octavo::kernels::cuda
