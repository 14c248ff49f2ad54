// Draws one token from one row of logits, or finds a beam's best continuations. Engine thread; deterministic:
// the token depends on the row's logits, the sampling parameters, the tokens seen so far and (seed, output
// index, position), and on nothing else.
//
// The definition, in vLLM's order (vllm/v1/sample/sampler.py); everything after the logits is in double:
//   1. Tokens that the grammar's mask does not allow get minus infinity, those beside allowed_token_ids, and
//      those that would complete one of bad_words. logit_bias is added; before min_tokens, end-of-sequence
//      and stop tokens get minus infinity, unless the mask allows nothing else.
//   2. repetition_penalty divides positive and multiplies negative scores of tokens in prompt or output
//      (Keskar et al. 2019, arXiv:1909.05858); frequency_penalty times its count and presence_penalty are
//      subtracted from the score of each token in the output. A score that any of this concerns is rounded to
//      float, as logits are, so that a backend can adjust the logits themselves (kernels/logit_adjustment.h).
//   3. temperature below 1e-5 is greedy: the best score wins. Otherwise the weight of a token is
//      w = exp((score - best score) / temperature).
//   4. Tokens are ranked by score, ties by lower id. min_p keeps w >= min_p. top_k keeps the first k. top_p
//      keeps the shortest start of the ranking whose weights reach top_p of the sum of what was left, at
//      least one token (Holtzman et al. 2019, arXiv:1904.09751).
//   5. With u = uniform_at(seed, output index, position): the first kept token, in ascending id, at which the
//      running sum of weights exceeds u times their sum.
// Log-probabilities are the model's own, logit - log_sum_exp, before all of this; asking for them changes
// nothing.
//
// A beam's scores start from these log-probabilities instead of the logits, as in Hugging Face's beam search;
// then come steps 1 and 2, without the rounding, and no others. Its candidates are the best `num_candidates`
// by that score, ties by lower id. Tokens of minus infinity are none, so that there may be fewer.
#pragma once

#include <cmath>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "engine/api/sampling_params.h"
#include "engine/base/ids.h"
#include "engine/runner/grammar_masks.h"
#include "engine/runner/runner.h"
#include "engine/scheduler/scheduler_output.h"
#include "kernels/backend.h"

namespace octavo::runner {

class Sampler {
 public:
  // end_token_ids: what min_tokens forbids beside the request's own stop tokens. The backend, which computes
  // exponentials, outlives the sampler.
  Sampler(std::int32_t vocabulary_size, std::vector<TokenId> end_token_ids, kernels::Backend& backend);

  // What a sampler holds when every token of the vocabulary may still be drawn:
  // scores, weights, counts, candidates.
  static constexpr std::int64_t most_bytes(std::int64_t vocabulary_size) { return vocabulary_size * 88; }

  // The row that the next calls are about, with its kernels::LogitsSummary. All must stay valid until the
  // next set_row. REQUIRES: logits.size() == vocabulary_size
  void set_row(std::span<const float> logits, std::span<const float> piece_maxima, float log_sum_exp);

  // No NaN, no plus infinity, and at least one finite number. Minus infinity is a token that cannot come.
  bool row_is_valid() const { return std::isfinite(log_sum_exp_); }

  float logprob(TokenId token_id) const { return row_[static_cast<std::size_t>(token_id)] - log_sum_exp_; }

  // The same draw as a backend can make it that draws tokens (kernels/token_draw.h), but for the row's index:
  // a token, without alternatives, from the row as append_adjustments() says it is to be adjusted. None where
  // it takes more: a beam, logprobs, allowed_token_ids, a grammar. These are drawn here, from the row's
  // logits.
  static std::optional<kernels::TokenDraw> backend_draw(const SamplingParams& params,
                                                        const scheduler::SampleTarget& target);
  // Steps 1 and 2 for the target as data, but for masks and allowed_token_ids: the tokens that they concern,
  // none twice, and the penalties of those that were seen. Depends on no row.
  void append_adjustments(const SamplingParams& params, std::span<const TokenId> prompt_token_ids,
                          const scheduler::SampleTarget& target,
                          std::vector<kernels::LogitAdjustment>& tokens, TokenMask mask = {});
  // Whether it may find any.
  static bool may_adjust(const SamplingParams& params, const scheduler::SampleTarget& target);
  static kernels::LogitPenalties penalties_of(const SamplingParams& params);

  // The best of the row, best first, ties to the lower id.
  std::vector<TokenLogprob> best_logprobs(std::int32_t count);

  // Draws for the target, or fills in its candidates when it is a beam. Any number of targets may share the
  // row. A row that is not valid, or in which everything that could come is forbidden, gives invalid_logits.
  // `mask`: of the request's grammar; empty: it has none.
  SampledToken sample(const SamplingParams& params, std::span<const TokenId> prompt_token_ids,
                      const scheduler::SampleTarget& target, TokenMask mask = {});

 private:
  // A token that may still be drawn.
  struct Candidate {
    TokenId token_id;
    double score;
    double weight;
  };
  static bool ranks_before(const Candidate& a, const Candidate& b) {
    return a.score != b.score ? a.score > b.score : a.token_id < b.token_id;
  }

  TokenId choose(const SamplingParams& params, std::span<const TokenId> prompt_token_ids,
                 const scheduler::SampleTarget& target);
  std::vector<BeamCandidate> continue_beam(const SamplingParams& params,
                                           std::span<const TokenId> prompt_token_ids,
                                           const scheduler::SampleTarget& target);
  void gather_best_of_row(std::size_t count);
  // scores_ as `score_of` makes them of logits, minus infinity where the token is not allowed.
  template <class ScoreOf>
  void load_scores(const SamplingParams& params, ScoreOf score_of);
  template <class ScoreOf>
  void load_masked_scores(ScoreOf score_of);
  bool changes_scores(const SamplingParams& params, const scheduler::SampleTarget& target) const;
  bool forbids_ends(const SamplingParams& params, const scheduler::SampleTarget& target,
                    TokenMask mask) const;
  // Steps 1 and 2 of the definition, on what scores_ holds.
  void change_scores(const SamplingParams& params, std::span<const TokenId> prompt_token_ids,
                     const scheduler::SampleTarget& target);
  void summarise_scores();
  TokenId draw(const SamplingParams& params, double uniform);
  TokenId draw_from_all(double target) const;
  TokenId draw_from_candidates(double uniform) const;
  void weigh_candidates();
  double weigh_all();
  double sum_of_candidates() const;
  void keep_reaching_of_all(double top_p, double sum);
  void keep_reaching(double mass, double certain);
  std::vector<TokenLogprob> asked_logprobs(const SamplingParams& params);

  template <class Number>
  void gather(std::span<const Number> values, std::span<const Number> maxima, Number threshold);
  template <class Number>
  void gather_best(std::span<const Number> values, std::span<const Number> maxima, std::size_t count);
  void gather_weights(double threshold);
  void keep_first(std::size_t count);
  void keep_up_to(Candidate last);

  // Set once.
  std::int32_t vocabulary_size_;
  std::vector<TokenId> end_token_ids_;
  kernels::Backend& backend_;
  // Of the row. The vocabulary is looked at in pieces; those whose maximum is too low are passed over.
  std::span<const float> row_, row_maxima_;
  float log_sum_exp_ = 0.0f;
  // Of the target.
  TokenMask mask_;
  std::vector<double> scores_, score_maxima_;
  std::vector<double> weights_, piece_sums_;
  double best_score_ = 0.0;
  double inverse_temperature_ = 1.0;
  std::vector<Candidate> candidates_, ranking_;  // candidates_ ascend by id
  std::vector<kernels::LogitAdjustment> adjustments_;
  std::vector<std::int32_t> places_;  // of a token in a list under way, from 1; all 0 between calls
};

}  // namespace octavo::runner
