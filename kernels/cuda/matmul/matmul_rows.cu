// Input rows of products: gathered, normalised (Zhang & Sennrich 2019, arXiv:1910.07467; Ba et al. 2016,
// arXiv:1607.06450) and rounded, by one block each.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cfloat>
#include <cmath>

#include "kernels/cuda/matmul/matmul_kernels.h"
#include "kernels/cuda/matmul/norm.cuh"
#include "kernels/cuda/runtime/power_of_two.cuh"
#include "kernels/cuda/runtime/reduction.cuh"

namespace octavo::kernels::cuda {
namespace {

constexpr unsigned kThreads = 512;
constexpr float kLargestInteger = 32639.0f;  // 127 * 256 + 127

// A ProductInput as an argument, without gaps.
struct Source {
  const float* data;
  const std::int32_t* indices;
  const float* norm;
  const float* norm_bias;
  std::int64_t stride, columns;
  float norm_epsilon;
  unsigned forms;
  unsigned is_centred, padding;
};

struct Row {
  const float* values;
  const float* norm;
  const float* bias;
  float centre, factor;  // a centre of 0 takes nothing away: an RMS norm's
  std::int64_t columns;

  __device__ float at(std::int64_t column) const {
    if (column >= columns) return 0.0f;
    const float value = values[column];
    if (norm == nullptr) return value;
    const float normalised = (value - centre) * factor * norm[column];
    return bias == nullptr ? normalised : normalised + bias[column];
  }
};

__device__ float block_largest(const Row& row) {
  float largest = 0.0f;
  for (std::int64_t column = threadIdx.x; column < row.columns; column += blockDim.x) {
    largest = fmaxf(largest, fabsf(row.at(column)));
  }
  return block_max(largest);
}

// The first part is the number rounded, the second what is left of it.
__device__ void store_halves(const PreparedRows& rows, std::int64_t index, float value) {
  const __half high = __float2half_rn(value);
  rows.halves[index] = __half_as_ushort(high);
  if (rows.num_parts == 2) {
    rows.halves[rows.part_stride + index] = __half_as_ushort(__float2half_rn(value - __half2float(high)));
  }
}

__device__ void store_bfloats(const PreparedRows& rows, std::int64_t index, float value) {
  const __nv_bfloat16 high = __float2bfloat16_rn(value);
  rows.bfloats[index] = __bfloat16_as_ushort(high);
  if (rows.num_parts == 2) {
    const __nv_bfloat16 rest = __float2bfloat16_rn(value - __bfloat162float(high));
    rows.bfloats[rows.part_stride + index] = __bfloat16_as_ushort(rest);
  }
}

// A warp rounds a group of 32. One that is not finite gets the scale NaN.
__device__ void store_integers(const PreparedRows& rows, std::int64_t row, std::int64_t group, float value) {
  const std::int64_t groups = rows.stride / kGroupColumns;
  const unsigned lane = threadIdx.x % kWarp;
  const float largest = warp_max(fabsf(value));
  const bool is_finite = __all_sync(kAllLanes, fabsf(value) <= FLT_MAX) != 0;
  float scale = largest / kLargestInteger;
  if (scale < FLT_MIN) scale = 0.0f;
  const int integer = is_finite && scale > 0.0f ? static_cast<int>(rintf(value / scale)) : 0;
  const int high = (integer + 128) >> 8, low = integer - 256 * high;
  auto* const bytes = reinterpret_cast<std::int8_t*>(rows.integers);
  const std::int64_t half = lane / 16;
  bytes[((row * 4 + half) * groups + group) * 16 + lane % 16] = static_cast<std::int8_t>(high);
  bytes[((row * 4 + 2 + half) * groups + group) * 16 + lane % 16] = static_cast<std::int8_t>(low);
  int sum = integer;
  for (int distance = 8; distance > 0; distance /= 2) sum += __shfl_xor_sync(kAllLanes, sum, distance);
  const int last_sum = __shfl_sync(kAllLanes, sum, 16);
  if (lane == 0) {
    rows.integer_scales[row * groups + group] = is_finite ? scale : __uint_as_float(0x7fc00000u);
    rows.integer_sums[row * groups + group] = make_int2(sum, last_sum);
  }
}

__global__ void __launch_bounds__(kThreads)
    prepare_rows_kernel(const Source source, const PreparedRows rows) {
  const std::int64_t index = blockIdx.x, columns = source.columns;
  const unsigned forms = source.forms;
  const std::int64_t line = source.indices == nullptr ? index : source.indices[index];
  const float* const values = source.data + line * source.stride;
  const float centre = source.is_centred != 0 ? mean_of(values, columns) : 0.0f;
  const float factor =
      source.norm == nullptr ? 1.0f : norm_factor(values, centre, columns, source.norm_epsilon);
  const Row row{values, source.norm, source.norm_bias, centre, factor, columns};
  const PowerOfTwo scale = (forms & kHalfRows) != 0 ? half_scale(block_largest(row)) : PowerOfTwo{1.0f, 1.0f};
  if ((forms & kHalfRows) != 0 && threadIdx.x == 0) rows.half_factors[index] = scale.inverse;
  const std::int64_t groups = rows.stride / kGroupColumns;
  for (std::int64_t group = threadIdx.x / kWarp; group < groups; group += blockDim.x / kWarp) {
    const std::int64_t column = group * kGroupColumns + threadIdx.x % kWarp,
                       place = index * rows.stride + column;
    const float value = row.at(column);
    if ((forms & kFloatRows) != 0) rows.floats[place] = value;
    if ((forms & kHalfRows) != 0) store_halves(rows, place, value * scale.value);
    if ((forms & kBfloatRows) != 0) store_bfloats(rows, place, value);
    if ((forms & kIntegerRows) != 0) store_integers(rows, index, group, value);
  }
}

}  // namespace

void prepare_rows(Stream& stream, const ProductInput& input, std::int64_t columns, unsigned forms,
                  const PreparedRows& rows) {
  const bool is_centred = input.norm != nullptr && input.norm_kind == NormKind::kLayer;
  const Source source{input.data, input.indices,      input.norm, input.norm_bias,      input.stride,
                      columns,    input.norm_epsilon, forms,      is_centred ? 1u : 0u, 0u};
  launch(prepare_rows_kernel, {dim3(static_cast<unsigned>(input.num_rows)), dim3(kThreads)}, stream, source,
         rows);
}

}  // namespace octavo::kernels::cuda
