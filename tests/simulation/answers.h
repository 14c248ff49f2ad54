// What was heard of each request, against what the request alone would be told. Listens to the events of the
// engine core and notes the first that breaks a promise of engine_core.h.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "engine/api/event.h"
#include "engine/base/ids.h"
#include "tests/simulation/counts.h"
#include "tests/simulation/expected_output.h"
#include "tests/simulation/problem.h"
#include "tests/simulation/script.h"

namespace octavo::simulation {

// What the listener must know about the step that the events came from.
struct StepFacts {
  std::int64_t now_us = 0;
  bool device_failed = false;
};

class Answers {
 public:
  // All three outlive this object.
  Answers(const Script& script, Problem& problem, Counts& counts)
      : script_(script), problem_(problem), counts_(counts) {}

  void submitted(RequestId request_id, const ScriptedRequest& asked, std::int64_t now_us);
  void cancelled(RequestId request_id);
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
    FinishReason finish_reason = FinishReason::kAbort;
    StopReason stop_reason = {};
  };
  struct Request {
    RequestAlone alone;
    std::int64_t submitted_us = 0;
    bool accepted = false, admitted = false, cancelled = false;
    std::int32_t num_preemptions = 0;
    std::vector<Output> outputs;
  };

  void hear(const RequestAccepted& event, Request& request);
  void hear(const RequestAdmitted& event, Request& request);
  void hear(const TokensGenerated& event, Request& request);
  void hear(const BeamsAdvanced&, Request&) {}
  void hear(const RequestPreempted& event, Request& request);
  void hear(const OutputFinished& event, Request& request);
  void hear(const RequestFinished& event, Request& request);
  void hear(const RequestFailed& event, Request& request);

  void check_output(RequestId request_id, const Request& request, Output& output);
  bool some_output_fails(Request& request) const;
  bool is_impossible(const ScriptedRequest& asked) const;
  bool is_too_long(const Request& request) const;
  bool may_outgrow_pool(const Request& request) const;
  std::int32_t most_blocks(const Request& request, std::int32_t num_tokens) const;

  const Script& script_;
  Problem& problem_;
  Counts& counts_;
  StepFacts facts_;
  std::map<RequestId, Request> open_;  // submitted and not ended; references into it stay valid
  RequestId last_submitted_{};
};

}  // namespace octavo::simulation
