// Input rows of products: gathered, normalised (Zhang & Sennrich 2019, arXiv:1910.07467; Ba et al. 2016,
// arXiv:1607.06450) and rounded. Of few rows several blocks take pieces of each, and every one of them
// computes what the whole row decides, in the same order: on one multiprocessor alone a row of 14,336 numbers
// takes longer than its product on all of them.

#include <algorithm>
#include <cfloat>
#include <cmath>

#include "kernels/cuda/matmul/matmul_kernels.h"
#include "kernels/cuda/matmul/norm.cuh"
#include "kernels/cuda/runtime/device_names.h"
#include "kernels/cuda/runtime/hardware.cuh"
#include "kernels/cuda/runtime/power_of_two.cuh"
#include "kernels/cuda/runtime/reduction.cuh"

namespace octavo::kernels::cuda {
namespace {

constexpr unsigned kThreads = 512, kWarps = kThreads / kWarp;
constexpr std::int64_t kEnoughBlocks = 256;
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
#pragma unroll 8
  for (std::int64_t column = threadIdx.x; column < row.columns; column += blockDim.x) {
    largest = fmaxf(largest, fabsf(row.at(column)));
  }
  return block_max(largest);
}

constexpr int kQuad = 4;  // neighbouring columns that a thread rounds

// The first part is the number rounded, the second what is left of it. `kRound`: to the bits of a 16-bit
// number, whose value it leaves in its argument.
template <std::uint32_t (*kRound)(float&)>
__device__ void store_parts(const PreparedRows& rows, std::uint16_t* numbers, std::int64_t index,
                            float (&values)[kQuad]) {
  for (int part = 0; part < rows.num_parts; ++part) {
    std::uint32_t bits[kQuad];
#pragma unroll
    for (int i = 0; i < kQuad; ++i) {
      float rounded = values[i];
      bits[i] = kRound(rounded);
      values[i] -= rounded;
    }
    *reinterpret_cast<uint2*>(numbers + part * rows.part_stride + index) =
        make_uint2(bits[1] << 16 | bits[0], bits[3] << 16 | bits[2]);
  }
}

__device__ std::uint32_t round_to_half(float& value) {
  const __half rounded = __float2half_rn(value);
  value = __half2float(rounded);
  return __half_as_ushort(rounded);
}

__device__ std::uint32_t round_to_bfloat(float& value) {
  const __nv_bfloat16 rounded = __float2bfloat16_rn(value);
  value = __bfloat162float(rounded);
  return __bfloat16_as_ushort(rounded);
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
  const std::int64_t first = group * rows.scale_stride;
  if (lane == 0) {
    rows.integer_scales[first + row] = is_finite ? scale : __uint_as_float(0x7fc00000u);
    rows.integer_sums[first + row] = make_int2(sum, last_sum);
  }
  const std::int64_t behind = row + lane;
  if (row + 1 == rows.num_rows && lane > 0 && behind < rows.scale_stride) {
    rows.integer_scales[first + behind] = 0.0f;
    rows.integer_sums[first + behind] = make_int2(0, 0);
  }
}

__device__ void store_quad(const PreparedRows& rows, std::int64_t place, unsigned forms, const Row& row,
                           std::int64_t column, float half_scale) {
  float values[kQuad], numbers[kQuad];
#pragma unroll
  for (int i = 0; i < kQuad; ++i) values[i] = row.at(column + i);
  if ((forms & kFloatRows) != 0)
    *reinterpret_cast<float4*>(rows.floats + place) = make_float4(values[0], values[1], values[2], values[3]);
#pragma unroll
  for (int i = 0; i < kQuad; ++i) numbers[i] = values[i] * half_scale;
  if ((forms & kHalfRows) != 0) store_parts<round_to_half>(rows, rows.halves, place, numbers);
  if ((forms & kBfloatRows) != 0) store_parts<round_to_bfloat>(rows, rows.bfloats, place, values);
}

__global__ void __launch_bounds__(kThreads)
    prepare_rows_kernel(const Source source, const PreparedRows rows) {
  let_next_begin();
  await_inputs();
  const std::int64_t index = blockIdx.x, columns = source.columns;
  const unsigned forms = source.forms;
  const std::int64_t line = source.indices == nullptr ? index : source.indices[index];
  const float* const values = source.data + line * source.stride;
  const float centre = source.is_centred != 0 ? mean_of(values, columns) : 0.0f;
  const float factor =
      source.norm == nullptr ? 1.0f : norm_factor(values, centre, columns, source.norm_epsilon);
  const Row row{values, source.norm, source.norm_bias, centre, factor, columns};
  const PowerOfTwo scale = (forms & kHalfRows) != 0 ? half_scale(block_largest(row)) : PowerOfTwo{1.0f, 1.0f};
  const bool is_first = blockIdx.y == 0 && threadIdx.x == 0;
  if ((forms & kHalfRows) != 0 && is_first) rows.half_factors[index] = scale.inverse;
  if ((forms & ~kIntegerRows) != 0) {
    const std::int64_t quads = rows.stride / kQuad, step = std::int64_t{gridDim.y} * kThreads;
    for (std::int64_t quad = std::int64_t{blockIdx.y} * kThreads + threadIdx.x; quad < quads; quad += step) {
      store_quad(rows, index * rows.stride + quad * kQuad, forms, row, quad * kQuad, scale.value);
    }
  }
  if ((forms & kIntegerRows) == 0) return;
  const std::int64_t groups = rows.stride / kGroupColumns, step = std::int64_t{gridDim.y} * kWarps;
  for (std::int64_t group = std::int64_t{blockIdx.y} * kWarps + threadIdx.x / kWarp; group < groups;
       group += step) {
    store_integers(rows, index, group, row.at(group * kGroupColumns + threadIdx.x % kWarp));
  }
}

}  // namespace

void prepare_rows(Stream& stream, const ProductInput& input, std::int64_t columns, unsigned forms,
                  const PreparedRows& rows) {
  const bool is_centred = input.norm != nullptr && input.norm_kind == NormKind::kLayer;
  const Source source{input.data, input.indices,      input.norm, input.norm_bias,      input.stride,
                      columns,    input.norm_epsilon, forms,      is_centred ? 1u : 0u, 0u};
  const std::int64_t most_pieces = num_pieces(rows.stride / kGroupColumns, kWarps);
  const std::int64_t pieces = std::clamp<std::int64_t>(kEnoughBlocks / input.num_rows, 1, most_pieces);
  const dim3 grid(static_cast<unsigned>(input.num_rows), static_cast<unsigned>(pieces));
  launch(prepare_rows_kernel, {.grid = grid, .block = dim3(kThreads), .awaits_inputs = true}, stream, source,
         rows);
}

}  // namespace octavo::kernels::cuda
