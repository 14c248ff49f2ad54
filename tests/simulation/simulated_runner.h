// A runner without a model, which finds out whether the paging is right. Each slot of its "KV cache" holds
// the hash of the token prefix that the slot stands for. It copies blocks, writes rows and reads slots
// through the block tables as the real one does, and afterwards compares every slot that attention would read
// with what it must hold, known from the tokens that it drew itself. The next token is a hash of all slots
// read, so that any paging error changes tokens.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/api/kv_snapshot.h"
#include "engine/base/ids.h"
#include "engine/runner/runner.h"
#include "tests/simulation/expected_output.h"
#include "tests/simulation/random.h"

namespace octavo::simulation {

struct SimulatedRunnerOptions {
  std::int32_t block_size = 16;
  std::int32_t num_blocks = 0;
  std::int32_t max_num_seqs = 0;
  std::int32_t max_num_batched_tokens = 0;
  ToyModel model = {};
};

class SimulatedRunner final : public runner::Runner {
 public:
  SimulatedRunner(const SimulatedRunnerOptions& options, std::uint64_t seed);

  Result<void> execute(const scheduler::SchedulerOutput& step, runner::RunnerOutput& output) override;

  // The share of steps that fail from now on; a failing step leaves rubbish in the slots it was to write.
  void set_failure_rate(double rate) { failure_rate_ = rate; }

  // Requests of different salt must never share memory: the salt is the root of their hashes.
  void set_salt(RequestId request_id, std::uint64_t salt) { salts_[request_id] = salt; }

  // Overwrites every slot that holds nothing by the engine's own account.
  void poison_unfilled(const KvSnapshot& snapshot);

  // The first thing that was wrong since the start.
  const std::optional<std::string>& problem() const { return problem_; }

  // Requests that had rows in steps since the last call, by arrival.
  std::vector<RequestId> take_scheduled_requests() { return std::exchange(scheduled_requests_, {}); }

 private:
  // What a sequence is, by the tokens that were drawn for it here.
  struct Truth {
    std::vector<TokenId> token_ids;
    std::vector<std::uint64_t> slots;  // of each token; shorter than token_ids until needed
  };

  Truth& truth_of(SequenceId sequence_id, const scheduler::ScheduledSequence& scheduled);
  void check_budgets(const scheduler::SchedulerOutput& step);
  void check_rows(const scheduler::ScheduledSequence& scheduled);
  void copy_blocks(const std::vector<scheduler::BlockCopyOp>& copies);
  void write_rows(const scheduler::ScheduledSequence& scheduled, bool rubbish);
  void check_slots(const scheduler::ScheduledSequence& scheduled);
  void draw(const scheduler::ScheduledSequence& scheduled, runner::RunnerOutput& output);
  void report_prompt_logprobs(const scheduler::ScheduledSequence& scheduled, runner::RunnerOutput& output);
  std::uint64_t* slot(const scheduler::ScheduledSequence& scheduled, std::int32_t position);
  std::uint64_t root_of(RequestId request_id) const;
  std::uint64_t poison(std::size_t slot_index);
  void note(const std::string& problem);

  const SimulatedRunnerOptions options_;
  Random random_;
  double failure_rate_ = 0.0;
  std::map<RequestId, std::uint64_t> salts_;
  std::map<SequenceId, Truth> truths_;
  std::vector<std::uint64_t> slots_;  // [num_blocks][block_size]
  std::uint64_t num_poisoned_ = 0;
  std::vector<RequestId> scheduled_requests_;
  std::optional<std::string> problem_;
};

}  // namespace octavo::simulation
