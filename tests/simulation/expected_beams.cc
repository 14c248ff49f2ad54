#include "tests/simulation/expected_beams.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <tuple>
#include <utility>

#include "tests/simulation/toy_tokenizer.h"

namespace octavo::simulation {

ExpectedBeams::ExpectedBeams(const ToyModel& model, const RequestAlone& alone)
    : model_(model), alone_(alone) {
  live_.push_back({.text = ExpectedText(alone), .logprobs = {}});
}

double ExpectedBeams::score(double logprob, std::size_t num_tokens) const {
  return logprob / std::pow(static_cast<double>(num_tokens), alone_.asked.length_penalty_tenths / 10.0);
}

bool ExpectedBeams::fails() const {
  return std::ranges::any_of(
      live_, [&](const ExpectedHypothesis& beam) { return model_.has_invalid_logits(beam.text.folded()); });
}

// With `width` hypotheses: at once, or when the best beam as it stands does not beat the worst of them.
bool ExpectedBeams::is_over() const {
  if (live_.empty()) return true;
  if (ended_.size() < static_cast<std::size_t>(alone_.asked.beam_width)) return false;
  return alone_.asked.early_stopping || search_score(live_.front()) <= search_score(ended_.back());
}

std::vector<ExpectedBeams::Continuation> ExpectedBeams::ranked_continuations() const {
  std::vector<Continuation> all;
  for (std::size_t rank = 0; rank < live_.size(); ++rank) {
    for (TokenId token = 0; token < ToyTokenizer::kVocabularySize; ++token) {
      const float logprob = ToyModel::beam_logprob(live_[rank].text.folded(), token);
      const double bias = alone_.asked.biased && token == kBiasedToken ? kBias : 0.0;
      all.push_back(
          {rank, token, logprob, live_[rank].search_logprob + (static_cast<double>(logprob) + bias)});
    }
  }
  std::ranges::sort(
      all, {}, [](const Continuation& one) { return std::tuple(-one.search_logprob, one.rank, one.token); });
  return all;
}

ExpectedHypothesis ExpectedBeams::continued(const Continuation& continuation) const {
  ExpectedHypothesis longer = live_[continuation.rank];
  longer.text.append(continuation.token);
  longer.logprobs.push_back(continuation.logprob);
  longer.cumulative_logprob += static_cast<double>(continuation.logprob);
  longer.search_logprob = continuation.search_logprob;
  return longer;
}

void ExpectedBeams::advance() {
  const auto width = static_cast<std::size_t>(alone_.asked.beam_width);
  std::vector<ExpectedHypothesis> next;
  just_ended_.clear();
  std::size_t place = 0;
  for (const Continuation& continuation : ranked_continuations()) {
    const bool is_among_best = place++ < width;
    ExpectedHypothesis longer = continued(continuation);
    if (!longer.text.has_ended())
      next.push_back(std::move(longer));
    else if (is_among_best)
      just_ended_.push_back(std::move(longer));
    if (next.size() == width) break;
  }
  live_ = std::move(next);
  ended_.insert(ended_.end(), just_ended_.begin(), just_ended_.end());
  keep_best(ended_);
}

void ExpectedBeams::keep_best(std::vector<ExpectedHypothesis>& hypotheses) const {
  std::ranges::stable_sort(hypotheses, std::greater(),
                           [&](const ExpectedHypothesis& one) { return search_score(one); });
  const auto width = static_cast<std::size_t>(alone_.asked.beam_width);
  if (hypotheses.size() > width)
    hypotheses.erase(hypotheses.begin() + static_cast<std::ptrdiff_t>(width), hypotheses.end());
}

std::vector<ExpectedHypothesis> ExpectedBeams::answers(FinishReason of_those_under_way) const {
  std::vector<ExpectedHypothesis> answers = ended_;
  if (!is_over()) {
    for (ExpectedHypothesis beam : live_) {
      if (beam.text.token_ids().empty()) continue;
      beam.text.end(of_those_under_way);
      answers.push_back(std::move(beam));
    }
    keep_best(answers);
  }
  std::ranges::stable_sort(answers, std::greater(),
                           [&](const ExpectedHypothesis& one) { return score(one); });
  return answers;
}

}  // namespace octavo::simulation
