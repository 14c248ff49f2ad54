// The sampler's definition (engine/runner/sampler.h) once more, as plainly as it can be said: sort
// everything, in double.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <set>
#include <span>
#include <vector>

#include "engine/api/sampling_params.h"
#include "engine/base/rng.h"
#include "engine/runner/runner.h"
#include "engine/scheduler/scheduler_output.h"

namespace octavo::runner {

struct PlainDraw {
  TokenId token_id = -1;
  // Another order of the same sums could choose differently: something lies within rounding of a limit.
  bool is_near_a_limit = false;
  std::vector<TokenId> kept;  // best first
  std::vector<double> kept_weights;
};

// `scores`: logits, or a beam's log-probabilities.
inline std::vector<double> plain_scores(std::vector<double> scores, const SamplingParams& params,
                                        std::span<const TokenId> prompt,
                                        const scheduler::SampleTarget& target,
                                        std::span<const TokenId> end_token_ids) {
  if (params.allowed_token_ids) {
    const std::set<TokenId> allowed(params.allowed_token_ids->begin(), params.allowed_token_ids->end());
    for (std::size_t id = 0; id < scores.size(); ++id) {
      if (!allowed.contains(static_cast<TokenId>(id))) scores[id] = -INFINITY;
    }
  }
  for (const auto& [id, bias] : params.logit_bias) scores[static_cast<std::size_t>(id)] += bias;
  for (const std::vector<TokenId>& word : params.bad_word_token_ids) {
    std::vector<TokenId> with_it(target.output_token_ids.begin(), target.output_token_ids.end());
    with_it.push_back(word.back());
    const bool completes =
        with_it.size() >= word.size() && std::equal(word.rbegin(), word.rend(), with_it.rbegin());
    if (completes) scores[static_cast<std::size_t>(word.back())] = -INFINITY;
  }
  if (target.output_token_ids.size() < static_cast<std::size_t>(params.min_tokens)) {
    for (const TokenId id : end_token_ids) scores[static_cast<std::size_t>(id)] = -INFINITY;
    for (const TokenId id : params.stop_token_ids) scores[static_cast<std::size_t>(id)] = -INFINITY;
  }
  std::set<TokenId> seen(prompt.begin(), prompt.end());
  seen.insert(target.output_token_ids.begin(), target.output_token_ids.end());
  for (const TokenId id : seen) {
    double& score = scores[static_cast<std::size_t>(id)];
    score = score > 0 ? score / params.repetition_penalty : score * params.repetition_penalty;
  }
  for (const TokenId id : target.output_token_ids)
    scores[static_cast<std::size_t>(id)] -= params.frequency_penalty;
  for (const TokenId id : std::set<TokenId>(target.output_token_ids.begin(), target.output_token_ids.end())) {
    scores[static_cast<std::size_t>(id)] -= params.presence_penalty;
  }
  return scores;
}

inline PlainDraw plain_sample(std::span<const float> logits, const SamplingParams& params,
                              std::span<const TokenId> prompt, const scheduler::SampleTarget& target,
                              std::span<const TokenId> end_token_ids) {
  const auto near = [](double a, double b) {
    return a != b && std::abs(a - b) <= 1e-11 * (std::abs(a) + std::abs(b));
  };
  std::vector<double> scores =
      plain_scores({logits.begin(), logits.end()}, params, prompt, target, end_token_ids);
  constexpr double kMost = std::numeric_limits<float>::max();
  for (double& score : scores) {
    if (!std::isinf(score)) score = static_cast<double>(static_cast<float>(std::clamp(score, -kMost, kMost)));
  }
  PlainDraw draw;
  draw.kept.resize(scores.size());
  std::iota(draw.kept.begin(), draw.kept.end(), 0);
  std::stable_sort(draw.kept.begin(), draw.kept.end(), [&](TokenId a, TokenId b) {
    return scores[static_cast<std::size_t>(a)] > scores[static_cast<std::size_t>(b)];
  });
  const double best = scores[static_cast<std::size_t>(draw.kept[0])];
  if (std::isinf(best)) return draw;
  if (params.temperature < 1e-5) {
    draw.token_id = draw.kept[0];
    draw.is_near_a_limit = near(best, scores[static_cast<std::size_t>(draw.kept[1])]);
    return draw;
  }
  for (const TokenId id : draw.kept) {
    draw.kept_weights.push_back(std::exp((scores[static_cast<std::size_t>(id)] - best) / params.temperature));
  }
  std::size_t count = 0;
  for (const double weight : draw.kept_weights) {
    draw.is_near_a_limit |= params.min_p > 0 && near(weight, params.min_p);
    if (weight >= params.min_p) ++count;
  }
  if (params.top_k > 0) count = std::min(count, static_cast<std::size_t>(params.top_k));
  if (params.top_p < 1.0) {
    const double needed =
        params.top_p * std::accumulate(draw.kept_weights.begin(),
                                       draw.kept_weights.begin() + static_cast<std::ptrdiff_t>(count), 0.0);
    double sum = 0.0;
    for (std::size_t i = 0; i < count; ++i) {
      sum += draw.kept_weights[i];
      draw.is_near_a_limit |= near(sum, needed);
      if (sum >= needed) count = i + 1;
    }
  }
  draw.kept.resize(count);
  draw.kept_weights.resize(count);
  std::vector<std::pair<TokenId, double>> by_id;
  for (std::size_t i = 0; i < count; ++i) by_id.emplace_back(draw.kept[i], draw.kept_weights[i]);
  std::sort(by_id.begin(), by_id.end());
  double total = 0.0, sum = 0.0;
  for (const auto& [id, weight] : by_id) total += weight;
  const double wanted = total * uniform_at(target.seed, target.output_index, target.output_token_ids.size());
  for (const auto& [id, weight] : by_id) {
    sum += weight;
    draw.is_near_a_limit |= near(sum, wanted);
    if (sum > wanted && draw.token_id < 0) draw.token_id = id;
  }
  return draw;
}

inline std::vector<BeamCandidate> plain_candidates(std::span<const float> logits, float log_sum_exp,
                                                   const SamplingParams& params,
                                                   std::span<const TokenId> prompt,
                                                   const scheduler::SampleTarget& target,
                                                   std::span<const TokenId> end_token_ids) {
  std::vector<float> logprobs;
  for (const float logit : logits) logprobs.push_back(logit - log_sum_exp);
  const std::vector<double> scores =
      plain_scores({logprobs.begin(), logprobs.end()}, params, prompt, target, end_token_ids);
  std::vector<BeamCandidate> candidates;
  for (std::size_t i = 0; i < scores.size(); ++i) {
    if (scores[i] != -INFINITY) candidates.push_back({static_cast<TokenId>(i), logprobs[i], scores[i]});
  }
  std::stable_sort(candidates.begin(), candidates.end(), [](const BeamCandidate& a, const BeamCandidate& b) {
    return a.search_logprob > b.search_logprob;
  });
  if (candidates.size() > static_cast<std::size_t>(target.num_candidates))
    candidates.resize(static_cast<std::size_t>(target.num_candidates));
  return candidates;
}

}  // namespace octavo::runner
