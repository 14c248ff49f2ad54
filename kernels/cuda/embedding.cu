#include "kernels/cuda/embedding.h"

#include "kernels/cuda/matmul/quantised.cuh"

namespace octavo::kernels::cuda {
namespace {

constexpr unsigned kThreads = 64;

// A thread expands one group of 32 columns. Some hundred groups to a token: what counts is that all start at
// once.
__global__ void gather_kernel(ChosenRows tokens, float scale, ChosenRows positions, float* out,
                              std::int64_t out_stride) {
  const std::int64_t group = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  const std::int64_t first = group * kGroupColumns, columns = tokens.table.columns;
  if (first >= columns) return;
  float values[kGroupColumns];
  expand_group(tokens.table, tokens.indices[blockIdx.y], group, values);
  float* const target = out + std::int64_t{blockIdx.y} * out_stride + first;
  for (int i = 0; i < kGroupColumns; ++i) {
    if (first + i < columns) target[i] = values[i] * scale;
  }
  if (positions.table.low == nullptr) return;
  expand_group(positions.table, positions.indices[blockIdx.y], group, values);
  for (int i = 0; i < kGroupColumns; ++i) {
    if (first + i < columns) target[i] += values[i];
  }
}

}  // namespace

void gather_rows(Stream& stream, const ChosenRows& tokens, float scale, const ChosenRows& positions,
                 std::int32_t num_tokens, float* out, std::int64_t out_stride) {
  const unsigned groups = num_pieces(tokens.table.columns, kGroupColumns);
  launch(gather_kernel,
         {.grid = dim3(num_pieces(groups, kThreads), static_cast<unsigned>(num_tokens)),
          .block = dim3(kThreads)},
         stream, tokens, scale, positions, out, out_stride);
}

}  // namespace octavo::kernels::cuda
