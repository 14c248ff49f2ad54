// Around the library's products: weights expanded before, and what follows the sums.
#include <cstdint>

#include "kernels/cuda/matmul/matmul_epilogue.cuh"
#include "kernels/cuda/matmul/matmul_kernels.h"
#include "kernels/cuda/matmul/quantised.cuh"
#include "kernels/cuda/runtime/device_names.h"
#include "kernels/cuda/runtime/hardware.cuh"

namespace octavo::kernels::cuda {
namespace {

template <TensorType kType>
__global__ void expand_rows(const WeightPlanes planes, std::int64_t first, std::int64_t count,
                            std::uint16_t* out) {
  let_next_begin();
  await_inputs();
  const std::int64_t pairs_of_row = planes.stride / kPairColumns;
  const std::int64_t index = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (index >= count * pairs_of_row) return;
  const RawPair<kType> raw = load_pair<kType>(planes, first * pairs_of_row, index);
  auto* const target = reinterpret_cast<uint4*>(out + index * kPairColumns);
#pragma unroll
  for (int group = 0; group < kPairGroups; ++group) {
    float numbers[kGroupColumns];
    expand_quantised_group(raw, group, numbers);
#pragma unroll
    for (int quarter = 0; quarter < 4; ++quarter) {
      std::uint32_t pairs[4];
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const float* const pair = numbers + quarter * 8 + i * 2;
        pairs[i] = static_cast<std::uint32_t>(__half_as_ushort(__float2half_rn(pair[1]))) << 16 |
                   __half_as_ushort(__float2half_rn(pair[0]));
      }
      target[4 * group + quarter] = make_uint4(pairs[0], pairs[1], pairs[2], pairs[3]);
    }
  }
}

constexpr unsigned kThreads = 256;
constexpr int kFinished = 4;  // outputs of a thread

__device__ float sum_of_parts(const FinishTarget& target, std::int64_t row, std::int64_t output) {
  const float* const sums = target.sums + row * target.num_parts * target.sums_stride + output;
  float sum = sums[0];
  for (int part = 1; part < target.num_parts; ++part) sum += sums[part * target.sums_stride];
  return sum;
}

// A block to a piece of a row of one target. Rows in x: more than y can hold, for a step of more than 65,535
// tokens.
__global__ void __launch_bounds__(kThreads) finish_products(const __grid_constant__ FinishTargets targets) {
  let_next_begin();
  await_inputs();
  const int block = static_cast<int>(blockIdx.y);
  int index = 0;
  while (index + 1 < targets.count && block >= targets.targets[index + 1].first_block) ++index;
  const FinishTarget& target = targets.targets[index];
  const std::int64_t row = blockIdx.x,
                     first = std::int64_t{block - target.first_block} * kFinished * kThreads + threadIdx.x;
  const float factor = target.factors == nullptr ? 1.0f : target.factors[row];
  const float up_factor = target.up_factors == nullptr ? 1.0f : target.up_factors[row];
#pragma unroll
  for (int i = 0; i < kFinished; ++i) {
    const std::int64_t output = first + i * std::int64_t{kThreads};
    if (output >= target.outputs) return;
    float value = sum_of_parts(target, row, output) * factor;
    if (target.bias != nullptr) value += target.bias[output];
    float* const out = target.out + row * target.out_stride + output;
    if (target.is_gate) {
      float up = *out * up_factor;
      if (target.up_bias != nullptr) up += target.up_bias[output];
      *out = activated(target.epilogue, value) * up;
    } else {
      store_with(target.epilogue, out, value);
    }
  }
}

}  // namespace

void launch_expand(Stream& stream, const WeightPlanes& planes, std::int64_t first, std::int64_t count,
                   std::uint16_t* out) {
  const unsigned num_blocks = num_pieces(count * (planes.stride / kPairColumns), kThreads);
  with_quantised_type(planes.type, [&](auto constant) {
    launch(expand_rows<decltype(constant)::value>,
           {.grid = dim3(num_blocks), .block = dim3(kThreads), .awaits_inputs = true}, stream, planes, first,
           count, out);
  });
}

void launch_finish(Stream& stream, const FinishTargets& targets, std::int32_t num_rows) {
  FinishTargets dealt = targets;
  unsigned num_blocks = 0;
  for (std::int32_t i = 0; i < dealt.count; ++i) {
    dealt.targets[i].first_block = static_cast<std::int32_t>(num_blocks);
    num_blocks += num_pieces(dealt.targets[i].outputs, kFinished * kThreads);
  }
  const dim3 grid(static_cast<unsigned>(num_rows), num_blocks);
  launch(finish_products, {.grid = grid, .block = dim3(kThreads), .awaits_inputs = true}, stream, dealt);
}

}  // namespace octavo::kernels::cuda
