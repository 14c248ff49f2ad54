// What executes a step: the real model, or a simulation of one. Few methods, so that the same scheduler,
// block manager and engine core run against either.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "engine/api/expert_choices.h"
#include "engine/api/request.h"
#include "engine/base/ids.h"
#include "engine/base/result.h"
#include "engine/scheduler/scheduler_output.h"

namespace octavo::runner {

// One possible continuation of a beam. Candidates are ranked by search_logprob, ties by lower id.
struct BeamCandidate {
  TokenId token_id = -1;
  float logprob = 0.0f;  // natural, of the model's own distribution
  // After logit bias, min_tokens and penalties; equals logprob when none of them is asked for
  double search_logprob = 0.0;
};

// One drawn token, or the reason why none could be.
struct SampledToken {
  SequenceId sequence_id;
  TokenId token_id = -1;
  float logprob = 0.0f;  // natural, of the model's own distribution
  // The best, as many as were asked for, best first, ties to the lower id; or logprob_token_ids.
  std::vector<TokenLogprob> top_logprobs = {};
  std::vector<BeamCandidate> candidates = {};  // of a beam, which has no token_id: best first
  // The row held a NaN, plus infinity or nothing finite, or the request forbids all that could come: it must
  // fail.
  bool invalid_logits = false;
};

// log p(token at `position` | its prefix) of a prompt whose request asked for it.
struct PromptLogprob {
  SequenceId sequence_id;
  std::int32_t position = 0;  // >= 1
  float logprob = 0.0f;
  std::vector<TokenLogprob> top_logprobs = {};  // best first; as many as were asked for
};

// The model's last hidden states, after its output norm, of neighbouring rows: of a sequence whose plan names
// a pooling all rows of the step, or that of the prompt's last token.
struct HiddenStates {
  SequenceId sequence_id;
  RequestId request_id;
  std::int32_t first_position = 0;
  std::int32_t width = 0;
  std::vector<float> values;  // [rows, width]
};

struct RunnerOutput {
  // One for each SampleTarget, in the same order. Of a draft's targets there are none after the first whose
  // token is not the guess that follows it.
  std::vector<SampledToken> tokens;
  std::vector<PromptLogprob> prompt_logprobs;
  std::vector<HiddenStates> hidden_states;  // in the plan's order
  std::int64_t swap_out_us = 0;             // what the step's swaps took; 0 without any
  std::int64_t swap_in_us = 0;
  std::optional<ExpertChoices> experts = {};  // all but the step; where report_experts() asks for them
  // False: a device still computes what nobody has asked for yet, and the time that it takes shows in a later
  // step.
  bool has_ended = true;
};

class Runner {
 public:
  virtual ~Runner() = default;

  // Whether outputs say which experts tokens chose. Those of a model without experts never do.
  virtual void report_experts(bool) {}

  // Moves blocks (out, in, then copies; also for a step without rows), runs the rows, writes their KV, draws
  // the targets' tokens. An error means that the device failed: the requests of this step end with it; the
  // runner can be called again. REQUIRES: every block named is in its pool; nothing else touches the KV
  // cache meanwhile.
  virtual Result<void> execute(const scheduler::SchedulerOutput& step, RunnerOutput& output) = 0;

  // execute() in two halves, so that the next step can be made and begun while a device computes this one.
  //
  // begin() starts a step and returns: at the latest finish() says what it drew. False, and nothing has
  // happened, where that cannot be; what Scheduler::schedule_ahead() makes of a step that was begun can be
  // begun, too, and behind it. At most two are under way.
  virtual bool begin(const scheduler::SchedulerOutput&) { return false; }
  // The end of the oldest step that was begun: `step` is that one, but for rows that are nobody's any more
  // (Scheduler::take_up), of which nothing is told; it names sequences, and nothing else of it is read. After
  // an error nothing is under way.
  virtual Result<void> finish(const scheduler::SchedulerOutput&, RunnerOutput&) { return {}; }

  // Which of the tokens that were drawn count, as Scheduler::commit() is told: once after each execute() that
  // succeeded and had rows of drafts, before anything else. A state that belongs to a sequence with a draft
  // stands before its guesses until here, and takes up those that came true. What a device cannot do shows in
  // the next execute().
  //
  // Where the model guesses its next tokens itself, every step is settled: returned are the sequences for
  // which it can, in the next step and no later.
  virtual std::vector<SequenceId> settle(const scheduler::SchedulerOutput&,
                                         std::span<const scheduler::CommittedToken>) {
    return {};
  }
};

}  // namespace octavo::runner
