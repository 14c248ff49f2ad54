// What is done while a model loads is not left for later: steps of any rows and draws start no kernel for the
// first time, which would load its code, ask the library for no algorithm, and allocate nothing.
#include <gtest/gtest.h>

#include <random>
#include <string>

#include "tests/cuda/device_runner.h"

namespace octavo {
namespace {

using kernels::TensorType;
using runner::DirectSequence;

constexpr std::int32_t kBlockSize = 16, kMostSequences = 8, kMostRows = 160;

EngineOptions options_of_steps() {
  EngineOptions options;
  options.max_model_len = kBlockSize * kBlocksOfSequence;
  options.max_num_batched_tokens = kMostRows;
  options.max_num_seqs = kMostSequences;
  options.block_size = kBlockSize;
  options.num_kv_blocks = kMostSequences * kBlocksOfSequence;
  return options;
}

// Each way of drawing, on the device and by the host.
SamplingParams random_sampling(std::mt19937_64& random) {
  const std::vector<SamplingParams> ways = {{.temperature = 0.0},
                                            {},
                                            {.top_p = 0.9},
                                            {.top_k = 12},
                                            {.min_p = 0.05},
                                            {.temperature = 1.1, .top_p = 0.95, .top_k = 40, .min_p = 0.01},
                                            {.repetition_penalty = 1.2},
                                            {.temperature = 0.0, .logit_bias = {{7, 2.0}}},
                                            {.logprobs = 2},
                                            {.prompt_logprobs = 1}};
  return ways[random() % ways.size()];
}

// Decodes, chunks of prompts with and without contexts before, ends of prompts with several draws; in between
// blocks are copied.
void run_random_step(runner::ModelRunner& model, std::mt19937_64& random) {
  std::vector<DirectSequence> sequences;
  const std::size_t count = 1 + random() % kMostSequences;
  const bool are_decodes = random() % 2 == 0;
  std::string text;
  std::size_t left = kMostRows - count;
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t num_rows =
        are_decodes || random() % 3 == 0 ? 1 : 1 + random() % std::min<std::size_t>(left, 100);
    left -= num_rows - 1;
    const std::size_t num_before = random() % 3 == 0 ? 0 : random() % 350;
    sequences.push_back(made_up_sequence(i, num_before + num_rows, num_rows, random_sampling(random)));
    text += std::to_string(num_rows) + " rows after " + std::to_string(num_before) + ", ";
    if (left == 0) break;
  }
  SCOPED_TRACE(text);
  scheduler::SchedulerOutput step;
  for (const DirectSequence& sequence : sequences) {
    const std::size_t num_rows = sequence.token_ids.size() - sequence.num_computed_tokens;
    step.sequences.push_back(runner::scheduled(sequence, num_rows, 1 + random() % 2));
  }
  if (random() % 4 == 0) step.block_copies.push_back({.source = {5}, .target = {6}});
  const std::int64_t loaded = emulation::num_loaded_kernels(), allocations = emulation::num_allocations();
  runner::execute(model, step);
  EXPECT_EQ(emulation::num_loaded_kernels(), loaded);
  EXPECT_EQ(emulation::num_allocations(), allocations);
}

class FirstSteps : public ::testing::Test {
 protected:
  void SetUp() override { emulation::settings().finds_races = false; }
};

void expect_nothing_is_left(TensorType type) {
  using emulation::LibraryCall;
  std::int64_t num_choices = 0;
  emulation::settings().library_answers = [&](const LibraryCall& call) {
    num_choices += call.kind == LibraryCall::Kind::kChoose;
    return CUBLAS_STATUS_SUCCESS;
  };
  for (const auto& [graphs, deterministic] : {std::pair(true, false), {false, false}, {false, true}}) {
    SCOPED_TRACE(std::string(graphs ? "graphs" : "no graphs") + (deterministic ? ", deterministic" : ""));
    emulation::unload_kernels();
    const auto model =
        load_on_device(type, 1, options_of_steps(), {.deterministic = deterministic, .graphs = graphs});
    EXPECT_GT(emulation::num_loaded_kernels(), 15);
    std::mt19937_64 random(7);
    const std::int64_t num_chosen = num_choices;
    EXPECT_EQ(num_chosen > 0, !deterministic);
    for (int i = 0; i < 25 && !::testing::Test::HasFailure(); ++i) run_random_step(*model, random);
    EXPECT_EQ(num_choices, num_chosen);
    num_choices = 0;
  }
  emulation::settings().library_answers = {};
}

TEST_F(FirstSteps, OfQuantisedWeightsLeaveNothingToLoadOrAllocate) {
  expect_nothing_is_left(TensorType::kQ4_1);
}
TEST_F(FirstSteps, OfHalfWeightsLeaveNothingToLoadOrAllocate) { expect_nothing_is_left(TensorType::kF16); }

}  // namespace
}  // namespace octavo
