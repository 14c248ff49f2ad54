// Steps of a runner on the emulated device: the same tokens and log-probabilities with graphs and without,
// whatever is drawn where.
#include <gtest/gtest.h>

#include <vector>

#include "tests/cuda/device_runner.h"

namespace octavo {
namespace {

using kernels::TensorType;
using runner::DirectSequence;
using runner::SampledToken;

constexpr std::size_t kSequences = 8, kDecodes = 6;

// Prompts, then decodes; the sequences end one after the other, so that steps are filled up.
std::vector<SampledToken> tokens_of_steps(runner::ModelRunner& model,
                                          const std::vector<SamplingParams>& ways) {
  std::vector<DirectSequence> sequences;
  for (std::size_t i = 0; i < kSequences; ++i) {
    sequences.push_back(made_up_sequence(i, 3 + 2 * i, 3 + 2 * i, ways[i % ways.size()]));
    sequences.back().seed = 40 + i;
  }
  std::vector<SampledToken> tokens;
  for (std::size_t decode = 0; decode <= kDecodes; ++decode) {
    const std::size_t count = kSequences - decode;
    scheduler::SchedulerOutput step;
    for (std::size_t i = 0; i < count; ++i)
      step.sequences.push_back(
          runner::scheduled(sequences[i], sequences[i].token_ids.size() - sequences[i].num_computed_tokens));
    const runner::RunnerOutput output = runner::execute(model, step);
    EXPECT_EQ(output.tokens.size(), count);
    for (std::size_t i = 0; i < count; ++i) {
      sequences[i].num_computed_tokens = sequences[i].token_ids.size();
      sequences[i].token_ids.push_back(output.tokens[i].token_id);
      tokens.push_back(output.tokens[i]);
    }
  }
  return tokens;
}

class RunnerDraws : public ::testing::Test {
 protected:
  void SetUp() override { emulation::settings().finds_races = false; }
};

TEST_F(RunnerDraws, AreTheSameWithAndWithoutGraphs) {
  const std::vector<std::vector<SamplingParams>> batches = {
      {{.temperature = 0.0}},
      {{}, {.top_p = 0.9}, {.temperature = 0.0}, {.top_k = 12}, {.min_p = 0.05}},
      {{.temperature = 0.0}, {.top_p = 0.9, .repetition_penalty = 1.2}},
      {{.temperature = 0.0, .logprobs = 2}, {}}};
  for (const auto& [type, deterministic] : {std::pair(TensorType::kQ4_1, false), {TensorType::kF16, true}}) {
    const auto recorded = load_on_device(type, 1, options_for(kSequences), {.deterministic = deterministic}),
               started = load_on_device(type, 1, options_for(kSequences),
                                        {.deterministic = deterministic, .graphs = false});
    for (std::size_t batch = 0; batch < batches.size(); ++batch) {
      SCOPED_TRACE(std::string(kernels::traits_of(type).name) + (deterministic ? ", deterministic" : "") +
                   ", batch " + std::to_string(batch));
      const std::int64_t graphs = emulation::num_graph_launches();
      // The prompts' step, too, but for its layers where all is deterministic. Nothing is adjusted but in
      // one.
      const std::size_t num_of_layers = kDecodes + (deterministic ? 0 : 1),
                        num_of_draws = batch == 2 ? 0 : kDecodes + 1;
      const std::vector<SampledToken> got = tokens_of_steps(*recorded, batches[batch]);
      EXPECT_EQ(emulation::num_graph_launches() - graphs,
                static_cast<std::int64_t>(num_of_layers + num_of_draws));
      const std::vector<SampledToken> expected = tokens_of_steps(*started, batches[batch]);
      ASSERT_EQ(got.size(), expected.size());
      for (std::size_t i = 0; i < got.size(); ++i) {
        EXPECT_GE(got[i].token_id, 0);
        EXPECT_EQ(got[i].token_id, expected[i].token_id) << i;
        EXPECT_EQ(got[i].logprob, expected[i].logprob) << i;
      }
    }
  }
}

}  // namespace
}  // namespace octavo
