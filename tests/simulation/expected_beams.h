// Beam search over the toy model, from the request alone and the definition of it: every step makes all
// continuations of all beams over the whole vocabulary, and a place is the number of those that come before.
// Nothing is sorted or thrown away. Shares nothing with the engine's search.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/api/request.h"
#include "engine/base/ids.h"
#include "tests/simulation/expected_text.h"
#include "tests/simulation/toy_model.h"

namespace octavo::simulation {

// A beam, or what one ended as.
struct ExpectedHypothesis {
  ExpectedText text;
  std::vector<float> logprobs;  // the model's own
  std::vector<std::vector<TokenLogprob>> top_logprobs = {};
  double cumulative_logprob = 0.0;  // of these
  double search_logprob = 0.0;      // what the search goes by
};

class ExpectedBeams {
 public:
  // Both arguments outlive this object.
  ExpectedBeams(const ToyModel& model, const RequestAlone& alone);

  // The step cannot be taken: the logits after some beam are invalid.
  bool fails() const;
  bool is_over() const;

  // REQUIRES: neither of these
  void advance();

  const std::vector<ExpectedHypothesis>& live() const { return live_; }  // best first
  // Those that ended in the last step, in order of rank.
  const std::vector<ExpectedHypothesis>& just_ended() const { return just_ended_; }

  // The answers, best first, when the search is over or ended now for another reason: then what is under way
  // competes too.
  std::vector<ExpectedHypothesis> answers(FinishReason of_those_under_way) const;
  double score(const ExpectedHypothesis& hypothesis) const {
    return score(hypothesis.cumulative_logprob, hypothesis.text.token_ids().size());
  }

 private:
  struct Continuation {
    std::size_t rank = 0;  // of the beam that it continues
    TokenId token = -1;
    ExpectedHypothesis longer;
  };
  struct Answer {
    std::size_t birth = 0;  // in order of their ends
    ExpectedHypothesis hypothesis;
  };

  double score(double logprob, std::size_t num_tokens) const;
  double search_score(const ExpectedHypothesis& hypothesis) const {
    return score(hypothesis.search_logprob, hypothesis.text.token_ids().size());
  }
  std::vector<Continuation> all_continuations() const;
  static bool precedes(const Continuation& a, const Continuation& b);

  const ToyModel& model_;
  const RequestAlone& alone_;
  std::vector<ExpectedHypothesis> live_;   // best first
  std::vector<ExpectedHypothesis> ended_;  // all that ever were among the best, in order of their ends
  std::vector<ExpectedHypothesis> just_ended_;
};

}  // namespace octavo::simulation
