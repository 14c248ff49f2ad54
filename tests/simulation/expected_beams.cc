#include "tests/simulation/expected_beams.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <tuple>
#include <utility>

#include "tests/simulation/toy_grammar.h"
#include "tests/simulation/toy_tokenizer.h"

namespace octavo::simulation {
namespace {

// How many of `all` come before `one`.
template <class Value, class Precedes>
std::size_t num_before(const std::vector<Value>& all, const Value& one, const Precedes& precedes) {
  return static_cast<std::size_t>(
      std::ranges::count_if(all, [&](const Value& other) { return precedes(other, one); }));
}

// Those that fewer than `width` others come before, in their order.
template <class Value, class Precedes>
std::vector<Value> best_of(const std::vector<Value>& all, std::size_t width, const Precedes& precedes) {
  std::vector<const Value*> places(std::min(width, all.size()));
  for (const Value& one : all) {
    const std::size_t place = num_before(all, one, precedes);
    if (place < places.size()) places[place] = &one;
  }
  std::vector<Value> best;
  for (const Value* one : places) best.push_back(*one);
  return best;
}

}  // namespace

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

// No beam is left, or `width` hypotheses have come and, unless any will do, so many are as good as the best
// beam.
bool ExpectedBeams::is_over() const {
  if (live_.empty()) return true;
  const auto num_as_good = std::ranges::count_if(ended_, [&](const ExpectedHypothesis& one) {
    return alone_.asked.early_stopping || search_score(one) >= search_score(live_.front());
  });
  return num_as_good >= alone_.asked.beam_width;
}

std::vector<ExpectedBeams::Continuation> ExpectedBeams::all_continuations() const {
  std::vector<Continuation> all;
  for (std::size_t rank = 0; rank < live_.size(); ++rank) {
    for (TokenId token = 0; token < ToyTokenizer::kVocabularySize; ++token) {
      if (alone_.asked.structured && !toy_allows(live_[rank].text.token_ids(), token)) continue;
      const float logprob = ToyModel::beam_logprob(live_[rank].text.folded(), token);
      const double bias = alone_.asked.biased && token == kBiasedToken ? kBias : 0.0;
      all.push_back({rank, token, live_[rank]});
      ExpectedHypothesis& longer = all.back().longer;
      longer.top_logprobs.push_back(ToyModel::alternatives(longer.text.folded(), alone_.asked.logprobs));
      longer.text.append(token);
      longer.logprobs.push_back(logprob);
      longer.cumulative_logprob += static_cast<double>(logprob);
      longer.search_logprob += static_cast<double>(logprob) + bias;
    }
  }
  return all;
}

bool ExpectedBeams::precedes(const Continuation& a, const Continuation& b) {
  return std::tuple(-a.longer.search_logprob, a.rank, a.token) <
         std::tuple(-b.longer.search_logprob, b.rank, b.token);
}

// Of all continuations the best `width` may end a text; of those that end none, the best `width` go on.
void ExpectedBeams::advance() {
  const auto width = static_cast<std::size_t>(alone_.asked.beam_width);
  const std::vector<Continuation> all = all_continuations();
  std::vector<Continuation> going_on;
  std::ranges::copy_if(all, std::back_inserter(going_on),
                       [](const Continuation& one) { return !one.longer.text.has_ended(); });
  live_.clear();
  for (const Continuation& one : best_of(going_on, width, precedes)) live_.push_back(one.longer);
  just_ended_.clear();
  for (const Continuation& one : best_of(all, width, precedes)) {
    if (one.longer.text.has_ended()) just_ended_.push_back(one.longer);
  }
  ended_.insert(ended_.end(), just_ended_.begin(), just_ended_.end());
}

std::vector<ExpectedHypothesis> ExpectedBeams::answers(FinishReason of_those_under_way) const {
  std::vector<Answer> all;
  for (const ExpectedHypothesis& one : ended_) all.push_back({all.size(), one});
  if (!is_over()) {
    for (const ExpectedHypothesis& beam : live_) {
      if (beam.text.token_ids().empty()) continue;
      all.push_back({all.size(), beam});
      all.back().hypothesis.text.end(of_those_under_way);
    }
  }
  // The search chooses by what it goes by; they are given in the order of the model's own scores.
  const auto chosen_before = [&](const Answer& a, const Answer& b) {
    return std::tuple(-search_score(a.hypothesis), a.birth) <
           std::tuple(-search_score(b.hypothesis), b.birth);
  };
  const auto given_before = [&](const Answer& a, const Answer& b) {
    const double score_a = score(a.hypothesis), score_b = score(b.hypothesis);
    return score_a != score_b ? score_a > score_b : chosen_before(a, b);
  };
  const auto width = static_cast<std::size_t>(alone_.asked.beam_width);
  std::vector<ExpectedHypothesis> answers;
  for (const Answer& one : best_of(best_of(all, width, chosen_before), width, given_before))
    answers.push_back(one.hypothesis);
  return answers;
}

}  // namespace octavo::simulation
