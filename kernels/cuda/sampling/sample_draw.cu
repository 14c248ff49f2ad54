// The token itself: of a greedy draw the best, of a random one where the running sum of what is kept passes
// the number drawn.
#include "kernels/cuda/runtime/hardware.cuh"
#include "kernels/cuda/sampling/sample_find.cuh"
#include "kernels/cuda/sampling/sample_kernels.h"

namespace octavo::kernels::cuda {
namespace {

constexpr unsigned kBestThreads = 256, kKeptThreads = 256, kDrawThreads = 512;

__device__ inline DrawnToken nothing_drawn() {
  return {.token_id = -1, .logprob = __uint_as_float(0x7fc00000u)};
}

__device__ inline DrawnToken drawn(const SampleRow& row, std::int32_t token_id) {
  return {.token_id = token_id, .logprob = row.logits[token_id] - row.log_sum_exp};
}

// The lowest id among the largest logits: in the first piece that has the largest maximum.
__global__ void __launch_bounds__(kBestThreads)
    best_kernel(SampleInput input, const DeviceDraw* draws, DrawnToken* results) {
  let_next_begin();
  await_inputs();
  __shared__ std::int32_t best_piece;
  if (draws != nullptr && !draws[blockIdx.x].is_greedy()) return;
  const SampleRow row =
      row_of(input, draws == nullptr ? static_cast<std::int32_t>(blockIdx.x) : draws[blockIdx.x].row);
  if (!row.is_valid()) {
    if (threadIdx.x == 0) results[blockIdx.x] = nothing_drawn();
    return;
  }
  float mine = -INFINITY;
  std::int32_t piece = INT_MAX;
  for (std::int32_t i = static_cast<std::int32_t>(threadIdx.x); i < row.num_pieces; i += kBestThreads) {
    if (row.maxima[i] > mine) mine = row.maxima[i], piece = i;
  }
  if (threadIdx.x == 0) best_piece = INT_MAX;
  const float best = block_max(mine);  // passes barriers
  if (mine == best) atomicMin(&best_piece, piece);
  __syncthreads();
  if (threadIdx.x >= kWarp) return;
  for (unsigned i = 0; i < kEntriesPerLane; ++i) {
    const std::int32_t id = row.id_of(best_piece, i);
    const unsigned hits = __ballot_sync(kAllLanes, row.at(id) == best);
    if (hits == 0) continue;
    if (threadIdx.x == 0) results[blockIdx.x] = drawn(row, id + __ffs(static_cast<int>(hits)) - 1);
    return;
  }
}

// 0 for what is not kept.
__device__ inline double kept_weight(const SampleRow& row, const DeviceDraw& draw, const DrawState& state,
                                     std::int32_t id) {
  const float logit = row.at(id);
  if (!(logit >= state.floor)) return 0.0;
  const std::uint32_t key = key_of(logit);
  if (key < state.cut.key || (key == state.cut.key && id > state.cut.id)) return 0.0;
  const double weight = weight_of(logit, state.best, draw.inverse_temperature);
  return weight >= draw.min_p ? weight : 0.0;
}

// A block to kSamplePieces pieces of a draw's row: their sums.
__global__ void __launch_bounds__(kKeptThreads)
    kept_kernel(SampleInput input, const DeviceDraw* draws, SampleScratch scratch) {
  const DeviceDraw draw = draws[blockIdx.y];
  const SampleRow row = row_of(input, draw.row);
  if (draw.is_greedy() || !row.is_valid()) return;
  const DrawState state = scratch.states[blockIdx.y];
  double* const piece_sums = scratch.piece_sums + std::int64_t{blockIdx.y} * row.num_pieces;
  const auto first = static_cast<std::int32_t>(blockIdx.x) * kSamplePieces;
  visit_pieces<kSamplePieces * kWarp / kKeptThreads>(
      row, first, std::min(first + kSamplePieces, row.num_pieces), -INFINITY, [&](std::int32_t piece) {
        double sum = 0.0;
        const float largest = row.maxima[piece];
        if (largest >= state.floor && key_of(largest) >= state.cut.key) {
          for (unsigned i = 0; i < kEntriesPerLane; ++i)
            sum += kept_weight(row, draw, state, row.id_of(piece, i));
          sum = warp_sum(sum);
        }
        if (threadIdx.x % kWarp == 0) piece_sums[piece] = sum;
      });
}

__global__ void __launch_bounds__(kDrawThreads)
    draw_kernel(SampleInput input, const DeviceDraw* draws, SampleScratch scratch, DrawnToken* results) {
  const DeviceDraw draw = draws[blockIdx.x];
  if (draw.is_greedy()) return;
  const SampleRow row = row_of(input, draw.row);
  if (!row.is_valid()) {
    if (threadIdx.x == 0) results[blockIdx.x] = nothing_drawn();
    return;
  }
  __shared__ double target;
  const SamplePlace place = find_piece(scratch.piece_sums + std::int64_t{blockIdx.x} * row.num_pieces,
                                       row.num_pieces, [&](double sum) {
                                         if (threadIdx.x == 0) target = draw.uniform * sum;
                                         return draw.uniform * sum;
                                       });
  if (threadIdx.x >= kWarp) return;
  const DrawState state = scratch.states[blockIdx.x];
  const auto begin = place.piece * static_cast<std::int32_t>(kLogitsPiece);
  const auto id = begin + 2 * static_cast<std::int32_t>(threadIdx.x);
  const std::int32_t entry = find_entry(kept_weight(row, draw, state, id),
                                        kept_weight(row, draw, state, id + 1), place.before, target);
  if (threadIdx.x == 0) results[blockIdx.x] = drawn(row, begin + entry);
}

}  // namespace

void choose_best(Stream& stream, const SampleInput& input, const DeviceDraw* draws, std::int32_t num_draws,
                 DrawnToken* results) {
  launch(best_kernel,
         {.grid = dim3(static_cast<unsigned>(num_draws)), .block = dim3(kBestThreads), .awaits_inputs = true},
         stream, input, draws, results);
}

void weigh_kept(Stream& stream, const SampleInput& input, const DeviceDraw* draws, std::int32_t num_draws,
                const SampleScratch& scratch) {
  const dim3 grid(num_pieces(num_logits_pieces(input.vocabulary), kSamplePieces),
                  static_cast<unsigned>(num_draws));
  launch(kept_kernel, {.grid = grid, .block = dim3(kKeptThreads)}, stream, input, draws, scratch);
}

void draw_kept(Stream& stream, const SampleInput& input, const DeviceDraw* draws, std::int32_t num_draws,
               const SampleScratch& scratch, DrawnToken* results) {
  launch(draw_kernel, {.grid = dim3(static_cast<unsigned>(num_draws)), .block = dim3(kDrawThreads)}, stream,
         input, draws, scratch, results);
}

}  // namespace octavo::kernels::cuda
