// What was heard of each request, against what the request alone would be told. Listens to the events of the
// engine core and notes the first that breaks a promise of engine_core.h.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "engine/api/event.h"
#include "engine/base/ids.h"
#include "tests/simulation/counts.h"
#include "tests/simulation/expected_beams.h"
#include "tests/simulation/expected_output.h"
#include "tests/simulation/problem.h"
#include "tests/simulation/script.h"

namespace octavo::simulation {

// What the listener must know about the step that the events came from.
struct StepFacts {
  std::int64_t begin_us = 0;  // commands and plan
  std::int64_t end_us = 0;    // after the device
  bool device_failed = false;
  bool device_lost = false;
};

class Answers {
 public:
  // All three outlive this object.
  Answers(const Script& script, Problem& problem, Counts& counts)
      : script_(script), problem_(problem), counts_(counts) {}

  void submitted(RequestId request_id, const ScriptedRequest& asked, std::int64_t now_us);
  void cancelled(RequestId request_id);
  void output_cancelled(RequestId request_id, std::int32_t output_index);
  // After the step that was told so: whether an output that was cancelled goes on.
  bool goes_on_cancelled() const;
  void hear(std::span<const EngineEvent> events, const StepFacts& facts);

  // Whether it was submitted and has not ended.
  bool is_open(RequestId request_id) const;
  std::size_t num_open() const { return open_.size(); }

  // At the end of a life: everyone has ended.
  void check_all_ended();

 private:
  struct Output {
    explicit Output(const ExpectedOutput& alone) : expected(alone) {}
    ExpectedOutput expected;
    std::size_t num_tokens = 0;
    std::string text;
    bool has_ended = false;
    std::int64_t ended_us = 0;
    FinishReason finish_reason = FinishReason::kAbort;
    StopReason stop_reason = {};
    std::string detail;
  };
  // One answer of a beam search, told at its end, and the search itself.
  struct BeamAnswer {
    std::vector<TokenId> token_ids;
    std::vector<float> logprobs;
    std::vector<std::vector<TokenLogprob>> top_logprobs;
    std::string text;
    std::optional<OutputFinished> end;
  };
  struct Beams {
    ExpectedBeams expected;
    std::vector<BeamNode> nodes;
    std::vector<BeamAnswer> answers;
  };
  struct Request {
    RequestAlone alone;
    std::int64_t submitted_us = 0;
    bool accepted = false, admitted = false, cancelled = false;
    std::int32_t num_abandoned = 0;  // outputs that ended before it was accepted
    std::int32_t num_preemptions = 0;
    std::int32_t num_told_together = 0;  // tokens that came behind another one of the same step
    bool has_token = false;
    std::int64_t queue_us = -1;        // as told at its admission
    std::int64_t first_token_us = -1;  // when it was told
    std::int64_t last_token_us = -1;
    std::set<std::int32_t> cancelled_outputs;
    std::int32_t num_computed_told = 0;
    bool has_embedding = false;
    std::vector<Output> outputs;  // none of a beam search
    std::optional<Beams> beams;
  };

  void hear(const RequestAccepted& event, Request& request);
  void hear(const RequestAdmitted& event, Request& request);
  void hear(const TokensGenerated& event, Request& request);
  void hear(const BeamsAdvanced& event, Request& request);
  void hear(const RequestPreempted& event, Request& request);
  void hear(const PromptProgress& event, Request& request);
  void hear(const EmbeddingComputed& event, Request& request);
  void hear(const OutputFinished& event, Request& request);
  void hear(const RequestFinished& event, Request& request);
  void hear(const RequestFailed& event, Request& request);

  void note_token(Request& request);
  void hear_token(const TokensGenerated& event, std::size_t index, Output& output);
  void check_output(RequestId request_id, const Request& request, Output& output);
  void check_beam_step(RequestId request_id, Beams& beams, const BeamStep& step);
  bool is_beam(const Beams& beams, std::int32_t node, const ExpectedHypothesis& expected) const;
  void check_beams(RequestId request_id, const Request& request);
  bool is_answer(const BeamAnswer& answer, const ExpectedHypothesis& expected, double score) const;
  void check_metrics(RequestId request_id, const Request& request, const RequestMetrics& metrics);
  static std::int64_t time_per_token(const Request& request);
  void check_account(RequestId request_id, const Request& request, const RequestMetrics& metrics);
  bool some_output_fails(Request& request) const;
  bool is_impossible(const ScriptedRequest& asked) const;
  bool is_too_long(const ScriptedRequest& asked) const;
  bool reserves_too_much(const ScriptedRequest& asked) const;
  bool may_outgrow_pool(const Request& request, const Output& output) const;
  bool beams_may_outgrow_pool(const Request& request) const;
  std::int32_t blocks_for(std::int64_t num_tokens) const;

  const Script& script_;
  Problem& problem_;
  Counts& counts_;
  StepFacts facts_;
  std::map<RequestId, Request> open_;  // submitted and not ended; references into it stay valid
  RequestId last_submitted_{};
};

}  // namespace octavo::simulation
