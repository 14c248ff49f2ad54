// Steps that are begun before it is known what the one before draws: the same tokens and log-probabilities as
// step by step, though the device itself finds the tokens of their rows.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "tests/cuda/device_runner.h"

namespace octavo {
namespace {

using kernels::TensorType;
using runner::DirectSequence;
using runner::RunnerOutput;
using runner::SampledToken;
using scheduler::SchedulerOutput;

constexpr std::size_t kSequences = 5, kSteps = 8;

std::vector<DirectSequence> made_up_sequences(const std::vector<SamplingParams>& ways) {
  std::vector<DirectSequence> sequences;
  for (std::size_t i = 0; i < kSequences; ++i) {
    sequences.push_back(made_up_sequence(i, 13 + 2 * i, 13 + 2 * i, ways[i % ways.size()]));
    sequences.back().seed = 40 + i;
  }
  return sequences;
}

SchedulerOutput step_of(const std::vector<DirectSequence>& sequences) {
  SchedulerOutput step;
  for (const DirectSequence& one : sequences)
    step.sequences.push_back(runner::scheduled(one, one.token_ids.size() - one.num_computed_tokens));
  return step;
}

// The step behind one that computes all that is known of these.
SchedulerOutput step_behind(const std::vector<DirectSequence>& sequences) {
  SchedulerOutput step;
  for (const DirectSequence& one : sequences) {
    scheduler::ScheduledSequence& row = step.sequences.emplace_back();
    row.sequence_id = one.sequence_id;
    row.sampling = &one.sampling;
    row.start_position = static_cast<std::int32_t>(one.token_ids.size());
    row.token_ids = std::span(&scheduler::kNotDrawnYet, 1);
    row.block_table = one.block_table;
    row.samples.push_back({.sequence_id = one.sequence_id,
                           .seed = one.seed,
                           .output_token_ids = one.output(),
                           .follows_unknown = true});
  }
  return step;
}

void append(std::vector<DirectSequence>& sequences, const RunnerOutput& output,
            std::vector<std::vector<SampledToken>>& tokens) {
  ASSERT_EQ(output.tokens.size(), sequences.size());
  for (std::size_t i = 0; i < sequences.size(); ++i) {
    EXPECT_EQ(output.tokens[i].sequence_id, sequences[i].sequence_id);
    sequences[i].num_computed_tokens = sequences[i].token_ids.size();
    sequences[i].token_ids.push_back(output.tokens[i].token_id);
    tokens[sequences[i].sequence_id.value].push_back(output.tokens[i]);
  }
}

using Tokens = std::vector<std::vector<SampledToken>>;

Tokens step_by_step(runner::ModelRunner& model, const std::vector<SamplingParams>& ways) {
  std::vector<DirectSequence> sequences = made_up_sequences(ways);
  Tokens tokens(kSequences);
  for (std::size_t i = 0; i < kSteps; ++i)
    append(sequences, runner::execute(model, step_of(sequences)), tokens);
  return tokens;
}

// The second sequence ends in the fourth step, and has a row in the fifth.
Tokens ahead(runner::ModelRunner& model, const std::vector<SamplingParams>& ways) {
  std::vector<DirectSequence> sequences = made_up_sequences(ways);
  Tokens tokens(kSequences);
  SchedulerOutput current = step_of(sequences);
  EXPECT_TRUE(model.begin(current));
  for (std::size_t i = 0; i < kSteps; ++i) {
    const SchedulerOutput next = i + 1 < kSteps ? step_behind(sequences) : SchedulerOutput();
    EXPECT_EQ(model.begin(next), i + 1 < kSteps);
    RunnerOutput output;
    EXPECT_TRUE(model.finish(current, output));
    append(sequences, output, tokens);
    current = next;
    if (i != 3) continue;
    sequences.erase(sequences.begin() + 1);
    current.sequences.erase(current.sequences.begin() + 1);
  }
  return tokens;
}

class StepsAhead : public ::testing::Test {
 protected:
  void SetUp() override { emulation::settings().finds_races = false; }
};

TEST_F(StepsAhead, GiveTheSameTokens) {
  // The model is sure of its tokens: draws differ only if it is made less so.
  const std::vector<std::vector<SamplingParams>> batches = {{{.temperature = 0.0}},
                                                            {{.temperature = 30.0},
                                                             {.temperature = 9.0, .top_p = 0.9},
                                                             {.temperature = 0.0},
                                                             {.temperature = 30.0, .top_k = 12},
                                                             {.temperature = 30.0, .min_p = 0.05}}};
  for (const bool graphs : {true, false}) {
    using enum emulation::StreamOrder;
    emulation::settings().stream_order = graphs ? kWhenNeeded : kAtOnce;
    const auto model = load_on_device(TensorType::kQ4_1, 2, options_for(kSequences),
                                      {.deterministic = true, .graphs = graphs});
    for (std::size_t batch = 0; batch < batches.size(); ++batch) {
      SCOPED_TRACE("batch " + std::to_string(batch) + (graphs ? ", with graphs" : ""));
      const Tokens got = ahead(*model, batches[batch]), expected = step_by_step(*model, batches[batch]);
      for (std::size_t i = 0; i < kSequences; ++i) {
        ASSERT_EQ(got[i].size(), i == 1 ? 4u : kSteps);
        for (std::size_t t = 0; t < got[i].size(); ++t) {
          EXPECT_EQ(got[i][t].token_id, expected[i][t].token_id) << i << " at " << t;
          EXPECT_EQ(got[i][t].logprob, expected[i][t].logprob) << i << " at " << t;
        }
      }
    }
  }
}

TEST_F(StepsAhead, AreNotBegunWhereMoreThanTokensIsAsked) {
  const auto model = load_on_device(TensorType::kQ4_1, 1, options_for(kSequences), {});
  const std::vector<SamplingParams> ways = {{.logprobs = 2},
                                            {.prompt_logprobs = 0},
                                            {.repetition_penalty = 1.2},
                                            {.logit_bias = {{3, 1.0f}}},
                                            {.min_tokens = 4}};
  for (const SamplingParams& way : ways) EXPECT_FALSE(model->begin(step_of(made_up_sequences({{}, way}))));
  const std::vector<DirectSequence> sequences = made_up_sequences({{}});
  SchedulerOutput step = step_of(sequences);
  step.sequences.back().samples.push_back(step.sequences.back().samples.front());
  EXPECT_FALSE(model->begin(step));
}

}  // namespace
}  // namespace octavo
