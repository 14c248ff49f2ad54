#include "engine/base/check.h"
#include "kernels/cuda/cuda_backend.h"
#include "kernels/cuda/matmul/quantised.cuh"
#include "kernels/cuda/product_arguments.h"
#include "kernels/cuda/runtime/hardware.cuh"

namespace octavo::kernels::cuda {
namespace {

// A table and which of its rows to take.
struct ChosenRows {
  WeightPlanes table = {};  // no bytes: none
  const std::int32_t* indices = nullptr;
  const DrawnToken* drawn = nullptr;  // that an index may name: drawn_token()
};

// Where nothing was drawn, whoever asked for it has failed: any row does.
__device__ std::int32_t row_of(const ChosenRows& rows, std::int64_t i) {
  const std::int32_t index = rows.indices[i];
  if (index >= 0) return index;
  const std::int32_t token_id = rows.drawn[index_of_draw(index)].token_id;
  return token_id < 0 ? 0 : token_id;
}

constexpr unsigned kThreads = 64;

// A thread expands one group of 32 columns. Some hundred groups to a token: what counts is that all start at
// once. Tokens in x: a step may have more than the 65,535 blocks that y can hold.
__global__ void gather_kernel(ChosenRows tokens, float scale, ChosenRows positions, float* out,
                              std::int64_t out_stride) {
  let_next_begin();
  const std::int64_t token = blockIdx.x, group = std::int64_t{blockIdx.y} * blockDim.x + threadIdx.x;
  const std::int64_t first = group * kGroupColumns, columns = tokens.table.columns;
  if (first >= columns) return;
  float values[kGroupColumns];
  expand_group(tokens.table, row_of(tokens, token), group, values);
  float* const target = out + token * out_stride + first;
  for (int i = 0; i < kGroupColumns; ++i) {
    if (first + i < columns) target[i] = values[i] * scale;
  }
  if (positions.table.low == nullptr) return;
  expand_group(positions.table, positions.indices[token], group, values);
  for (int i = 0; i < kGroupColumns; ++i) {
    if (first + i < columns) target[i] += values[i];
  }
}

// All in device memory. REQUIRES: as many columns in both tables.
void gather_rows(Stream& stream, const ChosenRows& tokens, float scale, const ChosenRows& positions,
                 std::int32_t num_tokens, float* out, std::int64_t out_stride) {
  const unsigned groups = num_pieces(tokens.table.columns, kGroupColumns);
  launch(gather_kernel,
         {.grid = dim3(static_cast<unsigned>(num_tokens), num_pieces(groups, kThreads)),
          .block = dim3(kThreads)},
         stream, tokens, scale, positions, out, out_stride);
}

}  // namespace

void CudaBackend::embed(const EmbeddingWeights& weights, std::span<const std::int32_t> token_ids,
                        std::span<const std::int32_t> positions, MatrixView out) {
  OCTAVO_CHECK(token_ids.data() == host_token_ids_, "token ids that begin_step did not get");
  ChosenRows of_positions;
  if (weights.positions != nullptr) {
    OCTAVO_CHECK(positions.data() == host_positions_, "positions that begin_step did not get");
    of_positions = {device_matrix(*weights.positions).planes(), batch_.positions};
  }
  gather_rows(*compute_,
              {device_matrix(*weights.tokens).planes(), token_ids_, scratch_->drawn.as<DrawnToken>()},
              weights.scale, of_positions, static_cast<std::int32_t>(token_ids.size()), out.data, out.stride);
}

}  // namespace octavo::kernels::cuda
