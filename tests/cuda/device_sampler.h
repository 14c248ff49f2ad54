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
#include "kernels/cuda/logits_summary.h"
#include "kernels/cuda/sample_tokens.h"
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
  explicit DeviceSampler(std::int64_t vocabulary)
      : vocabulary_(vocabulary),
        inputs_(UploadRing::create(TokenSampler::kInputBytes).value()),
        sampler_(TokenSampler::create(stream_.get(), vocabulary).value()) {}

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

  std::vector<DrawnToken> draw(std::span<const TokenDraw> draws) {
    const DeviceArray<DrawnToken> results(std::vector<DrawnToken>(draws.size()));
    sampler_.draw(stream_.get(), inputs_, {logits_->data(), sums_->data(), maxima_->data(), vocabulary_}, 0,
                  draws, results.data());
    stream_.finish();
    return results.read();
  }

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
  std::optional<DeviceArray<float>> logits_, sums_, maxima_;
  std::vector<float> host_logits_, host_sums_, host_maxima_;
};

}  // namespace octavo::kernels::cuda
