// A device that is given the next step before this one's draws are known: the same answers, ends and failures
// as one that is waited for.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "tests/engine/core_on_script.h"

namespace octavo {
namespace {

constexpr TokenId kEnd = simulation::ToyTokenizer::kEos;

class StepsAhead : public EngineCoreTest {
 protected:
  StepsAhead() { runner_.run_ahead(); }
  explicit StepsAhead(const scheduler::SchedulerOptions& options) : EngineCoreTest(options) {
    runner_.run_ahead();
  }

  // Until a step is under way that was begun behind the newest which was told.
  void run_until_ahead() {
    for (int i = 0; i < 20 && !runner_.has_begun(); ++i) step();
    ASSERT_TRUE(runner_.has_begun());
  }

  static std::vector<TokenId> tokens(const RequestOutput& answer, std::size_t index = 0) {
    return answer.outputs[index].token_ids;
  }
};

TEST_F(StepsAhead, GiveEachOutputItsTokens) {
  script_ = [](RequestId id, std::size_t position) { return (id.value + position) % 2 == 0 ? kA : kB; };
  submit(TextPrompt{"abc"}, {.max_tokens = 6});
  submit(TextPrompt{"ab"}, {.n = 2, .max_tokens = 4});
  const auto answers = run();
  EXPECT_EQ(tokens(answers[0]), (std::vector<TokenId>{kB, kA, kB, kA, kB, kA}));
  for (std::size_t index = 0; index < 2; ++index)
    EXPECT_EQ(tokens(answers[1], index), (std::vector<TokenId>{kA, kB, kA, kB}));
  EXPECT_GT(runner_.num_rows_ahead(), 6);
  expect_pool_is_whole();
}

TEST_F(StepsAhead, HaveNoRowOfWhatItsNumberOfTokensEnds) {
  submit(TextPrompt{"abc"}, {.max_tokens = 3});
  submit(TokenPrompt{std::vector<TokenId>(94, kB)}, {.max_tokens = 1000});
  submit(TextPrompt{"ab"}, {.n = 2, .max_tokens = 9});
  const auto answers = run();
  EXPECT_EQ(tokens(answers[0]).size(), 3u);
  EXPECT_EQ(tokens(answers[1]).size(), 6u);  // the model's length
  EXPECT_GT(runner_.num_rows_ahead(), 0);
  EXPECT_EQ(runner_.num_drawn_in_vain(), 0);
  EXPECT_EQ(runner_.num_drawn(), 3 + 6 + 2 * 9);
}

TEST_F(StepsAhead, DropTheRowOfWhatATokenEnds) {
  script_ = [](RequestId id, std::size_t position) { return id.value == 1 && position == 4 ? kEnd : kA; };
  submit(TextPrompt{"abc"}, {.max_tokens = 50});
  submit(TextPrompt{"ab"}, {.max_tokens = 12});
  const auto answers = run();
  EXPECT_EQ(answers[0].outputs[0].finish_reason, FinishReason::kStop);
  EXPECT_EQ(answers[0].outputs[0].text, "aaaa");
  EXPECT_EQ(tokens(answers[1]), std::vector<TokenId>(12, kA));
  EXPECT_EQ(runner_.num_drawn_in_vain(), 1);
  expect_pool_is_whole();
}

TEST_F(StepsAhead, EndWithTheLastOutput) {
  script_ = [](RequestId, std::size_t position) { return position == 5 ? kEnd : kA; };
  submit(TextPrompt{"abc"}, {.n = 2, .max_tokens = 50});
  const auto answers = run();  // all rows of the last step are nobody's
  EXPECT_EQ(answers[0].outputs[0].text, "aaaaa");
  EXPECT_EQ(answers[0].outputs[1].text, "aaaaa");
  EXPECT_EQ(runner_.num_drawn_in_vain(), 2);
  EXPECT_FALSE(runner_.has_begun());
  expect_pool_is_whole();
}

TEST_F(StepsAhead, ComeBeforeACommandThatEndsTheirRequests) {
  const RequestId first = submit(TextPrompt{"abc"}, {.max_tokens = 50});
  submit(TextPrompt{"ab"}, {.n = 2, .max_tokens = 9});
  run_until_ahead();
  commands_.push_back(CancelRequest{first});
  commands_.push_back(CancelOutput{RequestId{2}, 1});
  const auto events = step();
  EXPECT_FALSE(runner_.has_begun());
  EXPECT_EQ(std::ranges::count_if(events,
                                  [](const EngineEvent& event) {
                                    const auto* finished = std::get_if<OutputFinished>(&event);
                                    return finished && finished->finish_reason == FinishReason::kAbort;
                                  }),
            2);
  const auto told = std::get<TokensGenerated>(*std::ranges::find_if(
      events, [](const EngineEvent& event) { return std::holds_alternative<TokensGenerated>(event); }));
  EXPECT_EQ(told.request_id, first);  // what was under way is told
  const auto answers = run();
  EXPECT_EQ(tokens(answers[1]), std::vector<TokenId>(9, kA));
  expect_pool_is_whole();
}

TEST_F(StepsAhead, LetANewRequestIn) {
  submit(TextPrompt{"abc"}, {.max_tokens = 20});
  run_until_ahead();
  submit(TextPrompt{"ab"}, {.max_tokens = 5});
  step();
  EXPECT_FALSE(runner_.has_begun());
  const std::int64_t num_before = runner_.num_rows_ahead();
  const auto answers = run();
  EXPECT_EQ(tokens(answers[0]).size(), 20u);
  EXPECT_EQ(tokens(answers[1]).size(), 5u);
  EXPECT_GT(runner_.num_rows_ahead(), num_before + 5);
}

TEST_F(StepsAhead, FailWithTheRequestWhoseLogitsAreInvalidOnly) {
  script_ = [](RequestId id, std::size_t position) { return id.value == 1 && position == 4 ? -1 : kA; };
  submit(TextPrompt{"abc"}, {.n = 2, .max_tokens = 50});
  submit(TextPrompt{"ab"}, {.max_tokens = 12});
  const auto answers = run();
  ASSERT_TRUE(answers[0].error);
  EXPECT_EQ(answers[0].error->code, ErrorCode::kInvalidLogits);
  EXPECT_EQ(tokens(answers[1]), std::vector<TokenId>(12, kA));
  EXPECT_EQ(runner_.num_drawn_in_vain(), 2);
  expect_pool_is_whole();
}

TEST_F(StepsAhead, FailWithTheDevice) {
  for (const bool fails_ahead : {false, true}) {
    SCOPED_TRACE(fails_ahead);
    submit(TextPrompt{"abc"}, {.max_tokens = 50});
    if (fails_ahead) run_until_ahead();
    runner_.fail_next();
    const auto failed = run();
    ASSERT_TRUE(failed.back().error);
    EXPECT_EQ(failed.back().error->code, ErrorCode::kDevice);
    EXPECT_FALSE(runner_.has_begun());
    expect_pool_is_whole();
    submit(TextPrompt{"abc"}, {.max_tokens = 5});
    EXPECT_EQ(tokens(run().back()).size(), 5u);
  }
}

TEST_F(StepsAhead, AreToldBeforeTheEngineStops) {
  submit(TextPrompt{"abc"}, {.max_tokens = 50});
  run_until_ahead();
  const auto events = core_.stop({});
  EXPECT_FALSE(runner_.has_begun());
  ASSERT_EQ(events.size(), 3u);
  EXPECT_TRUE(std::holds_alternative<TokensGenerated>(events[0]));
  EXPECT_EQ(std::get<OutputFinished>(events[1]).finish_reason, FinishReason::kAbort);
  expect_pool_is_whole();
}

// The device has no pause between them, and their records say so.
TEST_F(StepsAhead, BeginWhereTheOneBeforeEnded) {
  submit(TextPrompt{"abc"}, {.max_tokens = 8});
  run();
  const auto steps = core_.recorder()->read_since(0, 0).steps;
  ASSERT_EQ(steps.size(), 8u);
  for (std::size_t i = 2; i < steps.size(); ++i) {
    EXPECT_EQ(steps[i].step, steps[i - 1].step + 1);
    EXPECT_EQ(steps[i].begin_us, steps[i - 1].begin_us + steps[i - 1].schedule_us + steps[i - 1].execute_us);
    EXPECT_EQ(steps[i].schedule_us, 0);
    EXPECT_EQ(steps[i].num_decode_tokens, 1);
  }
}

class StepsAheadInASmallPool : public StepsAhead {
 protected:
  StepsAheadInASmallPool()
      : StepsAhead({.block_size = 4,
                    .num_blocks = 8,
                    .bytes_per_block = 1,
                    .max_num_seqs = 8,
                    .max_num_batched_tokens = 16,
                    .max_model_len = 100,
                    .admission_reserve = AdmissionReserve::kBlockPerSequence}) {}
};

TEST_F(StepsAheadInASmallPool, TakeNoBlockForWhichSomebodyGivesWay) {
  submit(TextPrompt{"abc"}, {.max_tokens = 25});
  submit(TextPrompt{"abcab"}, {.max_tokens = 20});
  const auto answers = run();
  EXPECT_EQ(tokens(answers[0]).size(), 25u);
  EXPECT_EQ(tokens(answers[1]).size(), 20u);
  EXPECT_GT(core_.totals().preempted_recompute + core_.totals().preempted_swap, 0);
  EXPECT_GT(runner_.num_rows_ahead(), 0);
  expect_pool_is_whole();
}

}  // namespace
}  // namespace octavo
