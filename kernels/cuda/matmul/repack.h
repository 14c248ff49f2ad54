// Takes the rows of a file apart into the planes of weight_planes.h, where they stand.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/cuda/matmul/weight_planes.h"
#include "kernels/cuda/runtime/device.h"

namespace octavo::kernels::cuda {

// Blocks [first, first + count) of the matrix, counted row by row as the file has them (of unquantised types
// a block is a number): `blocks` are their bytes, at a multiple of 16. All in device memory. What fills up
// columns and planes is left as it is.
void launch_repack(Stream& stream, const std::byte* blocks, std::int64_t first, std::int64_t count,
                   const WeightPlanes& planes);

}  // namespace octavo::kernels::cuda
