// A comparison on the real engine with the default model: skipped when its file is not there.

#include <imgui.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "tests/engine/default_model.h"
#include "tests/ui/window_fixture.h"

namespace octavo::testing {
namespace {

class RealEngineComparison : public WindowTest {
 protected:
  void open_model() {
    if (IsSkipped()) return;
    OCTAVO_NEEDS_DEFAULT_MODEL();
    open_with(Engine::create, model::default_model_path().string(), test_settings());
    ASSERT_EQ(state().model.phase, ui::ModelPhase::kReady) << state().model.problem;
  }
  void ask(ui::ComparisonKind kind, std::int32_t count, std::int32_t max_tokens) {
    auto& controller = application_->controller();
    controller.apply(
        ui::actions::TypeComparison{"Write a short story about a lighthouse keeper who counts the ships that "
                                    "pass, and say which of them came back in "
                                    "the end."});
    ui::ComparisonSetup setup = state().comparison.setup;
    setup.kind = kind;
    setup.num_samples = count;
    setup.beam_width = count;
    setup.sampling.temperature = 1.0;
    setup.sampling.max_tokens = max_tokens;
    controller.apply(ui::actions::ChangeComparison{setup});
    controller.apply(ui::actions::RunComparison{});
  }
  std::vector<std::string> texts() const {
    std::vector<std::string> result;
    for (const auto& column : state().comparison.columns) result.push_back(column.text);
    return result;
  }
};

TEST_F(RealEngineComparison, EightSamplesShareTheBlocksOfThePromptAndRunAgainGivesTheSameText) {
  open_model();
  if (IsSkipped()) return;
  ask(ui::ComparisonKind::kSamples, 8, 48);
  bool counted = false;
  ASSERT_TRUE(loop_until([&] {
    const auto& snapshot = state().memory.snapshot;
    const ui::ComparisonState& comparison = state().comparison;
    if (snapshot != nullptr && comparison.num_prompt_tokens > 0 && snapshot->sequences.size() == 8) {
      // In the engine's own picture: each full block of the prompt stands in all eight tables, and nowhere
      // twice.
      const std::int32_t num_full = comparison.num_prompt_tokens / state().model.block_size;
      std::set<std::int32_t> distinct;
      bool alike = num_full > 0;
      for (const SequenceSnapshot& sequence : snapshot->sequences) {
        alike = alike && sequence.num_tokens > comparison.num_prompt_tokens + 2;
        for (std::int32_t i = 0; alike && i < num_full; ++i) {
          const auto index = static_cast<std::size_t>(i);
          alike = index < sequence.block_table.size() &&
                  sequence.block_table[index] == snapshot->sequences.front().block_table[index];
          if (alike) distinct.insert(sequence.block_table[index].value);
        }
      }
      counted |= alike && distinct.size() == static_cast<std::size_t>(num_full);
    }
    return !comparison.running;
  }));
  EXPECT_TRUE(counted);
  const ui::ComparisonState& first = state().comparison;
  ASSERT_EQ(first.columns.size(), 8u);
  EXPECT_EQ(first.memory.num_tables, 8);
  const std::int32_t num_full = first.num_prompt_tokens / state().model.block_size;
  EXPECT_GE(first.memory.num_shared_blocks, num_full);
  EXPECT_GE(first.memory.saved_bytes, 7 * num_full * state().model.bytes_per_block);
  EXPECT_EQ(first.memory.saved_bytes,
            (first.memory.num_logical_blocks - first.memory.num_blocks) * state().model.bytes_per_block);
  const std::vector<std::string> before = texts();
  EXPECT_GT(std::set<std::string>(before.begin(), before.end()).size(), 1u);
  for (const auto& column : first.columns) {
    ASSERT_FALSE(column.tokens.empty());
    EXPECT_FALSE(column.tokens.front().alternatives.empty());
    EXPECT_LT(column.cumulative_logprob(), 0.0);
  }
  application_->controller().apply(ui::actions::RunComparisonAgain{});
  ASSERT_TRUE(loop_until([&] { return !state().comparison.running; }));
  EXPECT_EQ(texts(), before);
  for (const auto& column : state().comparison.columns) EXPECT_EQ(column.repeats, true) << column.name;
}

TEST_F(RealEngineComparison, BeamsGrowATreeThatEndsInTheAnswersAndAForkGoesOnWithItsAlternative) {
  open_model();
  if (IsSkipped()) return;
  ask(ui::ComparisonKind::kBeams, 4, 16);
  bool lived = false;
  ASSERT_TRUE(loop_until([&] {
    lived |= !state().comparison.beams.live.empty() && state().comparison.columns[0].tokens.size() > 1;
    return !state().comparison.running;
  }));
  EXPECT_TRUE(lived);
  const ui::ComparisonState& comparison = state().comparison;
  ASSERT_EQ(comparison.beams.final.size(), 4u);
  EXPECT_GE(comparison.columns[0].score, comparison.columns[3].score);
  const ui::ComparedColumn& best = comparison.columns[0];
  ASSERT_GT(best.tokens.size(), 4u);
  ASSERT_GT(best.tokens[3].alternatives.size(), 1u);
  const std::size_t other = best.tokens[3].alternatives[0].token_id == best.tokens[3].token_id ? 1 : 0;
  const TokenId wanted = best.tokens[3].alternatives[other].token_id;
  const std::vector<ui::ComparedToken> tokens = best.tokens;
  application_->controller().apply(ui::actions::ForkAtToken{best.id, 3, other});
  ASSERT_TRUE(loop_until([&] { return !state().comparison.running; }));
  const ui::ComparedColumn& fork = state().comparison.columns[1];
  ASSERT_GT(fork.tokens.size(), 4u);
  EXPECT_EQ(fork.tokens[2].token_id, tokens[2].token_id);
  EXPECT_EQ(fork.tokens[3].token_id, wanted);
  EXPECT_FALSE(fork.tokens[4].forced);
}

}  // namespace
}  // namespace octavo::testing
