// What products work in, allocated while a model loads: the rows as they are prepared, sums of splits, and
// what stands around the library.
#pragma once

#include <cstdint>

#include "engine/base/result.h"
#include "kernels/backend.h"
#include "kernels/cuda/matmul/matmul.h"
#include "kernels/cuda/runtime/device.h"

namespace octavo::kernels::cuda {

inline constexpr std::int32_t kMostPreparedRows = 2048;  // of input, at once
inline constexpr std::int64_t kExpandedNumbers =
    16 << 20;                                         // weights at once: 32 MiB, which stay in a cache of 50
inline constexpr std::int64_t kExpandedStep = 256;    // outputs: what suits every algorithm of the library
inline constexpr std::int32_t kFewestRowsBeside = 8;  // of the library's sums that stand in the scratch

constexpr std::int64_t filled_up_rows(std::int64_t rows) { return (rows + 7) / 8 * 8; }

struct ProductScratch {
  std::int32_t most_rows = 0;
  std::int64_t most_columns = 0;
  DeviceMemory floats{}, halves{}, half_factors{}, bfloats{}, integers{}, integer_scales{}, integer_sums{};
  DeviceMemory partials{}, counters{};
  DeviceMemory expanded{};
  // Sums of the library, or of a gate, that stand beside their result
  DeviceMemory sums{};

  // For all products of steps of this shape. Error: kOutOfMemory.
  static Result<ProductScratch> reserve(Stream& stream, const StepShape& shape,
                                        const ProductOptions& options);
  std::int64_t bytes() const;
};

}  // namespace octavo::kernels::cuda
