// Which experts tokens chose: told while somebody asks, by a real engine on tiny models, and no token
// changes.
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "tests/engine/default_model.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/tiny_models.h"

namespace octavo {
namespace {

std::unique_ptr<Engine> open_tiny(const test::TemporaryFolder& folder, const std::string& name) {
  const auto path = folder / "model.gguf";
  test::make_tiny_model(test::tiny_model(name), {.context_length = 256}).write(path);
  auto engine = Engine::create({.model = path.string(), .max_num_batched_tokens = 16});
  if (!engine) ADD_FAILURE() << engine.error().message;
  return engine ? *std::move(engine) : nullptr;
}

std::vector<GenerationRequest> some_requests() {
  const SamplingParams sampling{.temperature = 0.8, .seed = 3, .max_tokens = 12, .ignore_eos = true};
  std::vector<GenerationRequest> requests;
  requests.push_back(text_request("abc abc abc abc abc abc abc", sampling));
  requests.push_back(text_request("b a b a", sampling));
  return requests;
}

TEST(ExpertChoices, EachTokenOfAStepHasItsChoicesInEveryLayer) {
  for (const char* const name : {"qwen3moe", "qwen35moe", "glm4moe", "olmoe", "phimoe"}) {
    SCOPED_TRACE(name);
    const test::TemporaryFolder folder;
    const auto engine = open_tiny(folder, name);
    ASSERT_NE(engine, nullptr);
    const auto unasked = run_together(*engine, some_requests());
    EXPECT_TRUE(engine->take_expert_choices().empty()) << "nobody asked yet";
    engine->reset_prefix_cache();
    const auto asked = run_together(*engine, some_requests());
    ASSERT_EQ(asked.size(), unasked.size());
    for (std::size_t i = 0; i < asked.size(); ++i)
      EXPECT_EQ(asked[i].outputs[0].token_ids, unasked[i].outputs[0].token_ids);

    const ModelDescription& model = engine->description().model;
    const std::vector<ExpertChoices> steps = engine->take_expert_choices();
    ASSERT_FALSE(steps.empty());
    std::int64_t num_rows = 0;
    std::set<RequestId> requests;
    for (const ExpertChoices& step : steps) {
      EXPECT_EQ(step.num_experts, model.num_experts);
      EXPECT_EQ(step.num_used, model.num_used_experts);
      ASSERT_FALSE(step.layers.empty());
      std::int64_t rows_of_step = 0;
      for (const ExpertChoices::Rows& rows : step.rows) {
        rows_of_step += rows.num_rows;
        requests.insert(rows.request_id);
      }
      num_rows += rows_of_step;
      ASSERT_EQ(std::ssize(step.chosen), std::ssize(step.layers) * rows_of_step * step.num_used);
      for (std::size_t i = 0; i < step.chosen.size(); i += static_cast<std::size_t>(step.num_used)) {
        const auto begin = step.chosen.begin() + static_cast<std::ptrdiff_t>(i);
        const std::set<std::int32_t> experts(begin, begin + step.num_used);
        EXPECT_EQ(std::ssize(experts), step.num_used) << "a token chooses an expert once";
        EXPECT_GE(*experts.begin(), 0);
        EXPECT_LT(*experts.rbegin(), step.num_experts);
      }
    }
    std::int64_t expected = 0;  // the last token of an answer is never computed
    for (const RequestOutput& output : asked)
      expected += output.prompt_token_ids.size() + output.outputs[0].token_ids.size() - 1;
    EXPECT_EQ(num_rows, expected);
    EXPECT_EQ(requests.size(), 2u);
  }
}

TEST(ExpertChoices, WhoStopsAskingIsToldNoMore) {
  const test::TemporaryFolder folder;
  const auto engine = open_tiny(folder, "qwen3moe");
  ASSERT_NE(engine, nullptr);
  engine->take_expert_choices();
  const SamplingParams sampling{.max_tokens = 100, .ignore_eos = true};
  run_alone(*engine, text_request("abc", sampling));
  const std::vector<ExpertChoices> steps = engine->take_expert_choices();
  EXPECT_EQ(steps.size(), Engine::kMostStepsUnasked) << "what nobody looks at is not gathered";
  run_alone(*engine, text_request("abcd", {.max_tokens = 4, .ignore_eos = true}));
  EXPECT_EQ(engine->take_expert_choices().size(), 4u) << "asking began it again";
}

TEST(ExpertChoices, AModelWithoutExpertsTellsNothing) {
  const test::TemporaryFolder folder;
  const auto engine = open_tiny(folder, "qwen3");
  ASSERT_NE(engine, nullptr);
  engine->take_expert_choices();
  run_alone(*engine, text_request("abc abc", {.max_tokens = 4}));
  EXPECT_TRUE(engine->take_expert_choices().empty());
}

}  // namespace
}  // namespace octavo
