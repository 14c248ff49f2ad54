// Batching policies on one trace: one request at a time, static batches, and iteration-level scheduling
// (Orca, Yu et al., OSDI 2022), all over paged memory. What differs is how long the trace takes and how many
// requests share a step.

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include "engine/experiments/saturated_queue.h"
#include "engine/scheduler/scheduler.h"
#include "tests/experiments/experiment_data.h"
#include "tests/experiments/table.h"

namespace octavo::paper {
namespace {

const std::string kStepSection = "Steps for 1,000 ShareGPT requests, all there at once";
const std::string kBatchSection = "Requests in a step, on average";
const std::string kLatencySection = "Steps until a request has ended, on average";

std::vector<RequestLengths> trace() {
  UniformStream uniform(1);
  std::vector<RequestLengths> requests(1'000);
  for (RequestLengths& lengths : requests) lengths = sharegpt_lengths().draw(uniform);
  return requests;
}

struct TraceRun {
  std::int64_t num_steps = 0;
  std::int64_t sum_of_batches = 0;
  std::vector<std::int64_t> end_steps;  // by request

  double mean_batch() const { return static_cast<double>(sum_of_batches) / static_cast<double>(num_steps); }
  double mean_latency() const {
    return static_cast<double>(std::accumulate(end_steps.begin(), end_steps.end(), std::int64_t{0})) /
           static_cast<double>(end_steps.size());
  }
};

TraceRun run_trace(BatchingPolicy policy, const std::vector<RequestLengths>& requests) {
  scheduler::SchedulerOptions options = paper_pool(MemoryManager::kPaged);
  options.batching_policy = policy;
  scheduler::Scheduler scheduler(options);
  for (std::size_t i = 0; i < requests.size(); ++i) {
    const auto prompt_length = static_cast<std::size_t>(requests[i].num_prompt_tokens);
    const Result<void> added = scheduler.add({.request_id = RequestId{i},
                                              .prompt_token_ids = std::vector<TokenId>(prompt_length, 0),
                                              .sampling = {.max_tokens = requests[i].num_output_tokens}});
    EXPECT_TRUE(added.has_value());
  }
  TraceRun run;
  run.end_steps.resize(requests.size());
  while (scheduler.has_work()) {
    const scheduler::SchedulerOutput plan = scheduler.schedule();
    ++run.num_steps;
    run.sum_of_batches += scheduler.num_running();
    std::vector<scheduler::CommittedToken> tokens;
    std::vector<SequenceId> ended;
    for (const scheduler::ScheduledSequence& row : plan.sequences) {
      for (const scheduler::SampleTarget& target : row.samples) {
        tokens.push_back({target.sequence_id, 1});
        if (static_cast<std::int32_t>(target.output_token_ids.size()) + 1 < row.sampling->max_tokens)
          continue;
        ended.push_back(target.sequence_id);
        run.end_steps[row.request_id.value] = run.num_steps;
      }
    }
    scheduler.commit(plan, tokens);
    for (const SequenceId sequence : ended) scheduler.finish(sequence);
    scheduler.take_events();
  }
  return run;
}

void print(const std::string& name, const TraceRun& run) {
  print_at_end({kStepSection, name, {}, {}, static_cast<double>(run.num_steps), ""});
  print_at_end({kBatchSection, name, {}, {}, run.mean_batch(), ""});
  print_at_end({kLatencySection, name, {}, {}, run.mean_latency(), ""});
}

TEST(BatchingPolicies, OneAtATimeTakesAStepForEveryToken) {
  const std::vector<RequestLengths> requests = trace();
  const TraceRun run = run_trace(BatchingPolicy::kOneAtATime, requests);
  print("one request at a time", run);
  std::int64_t num_tokens = 0;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    num_tokens += requests[i].num_output_tokens;
    EXPECT_EQ(run.end_steps[i], num_tokens) << "request " << i;
  }
  EXPECT_EQ(run.num_steps, num_tokens);
  EXPECT_EQ(run.mean_batch(), 1.0);
}

// A static batch takes as long as its longest output, and everybody behind it waits for that.
TEST(BatchingPolicies, IterationLevelNeedsLessThanTwoThirdsOfTheStepsOfStaticBatches) {
  const TraceRun fixed = run_trace(BatchingPolicy::kStatic, trace());
  const TraceRun iteration = run_trace(BatchingPolicy::kIteration, trace());
  print("static batches", fixed);
  print("iteration level", iteration);
  EXPECT_LT(3 * iteration.num_steps, 2 * fixed.num_steps);
  EXPECT_GT(iteration.mean_batch(), 1.5 * fixed.mean_batch());
  EXPECT_LT(1.5 * iteration.mean_latency(), fixed.mean_latency());
}

}  // namespace
}  // namespace octavo::paper
