// Tokens drawn where their logits stand: as many rows at a time as fit, one wait for all. Draws that were
// known before the step were sent with its inputs; where each row that draws does so once, output head and
// draws are recorded.
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

// Whether each row draws once, in order.
bool draw_in_order(const StepDraws& draws) {
  if (draws.rows.size() != draws.draws.size()) return false;
  for (std::size_t i = 0; i < draws.draws.size(); ++i) {
    if (draws.draws[i].row != static_cast<std::int32_t>(i)) return false;
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

}  // namespace

std::int64_t CudaBackend::draw_list_bytes(std::int64_t num_rows, std::int64_t num_draws) {
  return UploadRing::padded(num_rows * static_cast<std::int64_t>(sizeof(std::int32_t))) +
         UploadRing::padded(num_draws * static_cast<std::int64_t>(sizeof(DeviceDraw)));
}

// What does not fit is sent when it is drawn.
void CudaBackend::list_draws(const StepDraws& draws) {
  sent_draws_.rows.clear();
  sent_draws_.list.clear();
  sent_draws_.asked.clear();
  sent_draws_.num_asked_rows = 0;
  if (draws.draws.empty() || !scratch_) return;
  if (std::max(std::ssize(draws.rows), std::ssize(draws.draws)) > shape_.num_rows) return;
  sent_draws_.asked.assign(draws.draws.begin(), draws.draws.end());
  sent_draws_.num_asked_rows = draws.rows.size();
  sent_draws_.rows.assign(draws.rows.begin(), draws.rows.end());
  sent_draws_.is_filled = std::ssize(draws.rows) <= drawn_rows_.back() && draw_in_order(draws);
  sent_draws_.kinds = {};
  if (!are_best_of_rows(draws.draws, 0)) {
    for (const TokenDraw& draw : draws.draws) {
      sent_draws_.list.push_back(device_draw(draw, draw.row % scratch_->logits_rows, shape_.vocabulary_size));
    }
    sent_draws_.kinds = DrawKinds::of(sent_draws_.list);
  }
  if (sent_draws_.is_filled) fill_draws();
}

// Up to the next number that is recorded: the best of the first row, for which nobody asks.
void CudaBackend::fill_draws() {
  const std::int32_t given = static_cast<std::int32_t>(sent_draws_.rows.size()),
                     filled = *std::ranges::lower_bound(drawn_rows_, given);
  sent_draws_.rows.resize(static_cast<std::size_t>(filled), 0);
  if (sent_draws_.list.empty()) return;
  for (std::int32_t row = given; row < filled; ++row) sent_draws_.list.push_back(best_of_row(row));
}

// REQUIRES: draw_list_bytes() of both at the front of what is being sent.
void CudaBackend::put_draws() {
  const std::span<const DeviceDraw> list = sent_draws_.list;
  sent_draws_.device_rows = scratch_->inputs.put(std::span<const std::int32_t>(sent_draws_.rows));
  const DeviceDraw* const draws = scratch_->inputs.put(list);
  sent_draws_.device_draws = list.empty() ? nullptr : draws;
}

bool CudaBackend::were_sent(const OutputHead& head, const StepDraws& draws) const {
  const auto rows = std::span(sent_draws_.rows).first(sent_draws_.num_asked_rows);
  return !draws.draws.empty() && head.matrix->rows() == shape_.vocabulary_size &&
         std::ranges::equal(rows, draws.rows) && std::ranges::equal(sent_draws_.asked, draws.draws);
}

void CudaBackend::start_filled_draws(const OutputHead& head, ConstMatrixView x, const SentDraws& sent) {
  const auto num_rows = static_cast<std::int32_t>(sent.rows.size());
  const AdjustableRows input = start_logits(head, x, {.count = num_rows, .indices = sent.device_rows});
  scratch_->sampler.draw_listed(*compute_,
                                {input.logits, input.log_sum_exp, input.piece_maxima, input.vocabulary},
                                sent.device_draws, num_rows, sent.kinds, scratch_->drawn.as<DrawnToken>());
}

// A graph of layers and one of draws, not one of both: of layers there is one for each shape of step, of
// draws two for each number of rows that draw, so that they take next to nothing of the device's memory, and
// the second start is made while the layers run. Whoever adjusts logits uses the first only.
Result<void> CudaBackend::record_draws(const OutputHead& head, ConstMatrixView x) {
  if (!options_.graphs) return {};
  constexpr TokenDraw kFiltered{.top_p = 0.5};
  for (const std::int32_t num_rows : drawn_rows_) {
    std::vector<DeviceDraw> any;
    for (std::int32_t row = 0; row < num_rows; ++row)
      any.push_back(device_draw(kFiltered, row, shape_.vocabulary_size));
    OCTAVO_TRY(Graph of_best, record_draws_of(head, x, num_rows, {}, {}));
    OCTAVO_TRY(Graph of_any, record_draws_of(head, x, num_rows, std::move(any),
                                             {.best = true, .random = true, .cut = true}));
    recorded_best_.emplace(num_rows, std::move(of_best));
    recorded_draws_.emplace(num_rows, std::move(of_any));
  }
  return status_.result();
}

Result<Graph> CudaBackend::record_draws_of(const OutputHead& head, ConstMatrixView x, std::int32_t num_rows,
                                           std::vector<DeviceDraw> list, const DrawKinds& kinds) {
  sent_draws_ = {.rows = std::vector<std::int32_t>(static_cast<std::size_t>(num_rows)),
                 .list = std::move(list),
                 .kinds = kinds};
  const std::int64_t bytes = draw_list_bytes(num_rows, std::ssize(sent_draws_.list));
  scratch_->inputs.begin_at(*compute_, bytes, scratch_->step_inputs.data() + scratch_->draw_bytes - bytes);
  put_draws();
  scratch_->inputs.send(*compute_);
  start_filled_draws(head, x, sent_draws_);  // once as it is: see rehearse_step()
  compute_->synchronize();
  OCTAVO_TRY_VOID(status_.result());
  return record_graph("draws", num_rows, [&] { start_filled_draws(head, x, sent_draws_); });
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
  if (is_sent && sent.is_filled) {
    start_draws(head, x, {rows, draws});
    return take_draws(out);
  }
  std::size_t begin = 0, taken = 0;  // of draws: not started yet, and not here yet
  for (std::size_t first_row = 0; first_row < rows.size() && begin < draws.size(); first_row += most_rows) {
    const auto group = rows.subspan(first_row, std::min(most_rows, rows.size() - first_row));
    const LogitsRows group_rows = is_sent ? LogitsRows{.count = static_cast<std::int32_t>(group.size()),
                                                       .indices = sent.device_rows + first_row}
                                          : logits_rows_of(group);
    const AdjustableRows input = start_logits(head, x, group_rows);
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
                                    sent.device_draws != nullptr ? sent.device_draws + begin : nullptr,
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
      send_drawn(begin - taken);
      take_draws(out.subspan(taken, begin - taken));
      taken = begin;
    }
  }
  if (taken == out.size()) return;
  send_drawn(out.size() - taken);
  take_draws(out.subspan(taken));
}

void CudaBackend::start_draws(const OutputHead& head, ConstMatrixView x, const StepDraws& draws) {
  const SentDraws& sent = sent_draws_;
  OCTAVO_CHECK(sent.is_filled && were_sent(head, draws), "%zu draws that run_step() was not told",
               draws.draws.size());
  const auto& graphs = sent.list.empty() ? recorded_best_ : recorded_draws_;
  const auto recorded = graphs.find(static_cast<std::int32_t>(sent.rows.size()));
  if (recorded != graphs.end()) {
    recorded->second.launch(*compute_);
  } else {
    start_filled_draws(head, x, sent);
  }
  send_drawn(draws.draws.size());
}

void CudaBackend::send_drawn(std::size_t count) {
  const std::vector<HostDrawn>& turns = scratch_->host_drawn;
  OCTAVO_CHECK(num_draws_started_ - num_draws_taken_ < turns.size(), "draws of %zu calls are not taken",
               turns.size());
  const HostDrawn& turn = turns[num_draws_started_++ % turns.size()];
  compute_->copy(turn.tokens.data(), scratch_->drawn.data(),
                 static_cast<std::int64_t>(count * sizeof(DrawnToken)));
  compute_->record(turn.has_arrived);
}

void CudaBackend::take_draws(std::span<DrawnToken> out) {
  OCTAVO_CHECK(num_draws_taken_ < num_draws_started_, "%zu draws that were not started", out.size());
  const HostDrawn& turn = scratch_->host_drawn[num_draws_taken_++ % scratch_->host_drawn.size()];
  compute_->await(turn.has_arrived);
  if (status_.ok()) {
    std::memcpy(out.data(), turn.tokens.data(), out.size_bytes());
  } else {  // nobody may take what the memory held before for an answer
    std::fill(out.begin(), out.end(), DrawnToken{-1, std::numeric_limits<float>::quiet_NaN()});
  }
}

}  // namespace octavo::kernels::cuda
