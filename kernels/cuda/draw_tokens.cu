// Tokens drawn where their logits stand: as many rows at a time as fit, one wait for all.
#include <algorithm>
#include <cstring>
#include <limits>

#include "engine/base/check.h"
#include "kernels/cuda/cuda_backend.h"

namespace octavo::kernels::cuda {

namespace {

// Of the rows of a call in [first_row, end_row).
LogitAdjustments adjustments_between(const LogitAdjustments& all, std::size_t first_row,
                                     std::size_t end_row) {
  const auto begin_of = [&](std::size_t row) {
    const auto found =
        std::ranges::lower_bound(all.rows, static_cast<std::int32_t>(row), {}, &RowAdjustment::row);
    return static_cast<std::size_t>(found - all.rows.begin());
  };
  const auto first_token_of = [&](std::size_t index) {
    return index < all.rows.size() ? static_cast<std::size_t>(all.rows[index].first_token)
                                   : all.tokens.size();
  };
  const std::size_t begin = begin_of(first_row), end = begin_of(end_row);
  const std::size_t first_token = first_token_of(begin);
  return {.rows = all.rows.subspan(begin, end - begin),
          .tokens = all.tokens.subspan(first_token, first_token_of(end) - first_token)};
}

}  // namespace

void CudaBackend::draw_tokens(const OutputHead& head, ConstMatrixView x, std::span<const std::int32_t> rows,
                              std::span<const TokenDraw> draws, std::span<DrawnToken> out,
                              const LogitAdjustments& adjustments) {
  OCTAVO_CHECK(out.size() == draws.size() && scratch_.has_value(), "%zu draws for %zu tokens", draws.size(),
               out.size());
  const auto most_rows = static_cast<std::size_t>(scratch_->logits_rows),
             most_draws = static_cast<std::size_t>(shape_.num_rows);
  auto* const results = scratch_->drawn.as<DrawnToken>();
  std::size_t begin = 0, taken = 0;  // of draws: not started yet, and not here yet
  for (std::size_t first_row = 0; first_row < rows.size() && begin < draws.size(); first_row += most_rows) {
    const auto group = rows.subspan(first_row, std::min(most_rows, rows.size() - first_row));
    const AdjustableRows input = start_logits(head, x, group);
    const AdjustedRows adjusted =
        scratch_->adjuster.adjust(*compute_, scratch_->inputs, input, static_cast<std::int32_t>(first_row),
                                  adjustments_between(adjustments, first_row, first_row + group.size()));
    const auto end_row = static_cast<std::int32_t>(first_row + group.size());
    const auto is_before_end = [end_row](const TokenDraw& draw) { return draw.row < end_row; };
    const auto end = static_cast<std::size_t>(
        std::partition_point(draws.begin(), draws.end(), is_before_end) - draws.begin());
    while (begin < end) {
      const std::size_t count = std::min(end - begin, taken + most_draws - begin);
      scratch_->sampler.draw(*compute_, scratch_->inputs,
                             {input.logits, input.log_sum_exp, input.piece_maxima, input.vocabulary},
                             static_cast<std::int32_t>(first_row), draws.subspan(begin, count),
                             results + (begin - taken), adjusted);
      begin += count;
      if (begin - taken < most_draws) continue;
      take_drawn(out.subspan(taken, begin - taken));
      taken = begin;
    }
  }
  take_drawn(out.subspan(taken));
}

void CudaBackend::take_drawn(std::span<DrawnToken> out) {
  if (out.empty()) return;
  compute_->copy(scratch_->host_drawn.data(), scratch_->drawn.data(),
                 static_cast<std::int64_t>(out.size_bytes()));
  compute_->synchronize();
  if (status_.ok()) {
    std::memcpy(out.data(), scratch_->host_drawn.data(), out.size_bytes());
  } else {  // nobody may take what the memory held before for an answer
    std::fill(out.begin(), out.end(), DrawnToken{-1, std::numeric_limits<float>::quiet_NaN()});
  }
}

}  // namespace octavo::kernels::cuda
