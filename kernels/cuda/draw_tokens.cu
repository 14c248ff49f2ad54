// Tokens drawn where their logits stand: as many rows at a time as fit, one wait for all. Draws that were
// known before the step were sent with its inputs; where every row of a decode step draws, output head and
// draws are recorded.
#include <algorithm>
#include <cstring>
#include <limits>
#include <numeric>

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

// Whether the first rows of a step draw once each, in order.
bool draw_in_order(const StepDraws& draws) {
  if (draws.rows.size() != draws.draws.size()) return false;
  for (std::size_t i = 0; i < draws.rows.size(); ++i) {
    const auto row = static_cast<std::int32_t>(i);
    if (draws.rows[i] != row || draws.draws[i].row != row) return false;
  }
  return true;
}

DeviceDraw best_of_row(std::int32_t row) {
  return {.row = row,
          .top_k = 0,
          .inverse_temperature = 0.0,
          .top_p = 1.0,
          .min_p = 0.0,
          .uniform = 0.0,
          .reach = 0.0};
}

template <class T>
bool are_one(std::span<const T> a, std::span<const T> b) {
  return a.data() == b.data() && a.size() == b.size();
}

}  // namespace

// What does not fit is sent when it is drawn.
void CudaBackend::list_draws(const StepDraws& draws, std::int32_t num_filled) {
  sent_draws_.list.clear();
  sent_draws_.asked = {};
  sent_draws_.num_filled = 0;
  if (draws.draws.empty() || !scratch_) return;
  const bool fits = num_filled > 0
                        ? num_filled <= scratch_->logits_rows && draw_in_order(draws)
                        : std::max(std::ssize(draws.rows), std::ssize(draws.draws)) <= shape_.num_rows;
  if (!fits) return;
  sent_draws_.asked = draws;
  sent_draws_.num_filled = num_filled;
  sent_draws_.kinds = {};
  if (are_best_of_rows(draws.draws, 0)) return;
  for (const TokenDraw& draw : draws.draws) {
    sent_draws_.list.push_back(device_draw(draw, draw.row % scratch_->logits_rows, shape_.vocabulary_size));
  }
  sent_draws_.kinds = DrawKinds::of(sent_draws_.list);
  for (auto row = static_cast<std::int32_t>(sent_draws_.list.size()); row < num_filled; ++row)
    sent_draws_.list.push_back(best_of_row(row));
}

bool CudaBackend::were_sent(const OutputHead& head, const StepDraws& draws) const {
  const StepDraws& asked = sent_draws_.asked;
  return !draws.draws.empty() && head.matrix->rows() == shape_.vocabulary_size &&
         are_one(asked.rows, draws.rows) && are_one(asked.draws, draws.draws);
}

void CudaBackend::start_decode_draws(const OutputHead& head, ConstMatrixView x, std::int32_t num_rows,
                                     const DeviceDraw* draws, const DrawKinds& kinds) {
  std::vector<std::int32_t> rows(static_cast<std::size_t>(num_rows));
  std::iota(rows.begin(), rows.end(), 0);
  const AdjustableRows input = start_logits(head, x, {rows});
  scratch_->sampler.draw_listed(*compute_,
                                {input.logits, input.log_sum_exp, input.piece_maxima, input.vocabulary},
                                draws, num_rows, kinds, scratch_->drawn.as<DrawnToken>());
}

// A graph of layers and one of draws, not one of both: of layers there is one for each number of rows and
// longest context, of draws two for each number of rows, so that they take next to nothing of the device's
// memory, and the second start is made while the layers run. Whoever adjusts logits uses the first only.
Result<void> CudaBackend::record_draws(const OutputHead& head, ConstMatrixView x) {
  constexpr TokenDraw kFiltered{.top_p = 0.5};
  sent_draws_ = {};
  for (const std::int32_t num_rows : decode_rows_) {
    if (!options_.graphs || num_rows > scratch_->logits_rows) break;
    std::vector<DeviceDraw> list;
    for (std::int32_t row = 0; row < num_rows; ++row)
      list.push_back(device_draw(kFiltered, row, shape_.vocabulary_size));
    const std::span<const DeviceDraw> draws = list;
    scratch_->inputs.begin_at(*compute_, UploadRing::padded(static_cast<std::int64_t>(draws.size_bytes())),
                              scratch_->decode_inputs.data());
    const DeviceDraw* const sent = scratch_->inputs.put(draws);
    scratch_->inputs.send(*compute_);
    const auto record = [&](const DeviceDraw* on_device, const DrawKinds& kinds) -> Result<Graph> {
      start_decode_draws(head, x, num_rows, on_device, kinds);  // once as it is: see rehearse_step()
      compute_->synchronize();
      OCTAVO_TRY_VOID(status_.result());
      return record_graph("the draws of a decode step", num_rows,
                          [&] { start_decode_draws(head, x, num_rows, on_device, kinds); });
    };
    OCTAVO_TRY(Graph best, record(nullptr, {}));
    OCTAVO_TRY(Graph any, record(sent, {.best = true, .random = true, .cut = true}));
    recorded_best_.emplace(num_rows, std::move(best));
    recorded_draws_.emplace(num_rows, std::move(any));
  }
  return status_.result();
}

void CudaBackend::draw_tokens(const OutputHead& head, ConstMatrixView x, std::span<const std::int32_t> rows,
                              std::span<const TokenDraw> draws, std::span<DrawnToken> out,
                              const LogitAdjustments& adjustments) {
  OCTAVO_CHECK(out.size() == draws.size() && scratch_.has_value(), "%zu draws for %zu tokens", draws.size(),
               out.size());
  const auto most_rows = static_cast<std::size_t>(scratch_->logits_rows),
             most_draws = static_cast<std::size_t>(shape_.num_rows);
  auto* const results = scratch_->drawn.as<DrawnToken>();
  const bool is_sent = adjustments.rows.empty() && were_sent(head, {rows, draws});
  const SentDraws& sent = sent_draws_;
  sent_draws_.asked = {};  // once: the ring comes round
  if (is_sent && sent.num_filled > 0) {
    const auto& graphs = sent.draws == nullptr ? recorded_best_ : recorded_draws_;
    if (const auto recorded = graphs.find(sent.num_filled); recorded != graphs.end()) {
      recorded->second.launch(*compute_);
    } else {
      start_decode_draws(head, x, sent.num_filled, sent.draws, sent.kinds);
    }
    return take_drawn(out);
  }
  std::size_t begin = 0, taken = 0;  // of draws: not started yet, and not here yet
  for (std::size_t first_row = 0; first_row < rows.size() && begin < draws.size(); first_row += most_rows) {
    const auto group = rows.subspan(first_row, std::min(most_rows, rows.size() - first_row));
    const AdjustableRows input = start_logits(head, x, {group, is_sent ? sent.rows + first_row : nullptr});
    const AdjustedRows adjusted =
        scratch_->adjuster.adjust(*compute_, scratch_->inputs, input, static_cast<std::int32_t>(first_row),
                                  adjustments_between(adjustments, first_row, first_row + group.size()));
    const auto end_row = static_cast<std::int32_t>(first_row + group.size());
    const auto is_before_end = [end_row](const TokenDraw& draw) { return draw.row < end_row; };
    const auto end = static_cast<std::size_t>(
        std::partition_point(draws.begin(), draws.end(), is_before_end) - draws.begin());
    if (is_sent) {
      scratch_->sampler.draw_listed(*compute_,
                                    {input.logits, input.log_sum_exp, input.piece_maxima, input.vocabulary},
                                    sent.draws != nullptr ? sent.draws + begin : nullptr,
                                    static_cast<std::int32_t>(end - begin), sent.kinds, results + begin);
      begin = end;
      continue;
    }
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
