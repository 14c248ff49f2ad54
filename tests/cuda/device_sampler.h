// The device's draws from rows of logits as tests make them, with the summary that the host's sampler needs
// to draw from the same rows.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "engine/base/rng.h"
#include "engine/runner/sampler.h"
#include "kernels/backends.h"
#include "kernels/cuda/sampling/adjust_logits.h"
#include "kernels/cuda/sampling/logits_summary.h"
#include "kernels/cuda/sampling/sample_tokens.h"
#include "tests/cuda/device_arrays.h"

namespace octavo::kernels::cuda {

inline TokenDraw draw_of(const SamplingParams& params, double uniform, std::int32_t row = 0) {
  return {.row = row,
          .top_k = params.top_k,
          .temperature = params.temperature,
          .top_p = params.top_p,
          .min_p = params.min_p,
          .uniform = uniform};
}

inline double uniform_of(const scheduler::SampleTarget& target) {
  return uniform_at(target.seed, target.output_index, target.output_token_ids.size());
}

class DeviceSampler {
 public:
  // Rows are adjusted by lists of so many tokens in all.
  explicit DeviceSampler(std::int64_t vocabulary, std::int64_t most_adjusted = 0, std::int64_t most_rows = 0)
      : vocabulary_(vocabulary),
        inputs_(UploadRing::create(
                    std::max(TokenSampler::kInputBytes, LogitAdjuster::input_bytes(most_adjusted, most_rows)))
                    .value()),
        sampler_(TokenSampler::create(stream_.get(), vocabulary).value()),
        adjuster_(LogitAdjuster::create(most_adjusted, most_rows).value()) {}

  // [num_rows, vocabulary]
  void set_rows(const std::vector<float>& logits) {
    const auto rows = static_cast<std::int64_t>(logits.size()) / vocabulary_;
    const auto pieces = static_cast<std::size_t>(rows * num_logits_pieces(vocabulary_));
    logits_.emplace(logits);
    sums_.emplace(std::vector<float>(static_cast<std::size_t>(rows)));
    maxima_.emplace(std::vector<float>(pieces));
    const DeviceArray<float> piece_sums{std::vector<float>(pieces)};
    summarise_logits(stream_.get(), logits_->data(), static_cast<std::int32_t>(rows), vocabulary_, 0.0f,
                     sums_->data(), maxima_->data(), piece_sums.data());
    stream_.finish();
    host_logits_ = logits, host_sums_ = sums_->read(), host_maxima_ = maxima_->read();
  }

  // From the rows as they were set, whatever was drawn before.
  std::vector<DrawnToken> draw(std::span<const TokenDraw> draws, const LogitAdjustments& adjustments = {}) {
    const DeviceArray<DrawnToken> results(std::vector<DrawnToken>(draws.size()));
    if (is_adjusted_) set_rows(std::vector<float>(host_logits_));
    is_adjusted_ = !adjustments.rows.empty();
    const AdjustedRows adjusted =
        adjuster_.adjust(stream_.get(), inputs_,
                         {logits_->data(), sums_->data(), maxima_->data(), vocabulary_}, 0, adjustments);
    sampler_.draw(stream_.get(), inputs_, {logits_->data(), sums_->data(), maxima_->data(), vocabulary_}, 0,
                  draws, results.data(), adjusted);
    stream_.finish();
    return results.read();
  }
  // As the last draw() left them.
  std::vector<float> read_logits() const { return logits_->read(); }
  std::vector<float> read_maxima() const { return maxima_->read(); }

  void show_row(std::size_t row, runner::Sampler& sampler) const {
    const auto size = static_cast<std::size_t>(vocabulary_),
               pieces = static_cast<std::size_t>(num_logits_pieces(vocabulary_));
    sampler.set_row(std::span(host_logits_).subspan(row * size, size),
                    std::span(host_maxima_).subspan(row * pieces, pieces), host_sums_[row]);
  }
  std::span<const float> row(std::size_t row) const {
    const auto size = static_cast<std::size_t>(vocabulary_);
    return std::span(host_logits_).subspan(row * size, size);
  }
  float log_sum_exp(std::size_t row) const { return host_sums_[row]; }

 private:
  std::int64_t vocabulary_;
  TestStream stream_;
  UploadRing inputs_;
  TokenSampler sampler_;
  LogitAdjuster adjuster_;
  bool is_adjusted_ = false;
  std::optional<DeviceArray<float>> logits_, sums_, maxima_;
  std::vector<float> host_logits_, host_sums_, host_maxima_;
};

}  // namespace octavo::kernels::cuda
