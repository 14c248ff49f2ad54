#include "kernels/cuda/sampling/adjust_logits.h"

#include <algorithm>
#include <climits>

#include "engine/base/check.h"
#include "kernels/backend.h"
#include "kernels/cuda/runtime/reduction.cuh"
#include "kernels/cuda/sampling/rounded.cuh"

namespace octavo::kernels::cuda {
namespace {

constexpr unsigned kThreads = 256, kWarps = kThreads / kWarp;

// A thread to a token of a row's list, in which no two are the same. Rows in x, as above 65,535 in y there is
// no launch.
__global__ void __launch_bounds__(kThreads) adjust_kernel(AdjustableRows input, const RowAdjustment* rows,
                                                          const LogitAdjustment* tokens, float* originals) {
  const RowAdjustment row = rows[blockIdx.x];
  const auto index = static_cast<std::int32_t>(blockIdx.y * kThreads + threadIdx.x);
  if (index >= row.num_tokens) return;
  const LogitAdjustment token = tokens[row.first_token + index];
  float& logit = input.logits[row.row * input.vocabulary + token.token_id];
  originals[row.first_token + index] = logit;
  logit = adjusted_logit<Rounded>(logit, token, row.penalties);
}

// A warp to a token: the maximum of its piece, which may have been the token, or be it now. Two tokens of one
// piece find the same.
__global__ void __launch_bounds__(kThreads)
    maxima_kernel(AdjustableRows input, const RowAdjustment* rows, const LogitAdjustment* tokens) {
  const RowAdjustment row = rows[blockIdx.x];
  const auto index = static_cast<std::int32_t>(blockIdx.y * kWarps + threadIdx.x / kWarp);
  if (index >= row.num_tokens) return;  // whole warps
  const std::int64_t piece = tokens[row.first_token + index].token_id / kLogitsPiece;
  const float* const logits = input.logits + row.row * input.vocabulary;
  float largest = -INFINITY;
  for (std::int64_t i = threadIdx.x % kWarp; i < kLogitsPiece; i += kWarp) {
    const std::int64_t id = piece * kLogitsPiece + i;
    if (id < input.vocabulary) largest = fmaxf(largest, logits[id]);
  }
  largest = warp_max(largest);
  if (threadIdx.x % kWarp == 0)
    input.piece_maxima[row.row * num_logits_pieces(input.vocabulary) + piece] = largest;
}

// A block to a row. Of a row in which every token that could come was forbidden nobody can draw; a NaN stays
// what it is.
__global__ void __launch_bounds__(kThreads) validity_kernel(AdjustableRows input, const RowAdjustment* rows) {
  const std::int64_t row = rows[blockIdx.x].row, pieces = num_logits_pieces(input.vocabulary);
  float largest = -INFINITY;
  for (std::int64_t i = threadIdx.x; i < pieces; i += kThreads)
    largest = fmaxf(largest, input.piece_maxima[row * pieces + i]);
  largest = block_max(largest);
  if (threadIdx.x != 0 || largest > -INFINITY) return;
  float& log_sum_exp = input.log_sum_exp[row];
  if (log_sum_exp < INFINITY) log_sum_exp = -INFINITY;
}

// A block to a draw, which looks for the token among those of the row's list.
__global__ void __launch_bounds__(kThreads)
    correct_kernel(SampleInput input, const DeviceDraw* draws, const LogitAdjustment* tokens,
                   const float* originals, DrawnToken* results) {
  const DeviceDraw& draw = draws[blockIdx.x];
  const std::int32_t token_id = results[blockIdx.x].token_id, end = draw.first_adjusted + draw.num_adjusted;
  for (auto i = draw.first_adjusted + static_cast<std::int32_t>(threadIdx.x); i < end; i += kThreads) {
    if (tokens[i].token_id == token_id)
      results[blockIdx.x].logprob = originals[i] - input.log_sum_exp[draw.row];
  }
}

}  // namespace

Result<LogitAdjuster> LogitAdjuster::create(std::int64_t most_tokens, std::int64_t most_rows) {
  constexpr const char* kPurpose = "working memory";
  LogitAdjuster adjuster;
  adjuster.most_tokens_ = most_tokens;
  adjuster.most_rows_ = most_rows;
  OCTAVO_TRY(adjuster.lists_, DeviceMemory::allocate(input_bytes(most_tokens, most_rows), kPurpose));
  OCTAVO_TRY(adjuster.originals_,
             DeviceMemory::allocate(most_tokens * static_cast<std::int64_t>(sizeof(float)), kPurpose));
  adjuster.rows_.reserve(static_cast<std::size_t>(most_rows));
  return Result<LogitAdjuster>(std::move(adjuster));
}

// The lists have memory of their own: the ring may come round while tokens are drawn.
AdjustedRows LogitAdjuster::adjust(Stream& stream, UploadRing& inputs, const AdjustableRows& input,
                                   std::int32_t first_row, const LogitAdjustments& adjustments) {
  OCTAVO_CHECK(std::ssize(adjustments.tokens) <= most_tokens_ && std::ssize(adjustments.rows) <= most_rows_,
               "%zu adjusted tokens in %zu rows were not reserved", adjustments.tokens.size(),
               adjustments.rows.size());
  rows_.assign(adjustments.rows.begin(), adjustments.rows.end());
  std::int32_t longest = 0;
  const std::int32_t first_token = rows_.empty() ? 0 : rows_.front().first_token;
  for (RowAdjustment& row : rows_) {
    row.row -= first_row;
    row.first_token -= first_token;
    longest = std::max(longest, row.num_tokens);
  }
  if (longest == 0) return {};
  const std::span<const RowAdjustment> rows = rows_;
  inputs.begin_at(stream,
                  UploadRing::padded(static_cast<std::int64_t>(rows.size_bytes())) +
                      UploadRing::padded(static_cast<std::int64_t>(adjustments.tokens.size_bytes())),
                  lists_.data());
  const RowAdjustment* const row_list = inputs.put(rows);
  const LogitAdjustment* const tokens = inputs.put(adjustments.tokens);
  inputs.send(stream);

  const auto num_rows = static_cast<unsigned>(rows_.size());
  auto* const originals = originals_.as<float>();
  launch(adjust_kernel, {.grid = dim3(num_rows, num_pieces(longest, kThreads)), .block = dim3(kThreads)},
         stream, input, row_list, tokens, originals);
  launch(maxima_kernel, {.grid = dim3(num_rows, num_pieces(longest, kWarps)), .block = dim3(kThreads)},
         stream, input, row_list, tokens);
  launch(validity_kernel, {.grid = dim3(num_rows), .block = dim3(kThreads)}, stream, input, row_list);
  return {.rows = rows, .tokens = tokens, .originals = originals};
}

void correct_logprobs(Stream& stream, const SampleInput& input, const DeviceDraw* draws,
                      std::int32_t num_draws, const AdjustedRows& adjusted, DrawnToken* results) {
  launch(correct_kernel, {.grid = dim3(static_cast<unsigned>(num_draws)), .block = dim3(kThreads)}, stream,
         input, draws, adjusted.tokens, adjusted.originals, results);
}

}  // namespace octavo::kernels::cuda
