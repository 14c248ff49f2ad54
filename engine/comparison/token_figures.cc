#include "engine/comparison/token_figures.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <numeric>

#include "engine/base/check.h"

namespace octavo::comparison {
namespace {

template <class ValueOf>
Estimate estimate_mean(std::span<const TokenFigures> tokens, ValueOf value_of) {
  const auto count = static_cast<double>(tokens.size());
  double sum = 0.0;
  for (const TokenFigures& token : tokens) sum += value_of(token);
  const double mean = sum / count;
  if (tokens.size() < 2 || !std::isfinite(mean)) return {mean, 0.0};
  double squares = 0.0;
  for (const TokenFigures& token : tokens) {
    const double apart = value_of(token) - mean;
    squares += apart * apart;
  }
  return {mean, std::sqrt(squares / (count - 1.0) / count)};
}

Estimate perplexity(const Estimate& mean_logprob) {
  const double value = std::exp(-mean_logprob.value);
  return {value, std::isfinite(value) ? value * mean_logprob.standard_error : 0.0};
}

double nearest_rank(std::span<const double> ascending, double share) {
  const auto rank = static_cast<std::size_t>(std::ceil(share * static_cast<double>(ascending.size())));
  return ascending[std::max<std::size_t>(rank, 1) - 1];
}

}  // namespace

std::optional<Distribution> Distribution::of(std::span<const float> logits) {
  double best = -std::numeric_limits<double>::infinity();
  for (const float logit : logits) {
    if (std::isnan(logit)) return std::nullopt;
    best = std::max(best, static_cast<double>(logit));
  }
  if (!std::isfinite(best)) return std::nullopt;
  double sum = 0.0;
  for (const float logit : logits) sum += std::exp(static_cast<double>(logit) - best);
  return Distribution(logits, best + std::log(sum));
}

std::int32_t Distribution::rank(TokenId token_id) const {
  const auto index = static_cast<std::size_t>(token_id);
  const float own = logits_[index];
  std::int32_t rank = 1;
  for (std::size_t i = 0; i < logits_.size(); ++i) {
    if (logits_[i] > own || (logits_[i] == own && i < index)) ++rank;
  }
  return rank;
}

std::vector<TokenLogprob> Distribution::best(std::size_t count) const {
  std::vector<std::size_t> best;  // likeliest first
  best.reserve(count + 1);
  for (std::size_t i = 0; i < logits_.size(); ++i) {
    if (best.size() == count && logits_[i] <= logits_[best.back()]) continue;
    const auto behind =
        std::ranges::find_if(best, [&](std::size_t other) { return logits_[other] < logits_[i]; });
    best.insert(behind, i);
    if (best.size() > count) best.pop_back();
  }
  std::vector<TokenLogprob> found;
  for (const std::size_t i : best) found.push_back({static_cast<TokenId>(i), static_cast<float>(logprob(i))});
  return found;
}

double kl_divergence(const Distribution& a, const Distribution& b) {
  OCTAVO_CHECK(a.size() == b.size(), "vocabularies of %zu and %zu tokens", a.size(), b.size());
  double sum = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double of_a = a.logprob(i);
    const double probability = std::exp(of_a);
    if (probability > 0.0) sum += probability * (of_a - b.logprob(i));
  }
  return std::max(0.0, sum);
}

double TokenFigures::probability_change() const { return std::exp(b.logprob) - std::exp(a.logprob); }

TokenFigures compare(const Distribution& a, const Distribution& b, TokenId token_id, std::size_t num_best) {
  const auto view = [&](const Distribution& distribution) {
    return TokenView{.logprob = distribution.logprob(static_cast<std::size_t>(token_id)),
                     .rank = distribution.rank(token_id),
                     .best = distribution.best(num_best)};
  };
  return {.kl_divergence = kl_divergence(a, b), .a = view(a), .b = view(b)};
}

TextSummary summarise(std::span<const TokenFigures> tokens) {
  OCTAVO_CHECK(!tokens.empty(), "no tokens to sum up");
  std::vector<double> divergences;
  for (const TokenFigures& token : tokens) divergences.push_back(token.kl_divergence);
  std::ranges::sort(divergences);
  const auto mean_of = [&](auto value_of) { return estimate_mean(tokens, value_of); };
  const auto change = [](const TokenFigures& token) { return token.probability_change(); };
  return {.num_tokens = std::ssize(tokens),
          .mean_kl = mean_of([](const TokenFigures& token) { return token.kl_divergence; }),
          .median_kl = nearest_rank(divergences, 0.5),
          .high_kl = nearest_rank(divergences, 0.99),
          .worst_kl = divergences.back(),
          .same_top = mean_of([](const TokenFigures& token) { return token.has_same_top() ? 1.0 : 0.0; }),
          .perplexity_a = perplexity(mean_of([](const TokenFigures& token) { return token.a.logprob; })),
          .perplexity_b = perplexity(mean_of([](const TokenFigures& token) { return token.b.logprob; })),
          .log_perplexity_ratio =
              mean_of([](const TokenFigures& token) { return token.a.logprob - token.b.logprob; }),
          .mean_probability_change = mean_of(change),
          .rms_probability_change = std::sqrt(
              mean_of([&](const TokenFigures& token) { return change(token) * change(token); }).value)};
}

std::vector<std::size_t> worst_tokens(std::span<const TokenFigures> tokens, std::size_t count) {
  std::vector<std::size_t> indices(tokens.size());
  std::iota(indices.begin(), indices.end(), std::size_t{0});
  std::ranges::stable_sort(indices, [&](std::size_t x, std::size_t y) {
    return tokens[x].kl_divergence > tokens[y].kl_divergence;
  });
  indices.resize(std::min(indices.size(), count));
  return indices;
}

}  // namespace octavo::comparison
