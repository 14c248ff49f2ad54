// Beam search of one request: which continuations of its beams go on, which have ended, and when it is over.
// Each step keeps the best `width` of all continuations; those that end become hypotheses, which compete by
//
//   score = cumulative log-probability / (generated tokens, the end token included) ^ length_penalty
//
// Ties: the lower rank of the parent, then the lower token id; of hypotheses the earlier one. The rules for
// ends are those of Hugging Face Transformers: only an end among the best `width` continuations of a step
// becomes a hypothesis, and with `width` hypotheses the search is over at once (early_stopping), or when the
// best beam, at its present length, does not beat the worst of them.
//
// The search follows search log-probabilities (after logit bias, min_tokens and penalties); what it reports
// are the model's own. Without such parameters the two are equal.
//
// A value; engine thread. What the beams hold in memory is the scheduler's affair: a beam is known here by
// its seat, the sequence that carries it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/api/request.h"
#include "engine/base/ids.h"
#include "engine/core/output_processor.h"
#include "engine/runner/runner.h"
#include "engine/scheduler/scheduler.h"

namespace octavo {

class BeamSearch {
 public:
  // `fresh` has seen no token; it decides what ends a beam. The sampling parameters outlive the search.
  // REQUIRES: sampling.beam_width
  BeamSearch(const SamplingParams& sampling, OutputProcessor fresh, SequenceId first_seat);

  // The continuations of the beam in this seat. Beams may report in different steps, and again after a
  // preemption; the same is said then.
  void report(const runner::SampledToken& continuations);
  bool all_reported() const;

  struct Advance {
    BeamStep step;
    std::vector<scheduler::BeamContinuation> continuations;  // best first
    bool is_over = false;
  };
  // REQUIRES: all_reported(), and that it is not over
  Advance advance();
  // Where the continuations of the last advance() are carried now, in the same order.
  void take_seats(std::span<const SequenceId> seats);

  // The best hypotheses, best score first, at most `width`. Of a search that is not over, the beams under way
  // compete too, ended for this reason.
  struct Hypothesis {
    std::vector<TokenId> token_ids = {};
    std::vector<float> logprobs = {};
    std::vector<std::vector<TokenLogprob>> top_logprobs = {};  // as asked
    std::string text = {};
    double score = 0.0;
    OutputEnd end = {};
  };
  std::vector<Hypothesis> best(FinishReason of_those_under_way) const;

  std::int32_t num_generated_tokens() const { return num_generated_; }

 private:
  struct Node {
    BeamNode shown;
    std::vector<TokenLogprob> top_logprobs;
  };
  struct Beam {
    SequenceId seat = {};
    std::int32_t node = -1;  // its last token; -1: the prompt
    double search_logprob = 0.0;
    OutputProcessor output;
    std::optional<runner::SampledToken> reported = {};
  };
  struct Ended {
    std::int32_t node = -1;
    double search_score = 0.0;
    OutputEnd end;
  };
  // A continuation of the beam of this rank.
  struct Candidate {
    std::size_t rank = 0;
    const runner::BeamCandidate* token = nullptr;
    double search_logprob = 0.0;
  };

  std::size_t width() const { return static_cast<std::size_t>(*sampling_->beam_width); }
  double score_of(double logprob, std::int32_t num_tokens) const;
  std::vector<Candidate> ranked_candidates() const;
  std::int32_t add_node(const Candidate& candidate, BeamStep& step);
  static void add_ended(std::vector<Ended>& ended, Ended candidate, std::size_t width);
  bool is_over() const;
  Hypothesis hypothesis_of(const Ended& ended) const;

  const SamplingParams* sampling_;
  OutputProcessor fresh_;
  std::vector<Node> nodes_;
  std::vector<Beam> beams_;   // best first
  std::vector<Ended> ended_;  // best first, at most `width`
  std::int32_t num_generated_ = 0;
};

}  // namespace octavo
