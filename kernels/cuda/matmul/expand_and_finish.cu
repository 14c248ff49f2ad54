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

// A block to a piece of a row. Rows in x: more than y can hold, for a step of more than 65,535 tokens.
__global__ void __launch_bounds__(kThreads) finish_products(const FinishArguments arguments) {
  let_next_begin();
  await_inputs();
  const std::int64_t row = blockIdx.x, first = std::int64_t{blockIdx.y} * kFinished * kThreads + threadIdx.x;
  const float factor = arguments.factors == nullptr ? 1.0f : arguments.factors[row];
  const float up_factor = arguments.up_factors == nullptr ? 1.0f : arguments.up_factors[row];
#pragma unroll
  for (int i = 0; i < kFinished; ++i) {
    const std::int64_t output = first + i * std::int64_t{kThreads}, index = row * arguments.count + output;
    if (output >= arguments.count) return;
    float value = arguments.product[index] * factor;
    if (arguments.bias != nullptr) value += arguments.bias[output];
    if (arguments.up != nullptr) {
      float up = arguments.up[index] * up_factor;
      if (arguments.up_bias != nullptr) up += arguments.up_bias[output];
      value = activated(arguments.epilogue, value) * up;
    }
    float* const out = arguments.out + row * arguments.out_stride + output;
    store_with(arguments.up != nullptr ? Epilogue::kStore : arguments.epilogue, out, value);
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

void launch_finish(Stream& stream, const FinishArguments& arguments) {
  const dim3 grid(static_cast<unsigned>(arguments.num_rows),
                  num_pieces(arguments.count, kFinished * kThreads));
  launch(finish_products, {.grid = grid, .block = dim3(kThreads), .awaits_inputs = true}, stream, arguments);
}

}  // namespace octavo::kernels::cuda
