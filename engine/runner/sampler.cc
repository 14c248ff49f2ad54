#include "engine/runner/sampler.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <utility>

#include "engine/base/check.h"
#include "engine/base/rng.h"

namespace octavo::runner {
namespace {

constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();

constexpr double kNothingIsCertain = std::numeric_limits<double>::infinity();

// A row of 49,152 has 768 pieces, so that the best k <= 768 lie in at most k of them.
constexpr std::size_t kPieceSize = kernels::kLogitsPiece;
// Independent sums within a piece, so that a compiler can keep them in vector lanes; their order is part of
// the result.
constexpr std::size_t kLanes = 8;

std::size_t num_pieces(std::size_t size) {
  return static_cast<std::size_t>(kernels::num_logits_pieces(static_cast<std::int64_t>(size)));
}

template <class Number>
std::span<const Number> piece_of(std::span<const Number> values, std::size_t piece) {
  const std::size_t begin = piece * kPieceSize;
  return values.subspan(begin, std::min(kPieceSize, values.size() - begin));
}

// A piece of its full length; what lies past the end of the values is minus infinity.
template <class Number>
std::array<Number, kPieceSize> padded_piece(std::span<const Number> values, std::size_t piece) {
  std::array<Number, kPieceSize> padded;
  const std::span<const Number> present = piece_of(values, piece);
  if (present.size() < kPieceSize) padded.fill(static_cast<Number>(kMinusInfinity));
  std::copy(present.begin(), present.end(), padded.begin());
  return padded;
}

template <class Number>
Number maximum_of(const std::array<Number, kPieceSize>& values) {
  std::array<Number, kLanes> lanes;
  for (std::size_t lane = 0; lane < kLanes; ++lane) lanes[lane] = values[lane];
  for (std::size_t start = kLanes; start < kPieceSize; start += kLanes) {
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      lanes[lane] = values[start + lane] > lanes[lane] ? values[start + lane] : lanes[lane];
    }
  }
  return *std::max_element(lanes.begin(), lanes.end());
}

// The lowest id among the largest values.
template <class Number>
TokenId index_of_best(std::span<const Number> values, std::span<const Number> maxima) {
  const auto piece =
      static_cast<std::size_t>(std::max_element(maxima.begin(), maxima.end()) - maxima.begin());
  const std::span<const Number> in_piece = piece_of(values, piece);
  const auto offset = std::max_element(in_piece.begin(), in_piece.end()) - in_piece.begin();
  return static_cast<TokenId>(piece * kPieceSize) + static_cast<TokenId>(offset);
}

// The count-th largest of the pieces' maxima: that many tokens reach it.
template <class Number>
Number bound_of_best(std::span<const Number> maxima, std::size_t count) {
  if (count > maxima.size()) return static_cast<Number>(kMinusInfinity);
  std::vector<Number> ranked(maxima.begin(), maxima.end());
  const auto bound = ranked.begin() + static_cast<std::ptrdiff_t>(count - 1);
  std::nth_element(ranked.begin(), bound, ranked.end(), std::greater<Number>());
  return *bound;
}

bool penalises(const SamplingParams& params) {
  return params.repetition_penalty != 1.0 || params.frequency_penalty != 0.0 ||
         params.presence_penalty != 0.0;
}

// Whether the word's last token would follow its others.
bool would_complete(std::span<const TokenId> word, std::span<const TokenId> output_token_ids) {
  const auto begun = word.first(word.size() - 1);
  return begun.size() <= output_token_ids.size() &&
         std::ranges::equal(begun, output_token_ids.last(begun.size()));
}

double uniform_of(const scheduler::SampleTarget& target) {
  return uniform_at(target.seed, target.output_index, target.position());
}

}  // namespace

Sampler::Sampler(std::int32_t vocabulary_size, std::vector<TokenId> end_token_ids, kernels::Backend& backend)
    : vocabulary_size_(vocabulary_size), end_token_ids_(std::move(end_token_ids)), backend_(backend) {
  const auto size = static_cast<std::size_t>(vocabulary_size);
  scores_.resize(size);
  score_maxima_.resize(num_pieces(size));
  weights_.resize(size);
  piece_sums_.resize(num_pieces(size));
  places_.resize(size);
}

void Sampler::set_row(std::span<const float> logits, std::span<const float> piece_maxima, float log_sum_exp) {
  OCTAVO_CHECK(logits.size() == scores_.size() && piece_maxima.size() == score_maxima_.size(),
               "a row of %zu logits for %zu tokens, %zu pieces", logits.size(), scores_.size(),
               piece_maxima.size());
  row_ = logits;
  row_maxima_ = piece_maxima;
  log_sum_exp_ = log_sum_exp;
}

std::optional<kernels::TokenDraw> Sampler::backend_draw(const SamplingParams& params,
                                                        const scheduler::SampleTarget& target) {
  const bool wants_logits = params.num_top_logprobs() > 0 || params.allowed_token_ids || params.grammar;
  if (target.num_candidates > 0 || wants_logits) return std::nullopt;
  return kernels::TokenDraw{.top_k = params.top_k,
                            .temperature = params.temperature,
                            .top_p = params.top_p,
                            .min_p = params.min_p,
                            .uniform = uniform_of(target)};
}

SampledToken Sampler::sample(const SamplingParams& params, std::span<const TokenId> prompt_token_ids,
                             const scheduler::SampleTarget& target, TokenMask mask) {
  mask_ = mask;
  SampledToken token;
  token.sequence_id = target.sequence_id;
  if (row_is_valid() && target.num_candidates > 0) {
    token.candidates = continue_beam(params, prompt_token_ids, target);
  } else if (row_is_valid()) {
    token.token_id = choose(params, prompt_token_ids, target);
  }
  token.invalid_logits = token.token_id < 0 && token.candidates.empty();
  if (token.invalid_logits) return token;
  if (token.token_id >= 0) token.logprob = logprob(token.token_id);
  token.top_logprobs = asked_logprobs(params);
  return token;
}

// -1: no token can come.
TokenId Sampler::choose(const SamplingParams& params, std::span<const TokenId> prompt_token_ids,
                        const scheduler::SampleTarget& target) {
  const bool is_greedy = params.temperature < kernels::kGreedyTemperature;
  if (is_greedy && !changes_scores(params, target)) {
    const TokenId best = index_of_best(row_, row_maxima_);
    if (mask_.empty() || allows(mask_, best)) return best;
  }
  load_scores(params, [](float logit) { return static_cast<double>(logit); });
  if (changes_scores(params, target)) change_scores(params, prompt_token_ids, target);
  best_score_ = *std::max_element(score_maxima_.begin(), score_maxima_.end());
  if (best_score_ == static_cast<double>(kMinusInfinity)) return -1;
  if (is_greedy)
    return index_of_best(std::span<const double>(scores_), std::span<const double>(score_maxima_));
  inverse_temperature_ = 1.0 / params.temperature;
  return draw(params, uniform_of(target));
}

std::vector<BeamCandidate> Sampler::continue_beam(const SamplingParams& params,
                                                  std::span<const TokenId> prompt_token_ids,
                                                  const scheduler::SampleTarget& target) {
  const auto count = static_cast<std::size_t>(std::min(target.num_candidates, vocabulary_size_));
  if (changes_scores(params, target) || !mask_.empty()) {
    load_scores(params, [&](float logit) { return static_cast<double>(logit - log_sum_exp_); });
    if (changes_scores(params, target)) change_scores(params, prompt_token_ids, target);
    gather_best(std::span<const double>(scores_), std::span<const double>(score_maxima_), count);
  } else {
    gather_best_of_row(count);
  }
  std::sort(candidates_.begin(), candidates_.end(), ranks_before);
  std::vector<BeamCandidate> best;
  best.reserve(candidates_.size());
  for (const Candidate& candidate : candidates_) {
    if (candidate.score == static_cast<double>(kMinusInfinity)) break;
    best.push_back({.token_id = candidate.token_id,
                    .logprob = logprob(candidate.token_id),
                    .search_logprob = candidate.score});
  }
  return best;
}

// A score that is no less for a logit that is no less: the largest comes of the largest.
template <class ScoreOf>
void Sampler::load_scores(const SamplingParams& params, ScoreOf score_of) {
  if (!params.allowed_token_ids) {
    if (!mask_.empty()) return load_masked_scores(score_of);
    std::transform(row_.begin(), row_.end(), scores_.begin(), score_of);
    std::transform(row_maxima_.begin(), row_maxima_.end(), score_maxima_.begin(), score_of);
    return;
  }
  std::ranges::fill(scores_, static_cast<double>(kMinusInfinity));
  for (const TokenId token_id : *params.allowed_token_ids) {
    if (!mask_.empty() && !allows(mask_, token_id)) continue;
    const auto index = static_cast<std::size_t>(token_id);
    scores_[index] = score_of(row_[index]);
  }
  summarise_scores();
}

// Most pieces of most masks allow nothing or nearly all. A piece has another maximum only where its largest
// logit is not allowed.
template <class ScoreOf>
void Sampler::load_masked_scores(ScoreOf score_of) {
  constexpr std::size_t kBits = 32;
  static_assert(kPieceSize % kBits == 0);
  for (std::size_t piece = 0; piece < score_maxima_.size(); ++piece) {
    const std::span<const float> logits = piece_of(row_, piece);
    const std::span<double> scores = std::span(scores_).subspan(piece * kPieceSize, logits.size());
    const TokenMask words = mask_.subspan(piece * (kPieceSize / kBits), num_mask_words(logits.size()));
    if (std::ranges::all_of(words, [](std::uint32_t word) { return word == 0; })) {
      std::ranges::fill(scores, static_cast<double>(kMinusInfinity));
      score_maxima_[piece] = static_cast<double>(kMinusInfinity);
      continue;
    }
    std::ranges::transform(logits, scores.begin(), score_of);
    bool loses_best = false;
    for (std::size_t word = 0; word < words.size(); ++word) {
      for (std::uint32_t forbidden = ~words[word]; forbidden != 0; forbidden &= forbidden - 1) {
        const std::size_t i = word * kBits + static_cast<std::size_t>(std::countr_zero(forbidden));
        if (i >= logits.size()) break;
        loses_best = loses_best || logits[i] == row_maxima_[piece];
        scores[i] = static_cast<double>(kMinusInfinity);
      }
    }
    score_maxima_[piece] = loses_best ? maximum_of(padded_piece(std::span<const double>(scores_), piece))
                                      : score_of(row_maxima_[piece]);
  }
}

bool Sampler::changes_scores(const SamplingParams& params, const scheduler::SampleTarget& target) const {
  return !params.logit_bias.empty() || forbids_ends(params, target, mask_) || penalises(params) ||
         params.allowed_token_ids || !params.bad_word_token_ids.empty();
}

bool Sampler::may_adjust(const SamplingParams& params, const scheduler::SampleTarget& target) {
  return !params.logit_bias.empty() || penalises(params) || !params.bad_word_token_ids.empty() ||
         target.output_token_ids.size() < static_cast<std::size_t>(params.min_tokens);
}

// Where a grammar allows nothing but ends, the output cannot grow to min_tokens.
bool Sampler::forbids_ends(const SamplingParams& params, const scheduler::SampleTarget& target,
                           TokenMask mask) const {
  if (target.output_token_ids.size() >= static_cast<std::size_t>(params.min_tokens)) return false;
  if (mask.empty()) return true;
  std::ptrdiff_t num_allowed = 0;
  for (const std::uint32_t word : mask) num_allowed += std::popcount(word);
  const auto num_ends =
      std::ranges::count_if(end_token_ids_, [&](TokenId token_id) { return allows(mask, token_id); });
  return num_allowed > num_ends;
}

// By log-probability, in which logits that differ in their last bits may be equal: these lie within a
// rounding of the bound, and have to be looked at too.
void Sampler::gather_best_of_row(std::size_t count) {
  const float bound = bound_of_best(row_maxima_, count);
  const float rounding = 0x1p-22f * (std::abs(bound) + std::abs(log_sum_exp_));
  gather(row_, row_maxima_, bound == kMinusInfinity ? bound : bound - rounding);
  for (Candidate& candidate : candidates_) candidate.score = static_cast<double>(logprob(candidate.token_id));
  keep_first(count);
}

void Sampler::append_adjustments(const SamplingParams& params, std::span<const TokenId> prompt_token_ids,
                                 const scheduler::SampleTarget& target,
                                 std::vector<kernels::LogitAdjustment>& tokens, TokenMask mask) {
  const std::size_t first = tokens.size();
  const auto adjustment_of = [&](TokenId token_id) -> kernels::LogitAdjustment& {
    std::int32_t& place = places_[static_cast<std::size_t>(token_id)];
    if (place == 0) {
      tokens.push_back({.token_id = token_id});
      place = static_cast<std::int32_t>(tokens.size() - first);
    }
    return tokens[first + static_cast<std::size_t>(place) - 1];
  };
  const auto forbid = [&](TokenId token_id) {
    adjustment_of(token_id).bias = static_cast<double>(kMinusInfinity);
  };
  for (const auto& [token_id, bias] : params.logit_bias) adjustment_of(token_id).bias = bias;
  if (forbids_ends(params, target, mask)) {
    std::for_each(end_token_ids_.begin(), end_token_ids_.end(), forbid);
    std::for_each(params.stop_token_ids.begin(), params.stop_token_ids.end(), forbid);
  }
  for (const std::vector<TokenId>& word : params.bad_word_token_ids) {
    if (would_complete(word, target.output_token_ids)) forbid(word.back());
  }
  if (penalises(params)) {
    for (const TokenId token_id : prompt_token_ids) adjustment_of(token_id).output_count = 0;
    for (const TokenId token_id : target.output_token_ids) {
      std::int32_t& count = adjustment_of(token_id).output_count;
      count = std::max(count, 0) + 1;
    }
  }
  for (std::size_t i = first; i < tokens.size(); ++i)
    places_[static_cast<std::size_t>(tokens[i].token_id)] = 0;
}

kernels::LogitPenalties Sampler::penalties_of(const SamplingParams& params) {
  return {.repetition = params.repetition_penalty,
          .frequency = params.frequency_penalty,
          .presence = params.presence_penalty};
}

void Sampler::change_scores(const SamplingParams& params, std::span<const TokenId> prompt_token_ids,
                            const scheduler::SampleTarget& target) {
  adjustments_.clear();
  append_adjustments(params, prompt_token_ids, target, adjustments_, mask_);
  const kernels::LogitPenalties penalties = penalties_of(params);
  for (const kernels::LogitAdjustment& token : adjustments_) {
    double& score = scores_[static_cast<std::size_t>(token.token_id)];
    score = kernels::adjusted_score<double>(score, token, penalties);
    if (target.num_candidates == 0) score = static_cast<double>(kernels::rounded_score(score));
  }
  if (!adjustments_.empty()) summarise_scores();
}

void Sampler::summarise_scores() {
  for (std::size_t piece = 0; piece < score_maxima_.size(); ++piece) {
    score_maxima_[piece] = maximum_of(padded_piece(std::span<const double>(scores_), piece));
  }
}

TokenId Sampler::draw(const SamplingParams& params, double uniform) {
  const std::span<const double> scores = scores_, maxima = score_maxima_;
  const bool has_top_k = params.top_k > 0 && params.top_k < vocabulary_size_;
  if (!has_top_k && params.min_p == 0.0) {
    const double sum = weigh_all();
    if (params.top_p >= 1.0) return draw_from_all(uniform * sum);
    keep_reaching_of_all(params.top_p, sum);
    return draw_from_candidates(uniform);
  }
  if (has_top_k) {
    gather_best(scores, maxima, static_cast<std::size_t>(params.top_k));
  } else {  // a little below the limit: the exact rule follows
    gather(scores, maxima, best_score_ + params.temperature * (std::log(params.min_p) - 1e-6) - 1e-6);
  }
  weigh_candidates();
  std::erase_if(candidates_, [&](const Candidate& candidate) { return candidate.weight < params.min_p; });
  if (params.top_p < 1.0) keep_reaching(params.top_p * sum_of_candidates(), kNothingIsCertain);
  return draw_from_candidates(uniform);
}

TokenId Sampler::draw_from_all(double target) const {
  double sum = 0.0;
  std::size_t piece = 0;
  while (piece + 1 < piece_sums_.size() && sum + piece_sums_[piece] <= target) sum += piece_sums_[piece++];
  while (piece_sums_[piece] == 0.0) --piece;  // rounding only: the target is the whole sum
  TokenId chosen = -1;
  const std::span<const double> weights = piece_of(std::span<const double>(weights_), piece);
  for (std::size_t i = 0; i < weights.size() && (sum <= target || chosen < 0); ++i) {
    sum += weights[i];
    if (weights[i] > 0.0) chosen = static_cast<TokenId>(piece * kPieceSize + i);
  }
  return chosen;
}

TokenId Sampler::draw_from_candidates(double uniform) const {
  const double target = uniform * sum_of_candidates();
  double sum = 0.0;
  TokenId chosen = -1;
  for (const Candidate& candidate : candidates_) {
    if (candidate.weight > 0.0) chosen = candidate.token_id;
    sum += candidate.weight;
    if (sum > target) break;
  }
  return chosen;
}

// The same weights as among all: an exponential depends on its own score only.
void Sampler::weigh_candidates() {
  const std::size_t count = candidates_.size();
  std::transform(candidates_.begin(), candidates_.end(), scores_.begin(),
                 [](const Candidate& candidate) { return candidate.score; });
  backend_.softmax_weights(std::span(scores_).first(count), best_score_, inverse_temperature_,
                           std::span(weights_).first(count), std::span(piece_sums_).first(num_pieces(count)));
  for (std::size_t i = 0; i < count; ++i) candidates_[i].weight = weights_[i];
}

// Returns their sum.
double Sampler::weigh_all() {
  backend_.softmax_weights(scores_, best_score_, inverse_temperature_, weights_, piece_sums_);
  return std::accumulate(piece_sums_.begin(), piece_sums_.end(), 0.0);
}

double Sampler::sum_of_candidates() const {
  double sum = 0.0;
  for (const Candidate& candidate : candidates_) sum += candidate.weight;
  return sum;
}

// top_p over the whole vocabulary, without ranking it. Weights are added up by their power of two, and only
// those of the power in which the sum passes the mass are ranked.
void Sampler::keep_reaching_of_all(double top_p, double sum) {
  const double mass = top_p * sum;
  // All tokens below this together are less than what top_p leaves out: none of them is kept.
  const double negligible = 0.5 * (1.0 - top_p) * sum / vocabulary_size_;
  constexpr std::size_t kPowers = 1024, kWays = 4;
  // Of weights in [2^-i, 2^(1 - i)). In several ways, because neighbours are often of one power, and
  // one sum would wait for the other.
  std::array<std::array<double, kPowers>, kWays> masses{};
  for (std::size_t piece = 0; piece < piece_sums_.size(); ++piece) {
    if (piece_sums_[piece] < negligible) continue;
    const std::span<const double> weights = piece_of(std::span<const double>(weights_), piece);
    for (std::size_t i = 0; i < weights.size(); ++i) {
      masses[i % kWays][kPowers - 1 - (std::bit_cast<std::uint64_t>(weights[i]) >> 52)] += weights[i];
    }
  }
  const auto mass_of = [&](int power) {
    const auto i = static_cast<std::size_t>(power);
    return (masses[0][i] + masses[1][i]) + (masses[2][i] + masses[3][i]);
  };
  int power = 0;
  for (double reached = mass_of(0); reached < mass && power < 1022; reached += mass_of(power)) ++power;
  gather_weights(std::ldexp(1.0, -power));
  keep_reaching(mass, std::ldexp(1.0, 1 - power));
}

// Keeps the start of the ranking that reaches `mass`. Candidates of at least `certain` are kept without being
// ranked: together they do not reach it. Selects instead of sorting: halves the part of the ranking in which
// the sum passes.
void Sampler::keep_reaching(double mass, double certain) {
  double sum_before = 0.0;  // of what is kept for certain, and of ranking_[0, begin): below mass
  ranking_.clear();
  for (const Candidate& candidate : candidates_) {
    if (candidate.weight < certain) {
      ranking_.push_back(candidate);
    } else {
      sum_before += candidate.weight;
    }
  }
  if (ranking_.empty()) return;
  std::size_t begin = 0, end = ranking_.size();
  while (end - begin > 1) {
    const std::size_t middle = begin + (end - begin) / 2;
    const auto at = [&](std::size_t index) { return ranking_.begin() + static_cast<std::ptrdiff_t>(index); };
    std::nth_element(at(begin), at(middle), at(end), ranks_before);
    double sum = sum_before;
    for (std::size_t i = begin; i < middle; ++i) sum += ranking_[i].weight;
    if (sum >= mass) {
      end = middle;
    } else {
      begin = middle;
      sum_before = sum;
    }
  }
  keep_up_to(ranking_[begin]);
}

std::vector<TokenLogprob> Sampler::asked_logprobs(const SamplingParams& params) {
  if (params.logprob_token_ids.empty())
    return params.logprobs > 0 ? best_logprobs(params.logprobs) : std::vector<TokenLogprob>();
  std::vector<TokenLogprob> asked;
  for (const TokenId token_id : params.logprob_token_ids) asked.push_back({token_id, logprob(token_id)});
  return asked;
}

std::vector<TokenLogprob> Sampler::best_logprobs(std::int32_t count) {
  const auto wanted = static_cast<std::size_t>(std::min(count, vocabulary_size_));
  gather_best(row_, row_maxima_, wanted);
  std::sort(candidates_.begin(), candidates_.end(), ranks_before);
  std::vector<TokenLogprob> best;
  best.reserve(wanted);
  for (const Candidate& candidate : candidates_) {
    best.push_back({.token_id = candidate.token_id, .logprob = logprob(candidate.token_id)});
  }
  return best;
}

// Every token whose value reaches the threshold.
template <class Number>
void Sampler::gather(std::span<const Number> values, std::span<const Number> maxima, Number threshold) {
  candidates_.clear();
  for (std::size_t piece = 0; piece < maxima.size(); ++piece) {
    if (maxima[piece] < threshold) continue;
    const std::span<const Number> in_piece = piece_of(values, piece);
    for (std::size_t i = 0; i < in_piece.size(); ++i) {
      if (in_piece[i] < threshold) continue;
      candidates_.push_back({.token_id = static_cast<TokenId>(piece * kPieceSize + i),
                             .score = static_cast<double>(in_piece[i]),
                             .weight = 0.0});
    }
  }
}

// Every token of at least this weight.
void Sampler::gather_weights(double threshold) {
  candidates_.clear();
  for (std::size_t piece = 0; piece < piece_sums_.size(); ++piece) {
    if (piece_sums_[piece] < threshold) continue;
    const std::size_t end = std::min((piece + 1) * kPieceSize, weights_.size());
    for (std::size_t i = piece * kPieceSize; i < end; ++i) {
      if (weights_[i] < threshold) continue;
      candidates_.push_back(
          {.token_id = static_cast<TokenId>(i), .score = scores_[i], .weight = weights_[i]});
    }
  }
}

// The first `count` of the ranking.
template <class Number>
void Sampler::gather_best(std::span<const Number> values, std::span<const Number> maxima, std::size_t count) {
  gather(values, maxima, bound_of_best(maxima, count));
  keep_first(count);
}

void Sampler::keep_first(std::size_t count) {
  if (candidates_.size() <= count) return;
  ranking_ = candidates_;
  const auto last = ranking_.begin() + static_cast<std::ptrdiff_t>(count - 1);
  std::nth_element(ranking_.begin(), last, ranking_.end(), ranks_before);
  keep_up_to(*last);
}

void Sampler::keep_up_to(Candidate last) {
  std::erase_if(candidates_, [&](const Candidate& candidate) { return ranks_before(last, candidate); });
}

}  // namespace octavo::runner
