// A scheduler with everything around it simulated: a KV cache whose slots hold the hash of the token prefix
// that they stand for, a model whose next token is a hash of what it reads through the block table, and a
// caller that ends outputs. Each step is checked against the rules; a wrong block changes tokens at once.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "engine/base/hash.h"
#include "engine/scheduler/scheduler.h"
#include "tests/scheduler/event_replay.h"

namespace octavo::scheduler {

using Tokens = std::vector<TokenId>;

struct SimulatedRequest {
  Tokens prompt;
  std::int32_t n = 1;
  std::int32_t max_tokens = 8;
  std::string salt = {};
  bool prompt_logprobs = false;
};

class Harness {
 public:
  explicit Harness(const SchedulerOptions& options);

  // Adds a request that must be accepted.
  RequestId submit(const SimulatedRequest& request);
  bool abort(RequestId request_id);
  // Ends one output early, in whatever state it is.
  void finish_early(SequenceId sequence_id);

  // One step, executed or failing, checked throughout. Outputs end at their max_tokens, at the model's length
  // or for want of memory.
  SchedulerOutput step(bool device_fails = false);
  void run_until_idle(int most_steps = 10'000);

  Scheduler scheduler;
  // The generated tokens of ended outputs, by request and output index.
  std::map<std::pair<RequestId, std::uint32_t>, Tokens> outputs;
  std::map<RequestId, std::int32_t> num_cached_tokens;
  std::int32_t num_prefill_tokens = 0;  // rows so far
  std::vector<RequestId> start_order;
  std::vector<Preemption> preemptions;
  std::int32_t num_out_of_memory = 0;

  // What the model says alone, without any paging.
  static Tokens expected_output(const SimulatedRequest& request, std::uint64_t seed,
                                std::uint32_t output_index, std::int32_t num_tokens);
  const SimulatedRequest& request(RequestId request_id) const { return requests_.at(request_id); }
  static std::uint64_t seed_of(RequestId request_id) { return mix64(request_id.value); }

 private:
  std::vector<CommittedToken> execute(const SchedulerOutput& step);
  void copy_blocks(const SchedulerOutput& step);
  void write_row(const ScheduledSequence& row);
  void read_row(const ScheduledSequence& row);
  std::uint64_t& slot(const ScheduledSequence& row, std::int32_t position);
  void check_rules(const SchedulerOutput& step);
  void check_group(const SchedulerOutput& step, const KvSnapshot& snapshot, RequestId request_id);
  void check_progress(std::size_t num_tokens);
  void check_state();
  void end_outputs(std::span<const SequenceId> sequences);

  const SchedulerOptions options_;
  EventReplay replay_;
  std::map<RequestId, SimulatedRequest> requests_;  // unfinished and finished
  std::vector<std::uint64_t> slots_;
  std::set<std::size_t> written_slots_;  // in this step
  std::set<RequestId> running_before_;
  std::uint64_t last_request_ = 0;
  std::int32_t num_steps_without_token_ = 0;
};

Tokens random_like_tokens(std::uint64_t seed, std::int32_t num_tokens);

}  // namespace octavo::scheduler
