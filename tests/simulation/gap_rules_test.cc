#include "tests/simulation/gap_rules.h"

#include <gtest/gtest.h>

#include <optional>
#include <utility>
#include <vector>

namespace octavo::simulation {
namespace {

constexpr RequestId kRequest{1};

// Of a row of the simulated device at the start of a prompt, in us; and of the target of a step.
constexpr double kRow = 100.0, kTarget = 1000.0;

class GapRulesTest : public ::testing::Test {
 protected:
  GapRulesTest() : rules_(script_, problem_) {}

  // Steps in which the outputs 0 to `num_outputs` - 1 have a token each, beside prompts: until the engine
  // knows what these take.
  void learn(std::int32_t num_outputs) {
    for (int count = 0; count < 25; ++count) step(beside_prompts(kTarget), tokens_of(0, num_outputs));
    ASSERT_EQ(problem_.first(), std::nullopt);
  }

  static SimulatedRunner::Timing beside_prompts(double us) {
    return {.us = us, .num_rows = 10, .us_of_decodes = kRow, .us_of_costliest_row = kRow};
  }

  static std::vector<EngineEvent> tokens_of(std::int32_t first_output, std::int32_t end_output) {
    std::vector<EngineEvent> events;
    for (std::int32_t index = first_output; index < end_output; ++index) {
      TokensGenerated tokens;
      tokens.request_id = kRequest;
      tokens.output_index = index;
      events.push_back(std::move(tokens));
    }
    return events;
  }

  void step(const SimulatedRunner::Timing& timing, const std::vector<EngineEvent>& events) {
    rules_.check(
        StepView{.before = nothing_, .after = nothing_, .events = events, .block_events = {}, .drafted = {}},
        timing);
  }

  static Script with_target() {
    Script script;
    script.options.target_step_us = static_cast<std::int32_t>(kTarget);
    script.options.max_num_batched_tokens = 64;
    return script;
  }

  const Script script_ = with_target();
  const KvSnapshot nothing_;
  Problem problem_;
  GapRules rules_;
};

TEST_F(GapRulesTest, AStepFarBeyondTheTargetIsAProblem) {
  learn(1);
  step(beside_prompts(1.4 * kTarget), tokens_of(0, 1));
  EXPECT_EQ(problem_.first(), std::nullopt);
  step(beside_prompts(1.6 * kTarget), tokens_of(0, 1));
  EXPECT_TRUE(problem_.exists());
}

TEST_F(GapRulesTest, TwoStepsForOneTokenAreAProblem) {
  learn(1);
  step(beside_prompts(kTarget), {});
  step(beside_prompts(kTarget), tokens_of(0, 1));
  EXPECT_TRUE(problem_.exists());
}

// Four were preempted, three came back together, and the last when they had ended: it computes what it lost
// alone, with as many rows as there are.
TEST_F(GapRulesTest, AnOutputThatCameBackByItselfKeptNobodyWaiting) {
  learn(4);
  step(beside_prompts(kTarget), {RequestPreempted{.request_id = kRequest}});
  std::vector<EngineEvent> last_tokens = tokens_of(0, 3);
  for (std::int32_t index = 0; index < 3; ++index)
    last_tokens.push_back(OutputFinished{.request_id = kRequest, .output_index = index});
  step(beside_prompts(kTarget), tokens_of(0, 3));
  step(beside_prompts(kTarget), last_tokens);
  step(beside_prompts(3.0 * kTarget), tokens_of(3, 4));
  EXPECT_EQ(problem_.first(), std::nullopt);
  step(beside_prompts(1.6 * kTarget), tokens_of(3, 4));
  EXPECT_TRUE(problem_.exists()) << "now it is extended";
}

TEST_F(GapRulesTest, WhoGoesOnBesideAPausedOutputIsHeldToTheTarget) {
  learn(2);
  step(beside_prompts(kTarget), {RequestPreempted{.request_id = kRequest, .first_output_index = 1}});
  step(beside_prompts(kTarget), tokens_of(0, 1));
  EXPECT_TRUE(problem_.exists()) << "two steps for a token of the first";
}

TEST_F(GapRulesTest, ADraftIsNoReasonForALongerStepBesideAPrompt) {
  learn(1);
  SimulatedRunner::Timing timing = beside_prompts(1.6 * kTarget);
  timing.us_of_drafts = 0.9 * kTarget;
  step(timing, tokens_of(0, 1));
  EXPECT_TRUE(problem_.exists());
}

TEST_F(GapRulesTest, WhoWasCancelledHadNoPartInTheStep) {
  learn(1);
  std::vector<EngineEvent> events = tokens_of(0, 1);
  events.push_back(OutputFinished{.request_id = kRequest, .finish_reason = FinishReason::kAbort});
  step(beside_prompts(3.0 * kTarget), events);
  EXPECT_EQ(problem_.first(), std::nullopt);
}

// Of a group that is larger than a step.
TEST_F(GapRulesTest, OutputsThatTakeTurnsWaitForEachOther) {
  learn(1);
  const SimulatedRunner::Timing full = {.us = 2.0 * kTarget, .num_rows = 64, .us_of_decodes = 2.0 * kTarget};
  step(full, {});
  step(full, {});
  step(beside_prompts(kTarget), tokens_of(0, 1));
  EXPECT_EQ(problem_.first(), std::nullopt);
}

}  // namespace
}  // namespace octavo::simulation
