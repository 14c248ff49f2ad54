// What two models say about one token of a text, from the logits of both: pure functions, in double. A is the
// model that the other is held against, usually the finer file; divergences are of B from A.
//
//   KL divergence   sum over the vocabulary of p_A ln(p_A / p_B), in nats (Kullback & Leibler 1951)
//   perplexity      exp(-mean ln p(token))
//   rank            1 is the likeliest; of equal logits the lower id comes first
//   standard error  of a mean: standard deviation of the values / sqrt(their number), as if they were
//                   independent; that of exp(x) is exp(x) times that of x
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "engine/api/request.h"
#include "engine/base/ids.h"

namespace octavo::comparison {

// softmax of a row of logits, which must stay as it is meanwhile.
class Distribution {
 public:
  // nullopt: a NaN, plus infinity or nothing finite. REQUIRES: !logits.empty()
  static std::optional<Distribution> of(std::span<const float> logits);

  std::size_t size() const { return logits_.size(); }
  double logprob(std::size_t token_id) const { return static_cast<double>(logits_[token_id]) - log_sum_; }
  std::int32_t rank(TokenId token_id) const;
  // Likeliest first; as many as there are, at most.
  std::vector<TokenLogprob> best(std::size_t count) const;

 private:
  Distribution(std::span<const float> logits, double log_sum) : logits_(logits), log_sum_(log_sum) {}
  std::span<const float> logits_;
  double log_sum_;  // log(sum(exp(logits)))
};

// In nats; infinite where B excludes what A does not. Never below 0. REQUIRES: of the same size.
double kl_divergence(const Distribution& a, const Distribution& b);

// What one model says of the token that comes next in the text.
struct TokenView {
  double logprob = 0.0;  // natural
  std::int32_t rank = 0;
  std::vector<TokenLogprob> best;  // likeliest first, at least one
};

struct TokenFigures {
  double kl_divergence = 0.0;
  TokenView a, b;
  bool has_same_top() const { return a.best.front().token_id == b.best.front().token_id; }
  double probability_change() const;  // p_B - p_A of the token
};

// REQUIRES: num_best >= 1, token_id in the vocabulary.
TokenFigures compare(const Distribution& a, const Distribution& b, TokenId token_id, std::size_t num_best);

struct Estimate {
  double value = 0.0;
  double standard_error = 0.0;  // 0 of fewer than two values
};

struct TextSummary {
  std::int64_t num_tokens = 0;
  Estimate mean_kl;
  double median_kl = 0.0, high_kl = 0.0, worst_kl = 0.0;  // high: 99 % are no higher. By nearest rank
  Estimate same_top;                                      // share of tokens of which both have one favourite
  Estimate perplexity_a, perplexity_b;
  Estimate log_perplexity_ratio;     // ln(perplexity of B / perplexity of A), from each token's difference
  Estimate mean_probability_change;  // of the tokens of the text
  double rms_probability_change = 0.0;
};

// REQUIRES: !tokens.empty()
TextSummary summarise(std::span<const TokenFigures> tokens);

// Indices of the highest divergences, highest first, of equal ones the earlier.
std::vector<std::size_t> worst_tokens(std::span<const TokenFigures> tokens, std::size_t count);

}  // namespace octavo::comparison
