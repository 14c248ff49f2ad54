// A row of a product's input as a kernel reads it, normalised, and as integers: for the launch that prepares
// rows and for kernels that prepare their own, which give the same bits.
#pragma once

#include <cfloat>
#include <cmath>
#include <cstdint>

#include "kernels/cuda/matmul/matmul_kernels.h"
#include "kernels/cuda/matmul/norm.cuh"
#include "kernels/cuda/matmul/quantised.cuh"
#include "kernels/cuda/runtime/device_names.h"
#include "kernels/cuda/runtime/reduction.cuh"

namespace octavo::kernels::cuda {

struct InputRow {
  const float* values;
  const float* norm;
  const float* bias;
  float centre, factor;  // a centre of 0 takes nothing away: an RMS norm's
  std::int64_t columns;

  // By all kThreads threads of a block.
  template <unsigned kThreads>
  __device__ static InputRow of(const RowSource& source, std::int64_t index) {
    const std::int64_t line = source.indices == nullptr ? index : source.indices[index];
    const float* const values = source.data + line * source.stride;
    const float centre = source.is_centred != 0 ? mean_of<kThreads>(values, source.columns) : 0.0f;
    const float factor = source.norm == nullptr
                             ? 1.0f
                             : norm_factor<kThreads>(values, centre, source.columns, source.norm_epsilon);
    return {values, source.norm, source.norm_bias, centre, factor, source.columns};
  }

  __device__ float at(std::int64_t column) const {
    if (column >= columns) return 0.0f;
    const float value = values[column];
    if (norm == nullptr) return value;
    const float scaled = (value - centre) * factor;
    return bias == nullptr ? scaled * norm[column] : fmaf(scaled, norm[column], bias[column]);
  }
};

constexpr int kQuad = 4;                                     // neighbouring columns that a thread rounds
constexpr std::int64_t kGroupQuads = kGroupColumns / kQuad;  // side by side in a warp
constexpr float kLargestInteger = 32639.0f;                  // 127 * 256 + 127

// Rounds quads of neighbouring lanes, of which eight are a group. One that holds a number that is not finite
// gets the scale NaN. All lanes of a warp take part; quads behind the last store nothing.
__device__ inline void store_integers(const PreparedRows& rows, std::int64_t row, std::int64_t quad,
                                      const float (&values)[kQuad]) {
  const std::int64_t groups = rows.stride / kGroupColumns, group = quad / kGroupQuads;
  const std::int64_t place = quad % kGroupQuads, half = place / 4;
  float largest = 0.0f;
#pragma unroll
  for (int i = 0; i < kQuad; ++i) {
    const float size = fabsf(values[i]);
    largest = fmaxf(largest, size <= FLT_MAX ? size : INFINITY);
  }
#pragma unroll
  for (int distance = 4; distance > 0; distance /= 2)
    largest = fmaxf(largest, __shfl_xor_sync(kAllLanes, largest, distance));
  const bool is_finite = largest <= FLT_MAX;
  float scale = is_finite ? largest / kLargestInteger : 0.0f;
  if (scale < FLT_MIN) scale = 0.0f;
  std::uint32_t high_bytes = 0, low_bytes = 0;
  int sum = 0;
#pragma unroll
  for (int i = 0; i < kQuad; ++i) {
    const int integer = scale > 0.0f ? static_cast<int>(rintf(values[i] / scale)) : 0;
    const int high = (integer + 128) >> 8, low = integer - 256 * high;
    high_bytes |= (static_cast<std::uint32_t>(high) & 255u) << (8 * i);
    low_bytes |= (static_cast<std::uint32_t>(low) & 255u) << (8 * i);
    sum += integer;
  }
#pragma unroll
  for (int distance = 2; distance > 0; distance /= 2) sum += __shfl_xor_sync(kAllLanes, sum, distance);
  const int other_sum = __shfl_xor_sync(kAllLanes, sum, 4);
  if (group >= groups) return;
  auto* const words = reinterpret_cast<std::uint32_t*>(rows.integers);
  words[((row * 4 + half) * groups + group) * 4 + place % 4] = high_bytes;
  words[((row * 4 + 2 + half) * groups + group) * 4 + place % 4] = low_bytes;
  const std::int64_t first = group * rows.scale_stride, behind = row + place;
  if (place == 0) {
    rows.integer_scales[first + row] = is_finite ? scale : __uint_as_float(0x7fc00000u);
    rows.integer_sums[first + row] = make_int2(sum, other_sum);
  } else if (row + 1 == rows.num_rows && behind < rows.scale_stride) {
    rows.integer_scales[first + behind] = 0.0f;
    rows.integer_sums[first + behind] = make_int2(0, 0);
  }
}

}  // namespace octavo::kernels::cuda
