// A scheduler and a caller that draws tokens from a toy model, searches beams and ends outputs. Its
// invariants are checked after each step; what must hold in every life is checked in tests/simulation.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engine/scheduler/scheduler.h"
#include "tests/scheduler/toy_model.h"
#include "tests/scheduler/toy_search.h"

namespace octavo::scheduler {

struct SimulatedRequest {
  Tokens prompt;
  std::int32_t n = 1;
  std::int32_t max_tokens = 8;
  std::string salt = {};
  bool prompt_logprobs = false;
  std::optional<std::int32_t> beam_width = {};
  RetentionClass retention = RetentionClass::kScratch;
  std::int32_t num_system_tokens = 0, num_next_turn_tokens = 0;
  RequestPriority priority = RequestPriority::kInteractive;
  std::int32_t period = 0;  // above 0: its outputs repeat so many tokens, but for one token in 16
};

class Harness {
 public:
  explicit Harness(const SchedulerOptions& options) : scheduler(options), options_(options) {}

  // Adds a request that must be accepted.
  RequestId submit(const SimulatedRequest& request);
  bool abort(RequestId request_id);
  // Ends one output early, as a caller may whose sequence has just got a token.
  void finish_early(SequenceId sequence_id);

  // One step, executed or failing. Outputs end at their max_tokens, at the model's length or for want of
  // memory.
  SchedulerOutput step(bool device_fails = false);
  void run_until_idle(int most_steps = 10'000);
  // What each step from now on is said to have taken; none: nobody says.
  std::function<std::int64_t(const SchedulerOutput&)> us_of_step = {};
  // Steps until the request is preempted; that step. Fails the test when it never is.
  SchedulerOutput run_until_preempted(RequestId request_id);

  PromptAccount account_of(RequestId request_id) const { return accounts_.at(request_id); }
  std::int32_t num_used_blocks() const { return scheduler.figures().used_blocks; }

  Scheduler scheduler;
  // The generated tokens of ended outputs, by request and output index (of beams: rank).
  std::map<std::pair<RequestId, std::uint32_t>, Tokens> outputs;
  std::map<RequestId, std::int32_t> num_cached_tokens;
  std::int32_t num_prefill_tokens = 0;  // rows so far
  std::int32_t num_draft_tokens = 0, num_accepted_tokens = 0;
  std::vector<RequestId> start_order;
  std::vector<Preemption> preemptions;
  std::vector<RequestId> failed;  // by a failing device
  std::int32_t num_out_of_memory = 0;

  // What the model says alone.
  static Tokens expected_output(const SimulatedRequest& request, std::uint64_t seed,
                                std::uint32_t output_index, std::int32_t num_tokens);
  const SimulatedRequest& request(RequestId request_id) const { return requests_.at(request_id); }
  static std::uint64_t seed_of(RequestId request_id);

 private:
  void note_plan(const SchedulerOutput& step);
  void commit(const SchedulerOutput& step);
  void fail(const SchedulerOutput& step);
  std::vector<CommittedToken> sample(const SchedulerOutput& step);
  void note_accounts(const SchedulerOutput& step);
  void advance_searches();
  void end_search(RequestId request_id);
  void end_outputs(std::span<const CommittedToken> tokens);
  void end_out_of_memory(const SchedulerOutput& step);
  void check_state() const { EXPECT_EQ(scheduler.broken_invariant(), std::nullopt); }

  const SchedulerOptions options_;
  std::map<RequestId, SimulatedRequest> requests_;  // unfinished and finished
  std::map<RequestId, ToySearch> searches_;         // unfinished
  std::map<RequestId, PromptAccount> accounts_;     // when the first token came
  std::uint64_t last_request_ = 0;
};

}  // namespace octavo::scheduler
