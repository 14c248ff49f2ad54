// The engine on one thread: commands in, events out, one step at a time. Scheduler and block manager live
// inside; what computes, tells the time and draws seeds comes from outside, so that the same core runs on a
// real model and, from one seed, in a simulation. Requests come prepared (request_intake.h): nothing here
// takes time that depends on the length of a text.
//
// Promises, for each request that was submitted:
//   1. Exactly one RequestFinished or RequestFailed, and nothing after it.
//   2. The concatenated text of an output is the decoding of its tokens without special ones, cut before the
//      first stop string.
//   3. A cancel frees everything before the next step is scheduled; what was generated until then was told.
//   4. A request that fails (refused, not computable, or caught by a failing device) disturbs no other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engine/api/event.h"
#include "engine/api/expert_choices.h"
#include "engine/api/kv_snapshot.h"
#include "engine/api/metrics.h"
#include "engine/base/clock.h"
#include "engine/core/active_request.h"
#include "engine/core/command.h"
#include "engine/metrics/step_recorder.h"
#include "engine/runner/runner.h"
#include "engine/scheduler/scheduler.h"
#include "engine/tokenizer/tokenizer.h"

namespace octavo {

// What the core asks of the world. Everything named outlives the core.
struct EngineDependencies {
  runner::Runner* runner = nullptr;
  const Clock* clock = nullptr;
  const tokenizer::Tokenizer* tokenizer = nullptr;
};

class EngineCore {
 public:
  EngineCore(const scheduler::SchedulerOptions& options, EngineDependencies dependencies);

  // Handles the commands in order, then computes one step of what is to be done, if anything is. Returns what
  // there is to tell, oldest first. Where a device computes while the step after this one can be made
  // (Scheduler::schedule_ahead), that one is begun before this one's end is awaited: then it is the next
  // call's, and commands are handled behind it.
  std::vector<EngineEvent> step(std::vector<EngineCommand> commands);

  // Handles the commands and ends all requests, as by cancels. Nothing is computed.
  std::vector<EngineEvent> stop(std::vector<EngineCommand> commands);

  // Whether a step without commands would compute anything.
  bool has_work() const { return ahead_.has_value() || scheduler_.has_work(); }

  const KvTotals& totals() const { return scheduler_.totals(); }
  // As measured so far: what decides how a group is preempted, and how much a step does.
  const scheduler::MeasuredCosts& costs() const { return costs_; }
  KvSnapshot snapshot(SnapshotScope scope = SnapshotScope::kPool) const;

  // May be read from any thread.
  std::shared_ptr<const metrics::StepRecorder> recorder() const { return recorder_; }

  // Steps from now on gather what their tokens chose, where the model has experts.
  void report_experts(bool wanted) { dependencies_.runner->report_experts(wanted); }
  // Of the newest step.
  std::optional<ExpertChoices> take_expert_choices() { return std::exchange(expert_choices_, std::nullopt); }

  BlockDetail describe_block(BlockId block) const { return scheduler_.describe_block(block); }

  // For simulation: its invariants are checked after every step.
  const scheduler::Scheduler& scheduler() const { return scheduler_; }

 private:
  // A step on its way from schedule to publish.
  struct Step {
    scheduler::SchedulerOutput plan;
    runner::RunnerOutput drawn;
    std::optional<Error> failure;      // of the device: nothing of the plan was computed
    std::optional<StepRecord> record;  // none: nothing was scheduled
    bool is_begun = false;             // by Runner::begin()
  };

  // The tokens that one output got in a step: one, and those of a draft. What was drawn after the output's
  // end, or after a token that cannot be drawn, is not among them.
  struct Delivery {
    RequestId request_id;
    SequenceId sequence_id;
    std::size_t output_index = 0;
    std::span<const runner::SampledToken> tokens;
    std::string text = {};
    std::optional<OutputEnd> end = {};

    bool fails() const { return tokens.back().invalid_logits; }
  };

  void handle(std::vector<EngineCommand> commands);
  void handle(PreparedRequest& prepared);
  void handle(const AbandonedRequest& abandoned);
  void handle(const CancelRequest& cancel);
  void handle(const CancelOutput& cancel);
  void handle(const ResetPrefixCache& reset);
  void handle(const ReleasePins& release);

  void schedule(Step& step);
  void announce(const Step& step);
  // `goes_on`: the step after it may be begun, too.
  void execute(Step& step, bool goes_on);
  void begin_ahead(const Step& step);
  Step end_ahead(bool goes_on);
  void commit(Step& step);
  void publish(Step& step);

  void accept(scheduler::NewRequest request, std::int64_t submitted_us, bool reports_progress);
  // Of a request that ends before it is the scheduler's.
  RequestMetrics metrics_unscheduled(std::int64_t submitted_us) const;
  void learn_costs(const Step& step);
  void discard(const Step& step);
  void keep_prompt_logprobs(const Step& step);
  void tell_progress(const Step& step);
  void tell_embeddings(const Step& step);
  void deliver_tokens(Step& step);
  std::vector<Delivery> read_tokens(const Step& step);
  void read_output(OutputProcessor& output, Delivery& delivery) const;
  void count_drafts(Step& step, std::span<const Delivery> deliveries);
  void deliver(ActiveRequest& request, Delivery& delivery);
  void tell_tokens(ActiveRequest& request, Delivery& delivery);
  void tell(ActiveRequest& request, TokensGenerated generated);
  void note_token_time(ActiveRequest& request);
  void advance_beams(ActiveRequest& request);
  void end_beams(ActiveRequest& request, FinishReason of_those_under_way, const std::string& detail = {});
  void end_out_of_memory(const Step& step);
  void end_output(ActiveRequest& request, std::size_t output_index, OutputEnd end,
                  const std::string& detail = {});
  void tell_end(ActiveRequest& request, std::size_t output_index, OutputEnd end,
                const std::string& detail = {});
  void finish_if_ended(RequestId request_id);
  void finish(ActiveRequest& request);
  void fail_invalid_logits(RequestId request_id);
  void fail(RequestId request_id, Error error);

  const scheduler::SchedulerOptions options_;
  const EngineDependencies dependencies_;
  scheduler::Scheduler scheduler_;
  const std::shared_ptr<metrics::StepRecorder> recorder_;  // readers on any thread keep it
  scheduler::MeasuredCosts costs_;
  struct {
    scheduler::StepWork work;
    std::int64_t execute_us = 0;
  } uncosted_;  // of steps with prefill rows whose time is not all told yet: RunnerOutput::has_ended
  ActiveRequests requests_;  // accepted and not ended
  std::optional<ExpertChoices> expert_choices_;
  std::optional<Step> ahead_;        // begun behind the newest that was published
  std::vector<EngineEvent> events_;  // of the step under way
};

}  // namespace octavo
