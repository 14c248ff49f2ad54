// The share of the work that a person at a terminal sees.

#include "app/commands/generation_progress.h"

#include <gtest/gtest.h>

#include <vector>

namespace octavo::app {
namespace {

constexpr RequestId kFirst{1}, kSecond{2};
using Counts = GenerationProgress::Counts;

RequestAccepted accepted(RequestId id, std::size_t num_tokens) {
  return {id, std::vector<TokenId>(num_tokens, 7), 0};
}
TokensGenerated generated(RequestId id, std::size_t num_tokens) {
  return {.request_id = id, .token_ids = std::vector<TokenId>(num_tokens, 7)};
}

TEST(GenerationProgress, IsUnknownUntilEveryPromptHasALength) {
  GenerationProgress progress(Counts::kPrompts);
  progress.expect(kFirst, {});
  progress.expect(kSecond, {});
  progress.add(accepted(kFirst, 30));
  EXPECT_FALSE(progress.fraction());
  progress.add(RequestFailed{kSecond, {}, {}});
  EXPECT_DOUBLE_EQ(progress.fraction().value(), 0.0) << "a refused request is no work";
}

TEST(GenerationProgress, OfAPromptIsWhatIsComputed) {
  GenerationProgress progress(Counts::kPrompts);
  progress.expect(kFirst, {.max_tokens = 100});
  progress.add(accepted(kFirst, 80));
  progress.add(PromptProgress{.request_id = kFirst, .num_prompt_tokens = 80, .num_computed_tokens = 20});
  EXPECT_DOUBLE_EQ(progress.fraction().value(), 0.25);
  progress.add(PromptProgress{.request_id = kSecond, .num_prompt_tokens = 80, .num_computed_tokens = 60});
  EXPECT_DOUBLE_EQ(progress.fraction().value(), 0.25) << "nobody asked for that request";
  progress.add(generated(kFirst, 1));
  EXPECT_DOUBLE_EQ(progress.fraction().value(), 1.0);
}

TEST(GenerationProgress, CountsEveryOutputAndWhatEndsEarlyAsDone) {
  GenerationProgress progress(Counts::kPromptsAndOutputs);
  progress.expect(kFirst, {.n = 2, .max_tokens = 20});  // 10 + 40
  progress.expect(kSecond, {.max_tokens = 40});         // 10 + 40
  progress.add(accepted(kFirst, 10));
  progress.add(accepted(kSecond, 10));
  progress.add(generated(kFirst, 5));
  EXPECT_DOUBLE_EQ(progress.fraction().value(), 0.15);
  progress.add(RequestFinished{kFirst, {}, {}});
  EXPECT_DOUBLE_EQ(progress.fraction().value(), 0.5);
  progress.add(generated(kSecond, 1'000));
  EXPECT_DOUBLE_EQ(progress.fraction().value(), 1.0);
}

TEST(GenerationProgress, ABeamSearchStepsWithAllOfItsBeams) {
  GenerationProgress progress(Counts::kPromptsAndOutputs);
  progress.expect(kFirst, {.max_tokens = 10, .beam_width = 4});
  progress.add(accepted(kFirst, 10));
  progress.add(BeamsAdvanced{kFirst, std::vector<BeamStep>(5)});
  EXPECT_DOUBLE_EQ(progress.fraction().value(), 0.6);
}

}  // namespace
}  // namespace octavo::app
