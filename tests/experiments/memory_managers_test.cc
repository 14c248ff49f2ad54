// Figures 2 and 13a of the paper on the real scheduler and block manager: how much of KV memory holds tokens,
// and how many requests that lets run together.

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>

#include "engine/experiments/saturated_queue.h"
#include "tests/experiments/experiment_data.h"
#include "tests/experiments/published.h"
#include "tests/experiments/table.h"

namespace octavo::paper {
namespace {

const std::string kMemorySection = "KV memory that holds tokens (983 x 16 slots, ShareGPT)";
const std::string kBatchSection = "Batched requests";
const std::string kPreemptionSection = "Preemptions a request";
const std::string kBlockSizeSection = "Tokens held, by block size";
const std::string kBlockSizeBatchSection = "Batched requests, by block size";

void print(const ManagerRow& row, const SteadyState& ours) {
  const std::string name(row.name);
  const ManagerFigures& paper = row.paper;
  const ManagerFigures& simulation = row.simulation;
  const MemoryMap& memory = ours.memory;
  print_at_end({kMemorySection, name, paper.tokens, simulation.tokens, memory.tokens_held()});
  print_at_end({kMemorySection, name + ": of these, prompt", {}, {}, memory.input});
  print_at_end({kMemorySection, name + ": reserved", paper.reserved, simulation.reserved, memory.reserved});
  print_at_end({kMemorySection, name + ": never used", paper.internal, simulation.internal, memory.internal});
  print_at_end(
      {kMemorySection, name + ": unreserved", paper.unreserved, simulation.unreserved, memory.unreserved});
  print_at_end(
      {kBatchSection, name, paper.batched_requests, simulation.batched_requests, ours.batched_requests, ""});
}

TEST(ContiguousManagers, HoldAndBatchWhatThePaperStates) {
  for (const ManagerRow& row : kManagers) {
    SCOPED_TRACE(row.name);
    const SteadyState ours = run_saturated(
        {.options = paper_pool(row.manager), .num_measured_steps = 400'000}, sharegpt_lengths());
    print(row, ours);
    const MemoryMap& memory = ours.memory;
    EXPECT_NEAR(memory.tokens_held(), row.paper.tokens, 3.0);
    EXPECT_NEAR(memory.reserved, row.paper.reserved, 3.0);
    EXPECT_NEAR(memory.internal, row.paper.internal, 3.0);
    EXPECT_NEAR(memory.unreserved, row.paper.unreserved, 4.0);
    EXPECT_NEAR(memory.tokens_held(), row.simulation.tokens, 0.5);
    EXPECT_NEAR(memory.reserved, row.simulation.reserved, 0.5);
    EXPECT_NEAR(memory.internal, row.simulation.internal, 0.5);
    EXPECT_NEAR(memory.unreserved, row.simulation.unreserved, 0.5);
    EXPECT_GE(100.0 - memory.tokens_held(), 60.0) << "wasted";
    EXPECT_LE(100.0 - memory.tokens_held(), 80.0) << "wasted";
    EXPECT_NEAR(ours.batched_requests, row.simulation.batched_requests,
                0.10 * row.simulation.batched_requests);
    EXPECT_NEAR(ours.batched_requests, row.paper.batched_requests, 0.10 * row.paper.batched_requests);
    EXPECT_EQ(ours.preemptions_per_request, 0.0) << "what is reserved to the end is never taken away";
  }
}

TEST(ContiguousManagers, MaxAlwaysRunsAsManyRequestsAsLongestChunksFit) {
  const SteadyState ours = run_saturated(
      {.options = paper_pool(MemoryManager::kOrcaMax), .num_measured_steps = 5'000}, sharegpt_lengths());
  EXPECT_EQ(ours.batched_requests, kPaperSlots / kMaxModelLen);
}

// Starts leave 1 % of the pool free, and nothing else.
const SteadyState& paged_by_the_papers_rule(std::int32_t block_size) {
  static std::map<std::int32_t, SteadyState> known;
  const auto [entry, is_new] = known.try_emplace(block_size);
  if (is_new) {
    scheduler::SchedulerOptions options = paper_pool(MemoryManager::kPaged, block_size);
    options.admission_reserve = AdmissionReserve::kOnePercent;
    entry->second = run_saturated({.options = options, .num_measured_steps = 100'000}, sharegpt_lengths());
  }
  return entry->second;
}

TEST(PagedManager, WastesLessThanFourPercent) {
  const SteadyState& ours = paged_by_the_papers_rule(16);
  const BlockSizeRow& simulation = *std::ranges::find(kBlockSizes, 16, &BlockSizeRow::block_size);
  const MemoryMap& memory = ours.memory;
  print_at_end(
      {kMemorySection, "paged, block size 16", kPaperPagedTokens, simulation.tokens, memory.tokens_held()});
  print_at_end({kMemorySection, "paged: of these, prompt", {}, {}, memory.input});
  print_at_end({kMemorySection, "paged: ends of blocks", {}, {}, memory.internal});
  print_at_end({kMemorySection, "paged: free", {}, {}, memory.unreserved});
  print_at_end({kBatchSection, "paged, block size 16", kPaperPagedBatched, simulation.batched_requests,
                ours.batched_requests, ""});
  EXPECT_GE(memory.tokens_held(), 96.0);
  EXPECT_EQ(memory.reserved, 0.0);
  EXPECT_NEAR(ours.batched_requests, kPaperPagedBatched, 0.10 * kPaperPagedBatched);
}

SteadyState paged_with(AdmissionReserve reserve, bool tells_lengths, const std::string& name) {
  scheduler::SchedulerOptions options = paper_pool(MemoryManager::kPaged);
  options.admission_reserve = reserve;
  const SteadyState state =
      run_saturated({.options = options, .tells_lengths = tells_lengths, .num_measured_steps = 100'000},
                    sharegpt_lengths());
  print_at_end({kMemorySection, "paged, " + name, {}, {}, state.memory.tokens_held()});
  print_at_end({kPreemptionSection, "paged, " + name, {}, {}, state.preemptions_per_request, ""});
  return state;
}

// A look ahead leaves what will be taken, and nobody gives way for what is about to come back.
TEST(PagedManager, WastesLessThanFourPercentByDefaultWithoutMorePreemptionsThanABlockForEachSequenceBrings) {
  const SteadyState& papers = paged_by_the_papers_rule(16);
  print_at_end({kPreemptionSection,
                "paged, the paper's rule of admission",
                {},
                {},
                papers.preemptions_per_request,
                ""});
  const SteadyState ours =
      paged_with(paper_pool(MemoryManager::kPaged).admission_reserve, true, "our rule of admission");
  const SteadyState blocks =
      paged_with(AdmissionReserve::kBlockPerSequence, true, "a block for each sequence");
  EXPECT_GE(ours.memory.tokens_held(), 96.0);
  EXPECT_LE(ours.preemptions_per_request, blocks.preemptions_per_request);
  EXPECT_GE(ours.memory.tokens_held(), blocks.memory.tokens_held() + 1.0);
  EXPECT_LE(ours.preemptions_per_request, papers.preemptions_per_request / 2.0);
}

TEST(PagedManager, HoldsAsMuchAsWithABlockForEachSequenceWhereLengthsAreNotTold) {
  const SteadyState ours = paged_with(AdmissionReserve::kLookAhead, false, "our rule, lengths not told");
  EXPECT_GE(ours.memory.tokens_held(), 94.5);
  EXPECT_LE(ours.preemptions_per_request, paged_by_the_papers_rule(16).preemptions_per_request / 2.0);
}

TEST(PagedManager, HoldsByBlockSizeWhatTheSimulationSays) {
  for (const BlockSizeRow& simulation : kBlockSizes) {
    const std::string name = "block size " + std::to_string(simulation.block_size);
    SCOPED_TRACE(name);
    const SteadyState& ours = paged_by_the_papers_rule(simulation.block_size);
    print_at_end({kBlockSizeSection, name, {}, simulation.tokens, ours.memory.tokens_held()});
    print_at_end({kBlockSizeBatchSection, name, {}, simulation.batched_requests, ours.batched_requests, ""});
    EXPECT_NEAR(ours.memory.tokens_held(), simulation.tokens, 0.5);
    EXPECT_NEAR(ours.batched_requests, simulation.batched_requests, 0.10 * simulation.batched_requests);
  }
}

}  // namespace
}  // namespace octavo::paper
