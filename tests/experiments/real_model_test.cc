// The comparison of memory managers once more with the real model computing every token, scaled down so that
// it takes seconds: lengths a sixteenth of ShareGPT's, sequences of at most 128 tokens, blocks of 4 slots,
// and a pool with the paper's ratio to the longest sequence.

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "engine/output_collector.h"
#include "tests/engine/default_model.h"
#include "tests/experiments/experiment_data.h"
#include "tests/experiments/published.h"
#include "tests/experiments/table.h"

namespace octavo::paper {
namespace {

const std::string kMemorySection = "Real model, a sixteenth of the lengths, block size 4: tokens held";
const std::string kBatchSection = "Real model: batched requests";
const std::string kStepSection = "Real model: steps for 96 requests";

constexpr std::int32_t kScale = 16;
constexpr std::int32_t kBlockSize = 4;
constexpr std::int32_t kNumBlocks = 983 * 16 / kScale / kBlockSize;
constexpr std::int32_t kNumRequests = 96;

std::int32_t scaled(std::int32_t length) { return std::max(1, length / kScale); }

// Arbitrary tokens, other ones in each request; greedy, so that every manager must give the same answers.
std::vector<GenerationRequest> short_requests() {
  UniformStream uniform(1);
  std::vector<GenerationRequest> requests;
  for (std::int32_t i = 0; i < kNumRequests; ++i) {
    const RequestLengths lengths = sharegpt_lengths().draw(uniform);
    std::vector<TokenId> prompt(static_cast<std::size_t>(scaled(lengths.num_prompt_tokens)));
    for (TokenId& token : prompt) token = 1'000 + static_cast<TokenId>(uniform.next() * 40'000);
    requests.push_back(
        {.prompt = TokenPrompt{std::move(prompt)},
         .sampling = {
             .temperature = 0.0, .max_tokens = scaled(lengths.num_output_tokens), .ignore_eos = true}});
  }
  return requests;
}

struct ModelRun {
  std::vector<std::vector<TokenId>> answers;
  double tokens_held = 0.0;  // percent of all slots, in steps with a saturated queue
  double batched_requests = 0.0;
  std::size_t num_steps = 0;
  std::vector<KvSnapshot> snapshots;
};

// The queue is saturated while somebody waits; in the first steps all that runs is at its beginning.
void summarise(const std::vector<StepRecord>& steps, ModelRun& run) {
  constexpr std::int64_t kNumWarmUpSteps = 20;
  std::int32_t num_saturated = 0;
  for (const StepRecord& step : steps) {
    if (step.num_waiting == 0 || step.step <= kNumWarmUpSteps) continue;
    ++num_saturated;
    run.tokens_held += step.filled_slots;
    run.batched_requests += step.num_running;
  }
  ASSERT_GT(num_saturated, 0);
  run.tokens_held *= 100.0 / num_saturated / (kNumBlocks * kBlockSize);
  run.batched_requests /= num_saturated;
  run.num_steps = steps.size();
}

ModelRun run_model(MemoryManager manager) {
  EngineOptions options;
  options.block_size = kBlockSize;
  options.num_kv_blocks = kNumBlocks;
  options.max_model_len = kMaxModelLen / kScale;
  options.enable_prefix_caching = false;
  options.memory_manager = manager;
  options.admission_reserve = AdmissionReserve::kOnePercent;
  options.target_step_ms = 0;  // how many prompts start together is no matter of the machine
  const auto engine = open_default_model(options);
  OutputCollector collector;
  for (const RequestId request_id : engine->submit_all(short_requests())) collector.expect(request_id, 1);
  ModelRun run;
  while (!collector.done()) {
    const auto snapshot = engine->kv_snapshot(SnapshotScope::kPool);
    const bool is_new = snapshot && (run.snapshots.empty() || run.snapshots.back().step != snapshot->step);
    if (is_new) run.snapshots.push_back(*snapshot);
    for (const EngineEvent& event : engine->poll(std::chrono::milliseconds(20))) collector.add(event);
  }
  for (const RequestOutput& answer : collector.take()) {
    EXPECT_FALSE(answer.error.has_value());
    if (!answer.outputs.empty()) run.answers.push_back(answer.outputs.front().token_ids);
  }
  summarise(engine->trace_since(0, 0).steps, run);
  return run;
}

const ModelRun& paged_run() {
  static const ModelRun run = run_model(MemoryManager::kPaged);
  return run;
}

void print(const std::string& name, const ModelRun& run) {
  print_at_end({kMemorySection, name, {}, {}, run.tokens_held});
  print_at_end({kBatchSection, name, {}, {}, run.batched_requests, ""});
  print_at_end({kStepSection, name, {}, {}, static_cast<double>(run.num_steps), ""});
}

TEST(RealModel, HoldsMoreTokensAndRunsMoreRequestsTheLessIsReserved) {
  OCTAVO_NEEDS_DEFAULT_MODEL();
  double tokens_held = 0.0;
  double batched_requests = 0.0;
  for (const ManagerRow& row : kManagers) {
    SCOPED_TRACE(row.name);
    const ModelRun run = run_model(row.manager);
    print(std::string(row.name), run);
    EXPECT_GT(run.tokens_held, tokens_held);
    EXPECT_GT(run.batched_requests, batched_requests);
    EXPECT_LT(run.tokens_held, 45.0);
    EXPECT_EQ(run.answers, paged_run().answers) << "where keys and values lie must not change an answer";
    tokens_held = run.tokens_held;
    batched_requests = run.batched_requests;
  }
  print("paged", paged_run());
  EXPECT_GT(paged_run().tokens_held, 2.0 * tokens_held);
  EXPECT_GT(paged_run().batched_requests, 2.0 * batched_requests);
}

// Slots of its blocks that belong to no token: neither filled nor taken for a prompt's tokens that come next.
std::int32_t num_wasted_slots(const SequenceSnapshot& sequence, const KvSnapshot& snapshot) {
  std::int32_t num_wasted = 0;
  for (const BlockId id : sequence.block_table) {
    const BlockSnapshot& block = snapshot.blocks[index_of(id)];
    num_wasted += kBlockSize - block.filled - block.reserved;
  }
  return num_wasted;
}

TEST(RealModel, WastesAtMostThreeSlotsASequenceWithBlocksOfFour) {
  OCTAVO_NEEDS_DEFAULT_MODEL();
  int num_looked_at = 0;
  int most_wasted = 0;
  for (const KvSnapshot& snapshot : paged_run().snapshots) {
    for (const SequenceSnapshot& sequence : snapshot.sequences) {
      if (sequence.state != SequenceState::kRunning) continue;
      ++num_looked_at;
      most_wasted = std::max(most_wasted, num_wasted_slots(sequence, snapshot));
      EXPECT_LE(num_wasted_slots(sequence, snapshot), kBlockSize - 1)
          << "step " << snapshot.step << ", sequence " << sequence.sequence_id.value;
    }
  }
  EXPECT_GT(num_looked_at, 100);
  EXPECT_EQ(most_wasted, kBlockSize - 1) << "a sequence with one token in its last block";
}

}  // namespace
}  // namespace octavo::paper
