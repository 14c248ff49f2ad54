#include "kernels/cuda/embedding.h"

#include "kernels/cuda/quantised.cuh"

namespace octavo::kernels::cuda {
namespace {

constexpr unsigned kThreads = 64;

// A thread expands one group of 32 columns. Some hundred groups to a token: what counts is that all start at
// once.
__global__ void gather_kernel(WeightPlanes table, const std::int32_t* token_ids, float* out,
                              std::int64_t out_stride) {
  const std::int64_t group = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  const std::int64_t first = group * kGroupColumns;
  if (first >= table.columns) return;
  float values[kGroupColumns];
  expand_group(table, token_ids[blockIdx.y], group, values);
  float* const target = out + std::int64_t{blockIdx.y} * out_stride + first;
  for (int i = 0; i < kGroupColumns; ++i) {
    if (first + i < table.columns) target[i] = values[i];
  }
}

}  // namespace

void gather_rows(Stream& stream, const WeightPlanes& table, const std::int32_t* token_ids,
                 std::int32_t num_tokens, float* out, std::int64_t out_stride) {
  const unsigned groups = num_pieces(table.columns, kGroupColumns);
  launch(gather_kernel,
         {.grid = dim3(num_pieces(groups, kThreads), static_cast<unsigned>(num_tokens)),
          .block = dim3(kThreads)},
         stream, table, token_ids, out, out_stride);
}

}  // namespace octavo::kernels::cuda
