// What a device wants to have done while a model loads, when everything has its place: the angles of all
// positions are kept, steps are rehearsed, so that none loads code or allocates beside a pool that took what
// memory there was, and steps are recorded. Nothing of it on the CPU.
#include <algorithm>
#include <array>
#include <numeric>

#include "engine/model/rope.h"
#include "engine/model/transformer.h"

namespace octavo::model {

Result<void> Transformer::prepare_steps(kernels::KvCache& kv, const LoadProgress& progress) {
  OCTAVO_TRY_VOID(keep_rotations());
  const std::vector<kernels::SampleStep> rehearsed = backend_->steps_to_rehearse();
  const std::vector<kernels::SampleStep> recorded = backend_->steps_to_record();
  const auto count = static_cast<double>(rehearsed.size() + recorded.size());
  double num_done = 0.0;
  // Nobody knows anything of the blocks yet.
  if (!rehearsed.empty() && kv.num_blocks() > 1)
    backend_->copy_blocks(kv, std::array{kernels::BlockCopy{.source = 0, .target = 1}});
  for (const kernels::SampleStep& step : rehearsed) {
    OCTAVO_TRY_VOID(report_progress(progress, num_done++ / count));
    OCTAVO_TRY_VOID(rehearse(step, kv));
  }
  for (const kernels::SampleStep& step : recorded) {
    OCTAVO_TRY_VOID(report_progress(progress, num_done++ / count));
    OCTAVO_TRY_VOID(record(step, kv));
  }
  if (!recorded.empty()) OCTAVO_TRY_VOID(backend_->record_draws(output_head(), residual_rows()));
  return count > 0.0 ? report_progress(progress, 1.0) : Result<void>();
}

Result<void> Transformer::keep_rotations() {
  std::vector<std::int32_t> positions(static_cast<std::size_t>(backend_->num_kept_rotations()));
  rotations_are_kept_ = !positions.empty();
  if (!rotations_are_kept_) return {};
  std::iota(positions.begin(), positions.end(), 0);
  std::vector<float> rotations, local_rotations;
  find_rotations(positions, weights_.rope, rotations);
  if (weights_.local_rope) find_rotations(positions, *weights_.local_rope, local_rotations);
  return backend_->keep_rotations(rotations, local_rotations);
}

Result<void> Transformer::rehearse(const kernels::SampleStep& step, kernels::KvCache& kv) {
  const kernels::SampleBatch rows(step, -1, kv.layout().block_size);
  forward(rows.batch(), rows.token_ids(), {.kv = &kv});
  if (backend_->draws_tokens()) rehearse_draws(step.num_rows);
  return backend_->status();
}

// From each row its best token, from the first also one by each filter, alone and with an adjusted token.
void Transformer::rehearse_draws(std::int32_t num_rows) {
  constexpr std::int32_t kMostRows = 256;  // in groups of no more logits are computed
  std::vector<std::int32_t> rows(static_cast<std::size_t>(std::min(num_rows, kMostRows)));
  std::iota(rows.begin(), rows.end(), 0);
  std::vector<kernels::TokenDraw> draws = {{}, {.top_k = 2}, {.top_p = 0.5}, {.min_p = 0.5}};
  for (const std::int32_t row : rows) draws.push_back({.row = row, .temperature = 0.0});
  std::vector<kernels::DrawnToken> drawn(draws.size());
  draw_tokens(rows, draws, drawn, {});
  if (backend_->most_adjusted_tokens() == 0) return;
  const std::array adjusted_rows = {kernels::RowAdjustment{.row = 0, .first_token = 0, .num_tokens = 1}};
  const std::array adjusted_tokens = {kernels::LogitAdjustment{.token_id = 0, .bias = 1.0}};
  draw_tokens(rows, draws, drawn, {.rows = adjusted_rows, .tokens = adjusted_tokens});
}

Result<void> Transformer::record(const kernels::SampleStep& sample, kernels::KvCache& kv) {
  const kernels::SampleBatch rows(sample, 0, kv.layout().block_size);
  kernels::PagedBatch batch = rows.batch();
  find_angles(batch);
  return backend_->record_step(
      batch, rows.token_ids(),
      [this, &kv](const kernels::PagedBatch& step, std::span<const std::int32_t> token_ids) {
        compute(step, token_ids, {.kv = &kv}, {});
      });
}

}  // namespace octavo::model
