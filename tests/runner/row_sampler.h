// A sampler that is given rows of logits as tests make them: it finds their summary by itself.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "engine/runner/sampler.h"
#include "kernels/backends.h"

namespace octavo::runner {

// As kernels::LogitsSummary, which has tests of its own.
inline float log_sum_exp(std::span<const float> logits) {
  const double best = *std::max_element(logits.begin(), logits.end());
  double sum = 0.0;
  for (const float logit : logits) sum += std::exp(logit - best);
  return static_cast<float>(best + std::log(sum));
}

class RowSampler {
 public:
  RowSampler(std::size_t vocabulary_size, std::vector<TokenId> end_token_ids)
      : backend_(kernels::create_backend({.threads = 2}).value()),
        sampler_(static_cast<std::int32_t>(vocabulary_size), std::move(end_token_ids), *backend_) {}

  void set_row(std::span<const float> logits) { set_row(logits, log_sum_exp(logits)); }
  void set_row(std::span<const float> logits, float log_sum) {
    constexpr std::size_t kPiece = kernels::kLogitsPiece;
    maxima_.clear();
    for (std::size_t i = 0; i < logits.size(); i += kPiece) {
      const auto piece = logits.subspan(i, std::min(kPiece, logits.size() - i));
      maxima_.push_back(*std::max_element(piece.begin(), piece.end()));
    }
    sampler_.set_row(logits, maxima_, log_sum);
  }

  bool row_is_valid() const { return sampler_.row_is_valid(); }
  float logprob(TokenId token_id) const { return sampler_.logprob(token_id); }
  SampledToken sample(const SamplingParams& params, std::span<const TokenId> prompt_token_ids,
                      const scheduler::SampleTarget& target) {
    return sampler_.sample(params, prompt_token_ids, target);
  }

 private:
  const std::unique_ptr<kernels::Backend> backend_;
  std::vector<float> maxima_;
  Sampler sampler_;
};

}  // namespace octavo::runner
