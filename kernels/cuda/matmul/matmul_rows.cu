// Input rows of products: gathered, normalised (Zhang & Sennrich 2019, arXiv:1910.07467; Ba et al. 2016,
// arXiv:1607.06450) and rounded. Of few rows several blocks take pieces of each, and every one of them
// computes what the whole row decides, in the same order: on one multiprocessor alone a row of 14,336 numbers
// takes longer than its product on all of them.
#include <algorithm>
#include <cmath>

#include "kernels/cuda/matmul/input_row.cuh"
#include "kernels/cuda/matmul/matmul_kernels.h"
#include "kernels/cuda/runtime/device_names.h"
#include "kernels/cuda/runtime/hardware.cuh"
#include "kernels/cuda/runtime/power_of_two.cuh"
#include "kernels/cuda/runtime/reduction.cuh"

namespace octavo::kernels::cuda {
namespace {

constexpr unsigned kThreads = 512;
constexpr std::int64_t kEnoughBlocks = 256;

__device__ float block_largest(const InputRow& row) {
  float largest = 0.0f;
#pragma unroll 8
  for (std::int64_t column = threadIdx.x; column < row.columns; column += blockDim.x) {
    largest = fmaxf(largest, fabsf(row.at(column)));
  }
  return block_max(largest);
}

// The first part is the number rounded, the second what is left of it. `kRound`: to the bits of a 16-bit
// number, whose value it leaves in its argument. `numbers`: of the first part. (As a loop that is not written
// out it takes 15 registers less, and a multiprocessor a third block.)
template <std::uint32_t (*kRound)(float&)>
__device__ void store_parts(const PreparedRows& rows, std::uint16_t* numbers, float (&values)[kQuad]) {
#pragma unroll 1
  for (int part = 0; part < rows.num_parts; ++part, numbers += rows.stride) {
    std::uint32_t bits[kQuad];
#pragma unroll
    for (int i = 0; i < kQuad; ++i) {
      float rounded = values[i];
      bits[i] = kRound(rounded);
      values[i] -= rounded;
    }
    *reinterpret_cast<uint2*>(numbers) = make_uint2(bits[1] << 16 | bits[0], bits[3] << 16 | bits[2]);
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

__device__ void store_quad(const PreparedRows& rows, std::int64_t index, unsigned forms, const InputRow& row,
                           std::int64_t column, float half_scale) {
  const std::int64_t first_part = index * rows.num_parts * rows.stride + column;
  float values[kQuad], numbers[kQuad];
#pragma unroll
  for (int i = 0; i < kQuad; ++i) values[i] = row.at(column + i);
  if ((forms & kFloatRows) != 0)
    *reinterpret_cast<float4*>(rows.floats + index * rows.stride + column) =
        make_float4(values[0], values[1], values[2], values[3]);
#pragma unroll
  for (int i = 0; i < kQuad; ++i) numbers[i] = values[i] * half_scale;
  if ((forms & kHalfRows) != 0) store_parts<round_to_half>(rows, rows.halves + first_part, numbers);
  if ((forms & kBfloatRows) != 0) store_parts<round_to_bfloat>(rows, rows.bfloats + first_part, values);
}

__global__ void __launch_bounds__(kThreads)
    prepare_rows_kernel(const RowSource source, unsigned forms, const PreparedRows rows) {
  let_next_begin();
  await_inputs();
  const std::int64_t index = blockIdx.x;
  const InputRow row = InputRow::of<kThreads>(source, index);
  const PowerOfTwo scale = (forms & kHalfRows) != 0 ? half_scale(block_largest(row)) : PowerOfTwo{1.0f, 1.0f};
  const bool is_first = blockIdx.y == 0 && threadIdx.x == 0;
  if ((forms & kHalfRows) != 0 && is_first) rows.half_factors[index] = scale.inverse;
  const std::int64_t quads = rows.stride / kQuad, step = std::int64_t{gridDim.y} * kThreads;
  const std::int64_t mine = std::int64_t{blockIdx.y} * kThreads + threadIdx.x, lane = threadIdx.x % kWarp;
  if ((forms & ~kIntegerRows) != 0) {
    for (std::int64_t quad = mine; quad < quads; quad += step)
      store_quad(rows, index, forms, row, quad * kQuad, scale.value);
  }
  if ((forms & kIntegerRows) == 0) return;
  for (std::int64_t first = mine - lane; first < quads; first += step) {  // whole warps
    float values[kQuad];
#pragma unroll
    for (int i = 0; i < kQuad; ++i) values[i] = row.at((first + lane) * kQuad + i);
    store_integers(rows, index, first + lane, values);
  }
}

}  // namespace

RowSource source_of(const ProductInput& input, std::int64_t columns) {
  const bool is_centred = input.norm != nullptr && input.norm_kind == NormKind::kLayer;
  return {input.data,   input.indices, input.norm,         input.norm_bias,
          input.stride, columns,       input.norm_epsilon, is_centred ? 1u : 0u};
}

void prepare_rows(Stream& stream, const RowSource& source, unsigned forms, const PreparedRows& rows) {
  const std::int64_t most_pieces = num_pieces(rows.stride / kQuad, kThreads);
  const std::int64_t pieces = std::clamp<std::int64_t>(kEnoughBlocks / rows.num_rows, 1, most_pieces);
  const dim3 grid(static_cast<unsigned>(rows.num_rows), static_cast<unsigned>(pieces));
  launch(prepare_rows_kernel, {.grid = grid, .block = dim3(kThreads), .awaits_inputs = true}, stream, source,
         forms, rows);
}

}  // namespace octavo::kernels::cuda
