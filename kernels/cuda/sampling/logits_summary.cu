#include "kernels/cuda/sampling/logits_summary.h"

#include <cmath>

#include "kernels/backend.h"
#include "kernels/cuda/runtime/hardware.cuh"
#include "kernels/cuda/runtime/reduction.cuh"
#include "kernels/cuda/runtime/soft_cap.cuh"

namespace octavo::kernels::cuda {
namespace {

constexpr unsigned kThreads = 256, kWarps = kThreads / kWarp;
constexpr std::int64_t kValuesPerLane = kLogitsPiece / kWarp;

__device__ inline float nan_value() { return __uint_as_float(0x7fc00000u); }
__device__ inline float minus_infinity() { return __uint_as_float(0xff800000u); }

// A warp to a piece, rows in x: there may be more than the 65,535 blocks that y can hold. exp(-inf - -inf)
// would be NaN, so a piece without a finite number has the sum 0; fmaxf passes over NaNs, so they are looked
// for.
__global__ void piece_kernel(float* logits, std::int64_t vocabulary, float soft_cap, float* piece_maxima,
                             float* piece_sums) {
  let_next_begin();
  await_inputs();
  const std::int64_t pieces = num_logits_pieces(vocabulary);
  const std::int64_t piece = std::int64_t{blockIdx.y} * kWarps + threadIdx.x / kWarp;
  if (piece >= pieces) return;  // whole warps
  const unsigned lane = threadIdx.x % kWarp;
  float* const row = logits + std::int64_t{blockIdx.x} * vocabulary;
  float values[kValuesPerLane];
  float largest = minus_infinity();
  bool is_number = true;
  for (int i = 0; i < kValuesPerLane; ++i) {
    const std::int64_t column = piece * kLogitsPiece + i * std::int64_t{kWarp} + lane;
    values[i] = column < vocabulary ? row[column] : minus_infinity();
    if (soft_cap != 0.0f && column < vocabulary) row[column] = values[i] = soft_capped(values[i], soft_cap);
    is_number = is_number && values[i] == values[i];
    largest = fmaxf(largest, values[i]);
  }
  largest = warp_max(largest);
  const bool all_numbers = __all_sync(kAllLanes, is_number) != 0;
  float sum = 0.0f;
  for (int i = 0; i < kValuesPerLane; ++i) {
    if (largest > minus_infinity()) sum += expf(values[i] - largest);
  }
  sum = warp_sum(sum);
  if (lane != 0) return;
  piece_maxima[blockIdx.x * pieces + piece] = largest;
  piece_sums[blockIdx.x * pieces + piece] = all_numbers ? sum : nan_value();
}

// A block to a row.
__global__ void row_kernel(std::int64_t pieces, const float* piece_maxima, const float* piece_sums,
                           float* log_sum_exp) {
  let_next_begin();
  await_inputs();
  const float* const maxima = piece_maxima + blockIdx.x * pieces;
  const float* const sums = piece_sums + blockIdx.x * pieces;
  float largest = minus_infinity();
  for (std::int64_t i = threadIdx.x; i < pieces; i += blockDim.x) largest = fmaxf(largest, maxima[i]);
  largest = block_max(largest);
  float sum = 0.0f;
  for (std::int64_t i = threadIdx.x; i < pieces; i += blockDim.x) {
    const bool counts = maxima[i] > minus_infinity() || sums[i] != 0.0f;  // NaN != 0
    if (counts) sum += sums[i] * expf(maxima[i] - largest);
  }
  sum = block_sum(sum);
  if (threadIdx.x == 0) log_sum_exp[blockIdx.x] = largest + logf(sum);
}

}  // namespace

void summarise_logits(Stream& stream, float* logits, std::int32_t num_rows, std::int64_t vocabulary,
                      float soft_cap, float* log_sum_exp, float* piece_maxima, float* piece_sums) {
  const auto rows = static_cast<unsigned>(num_rows);
  const std::int64_t pieces = num_logits_pieces(vocabulary);
  launch(piece_kernel,
         {.grid = dim3(rows, num_pieces(pieces, kWarps)), .block = dim3(kThreads), .awaits_inputs = true},
         stream, logits, vocabulary, soft_cap, piece_maxima, piece_sums);
  launch(row_kernel, {.grid = dim3(rows), .block = dim3(kThreads), .awaits_inputs = true}, stream, pieces,
         piece_maxima, piece_sums, log_sum_exp);
}

}  // namespace octavo::kernels::cuda
