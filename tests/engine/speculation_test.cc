// Several tokens of one output in one step: what is told of them is what is told without drafts.

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "engine/core/engine_core.h"
#include "engine/core/request_intake.h"
#include "engine/output_collector.h"
#include "tests/engine/scripted_runner.h"
#include "tests/engine/toy_tokens.h"

namespace octavo {
namespace {

// A core whose runner says "abcabcabc", unless told otherwise.
class SpeculatingCore {
 public:
  explicit SpeculatingCore(Speculation speculative)
      : core_({.block_size = 4,
               .num_blocks = 64,
               .bytes_per_block = 1,
               .max_num_seqs = 8,
               .max_num_batched_tokens = 16,
               .max_model_len = 100,
               .speculative = speculative},
              {.runner = &runner_, .clock = &clock_, .tokenizer = &tokenizer_}) {}

  RequestOutput answer(Prompt prompt, SamplingParams sampling) {
    const RequestId request_id{++num_submitted_};
    OutputCollector collector;
    collector.expect(request_id, sampling.num_outputs());
    std::vector<EngineCommand> commands;
    commands.push_back(
        intake_.prepare({request_id, {std::move(prompt), std::move(sampling), {}}, clock_.now_us()}));
    do {
      clock_.advance_us(1000);
      for (EngineEvent& event : core_.step(std::exchange(commands, {}))) {
        collector.add(event);
        events_.push_back(std::move(event));
      }
    } while (core_.has_work());
    EXPECT_TRUE(collector.done());
    EXPECT_FALSE(core_.scheduler().broken_invariant());
    EXPECT_EQ(core_.snapshot().figures.used_blocks, 0);
    return collector.take().front();
  }

  // Of all events so far.
  std::vector<TokensGenerated> tokens_generated() const {
    std::vector<TokensGenerated> generated;
    for (const EngineEvent& event : events_) {
      if (const auto* tokens = std::get_if<TokensGenerated>(&event)) generated.push_back(*tokens);
    }
    return generated;
  }

  std::map<std::size_t, TokenId> exceptions_;  // by position; negative: its logits are not finite

  ManualClock clock_;
  const simulation::ToyTokenizer tokenizer_;
  ScriptedRunner runner_{[this](RequestId, std::size_t position) {
    const auto exception = exceptions_.find(position);
    return exception != exceptions_.end() ? exception->second : kA + static_cast<TokenId>(position % 3);
  }};
  EngineCore core_;
  RequestIntake intake_{{.tokenizer = &tokenizer_,
                         .draw_seed = [] { return std::uint64_t{1}; },
                         .unix_time_s = [] { return std::int64_t{0}; }}};
  std::uint64_t num_submitted_ = 0;
  std::vector<EngineEvent> events_;
};

TEST(SpeculatingCore, TellsTheTokensOfAStepInOneEvent) {
  SpeculatingCore core(Speculation::kNgram);
  const RequestOutput answer = core.answer(TextPrompt{"dd"}, {.max_tokens = 30, .logprobs = 1});
  EXPECT_EQ(answer.outputs[0].text, "abcabcabcabcabcabcabcabcabcabc");
  EXPECT_EQ(answer.outputs[0].logprobs.size(), 30u);
  EXPECT_EQ(answer.outputs[0].top_logprobs.size(), 30u);
  std::size_t most = 0;
  for (const TokensGenerated& generated : core.tokens_generated()) {
    EXPECT_EQ(generated.logprobs.size(), generated.token_ids.size());
    EXPECT_EQ(generated.top_logprobs.size(), generated.token_ids.size());
    most = std::max(most, generated.token_ids.size());
  }
  EXPECT_GT(most, 3u);
  EXPECT_LT(core.runner_.num_steps(), 20);
}

TEST(SpeculatingCore, CountsWhatWasDraftedAndAccepted) {
  SpeculatingCore core(Speculation::kNgram);
  core.exceptions_ = {{17, kA + 9}};
  const RequestMetrics metrics = core.answer(TextPrompt{"dd"}, {.n = 2, .max_tokens = 30}).metrics;
  EXPECT_EQ(metrics.num_accepted_tokens, 60 - std::ssize(core.tokens_generated()));
  EXPECT_GT(metrics.num_draft_tokens, metrics.num_accepted_tokens) << "one guess at least was wrong";
  std::int32_t num_drafted = 0, num_accepted = 0;
  for (const StepRecord& step : core.core_.recorder()->read_since(0, 0).steps) {
    num_drafted += step.num_draft_tokens;
    num_accepted += step.num_accepted_tokens;
    EXPECT_EQ(step.reserved_ahead_slots, 0) << "what was reserved for guesses is given back with the step";
  }
  EXPECT_EQ(metrics.num_draft_tokens, num_drafted);
  EXPECT_EQ(metrics.num_accepted_tokens, num_accepted);
}

TEST(SpeculatingCore, DraftsNothingUnlessAsked) {
  SpeculatingCore core(Speculation::kOff);
  EXPECT_EQ(core.answer(TextPrompt{"dd"}, {.max_tokens = 30}).metrics.num_draft_tokens, 0);
  EXPECT_EQ(core.runner_.num_steps(), 30);
}

struct Ending {
  const char* name;
  SamplingParams sampling;
  std::map<std::size_t, TokenId> exceptions = {};
};

class EndingWithinADraft : public testing::TestWithParam<Ending> {};

// The ends come after twelve tokens and more, when drafts are long and are accepted.
TEST_P(EndingWithinADraft, IsThatWithoutDrafts) {
  std::map<Speculation, RequestOutput> answers;
  for (const Speculation speculative : {Speculation::kOff, Speculation::kNgram}) {
    SpeculatingCore core(speculative);
    core.exceptions_ = GetParam().exceptions;
    answers[speculative] = core.answer(TextPrompt{"dd"}, GetParam().sampling);
    const auto num_told = static_cast<std::int64_t>(answers[speculative].outputs[0].token_ids.size());
    if (speculative == Speculation::kNgram) {
      EXPECT_GT(core.runner_.num_drawn(), num_told) << "nothing was drawn after the end";
    }
  }
  const CompletionOutput &with = answers[Speculation::kNgram].outputs[0],
                         &without = answers[Speculation::kOff].outputs[0];
  EXPECT_EQ(with.token_ids, without.token_ids);
  EXPECT_EQ(with.text, without.text);
  EXPECT_EQ(with.logprobs, without.logprobs);
  EXPECT_EQ(with.finish_reason, without.finish_reason);
  EXPECT_EQ(with.stop_reason, without.stop_reason);
}

INSTANTIATE_TEST_SUITE_P(
    All, EndingWithinADraft,
    testing::Values(Ending{"StopToken", {.max_tokens = 60, .min_tokens = 18, .stop_token_ids = {kA + 1}}},
                    Ending{"StopString", {.max_tokens = 60, .min_tokens = 19, .stop = {"bca"}}},
                    Ending{"StopStringOfManyTokens",
                           {.max_tokens = 60, .min_tokens = 20, .stop = {"cabcabcab"}}},
                    Ending{"EndOfSequence",
                           {.max_tokens = 60, .min_tokens = 20},
                           {{2, 0}, {5, 0}, {8, 0}, {11, 0}, {14, 0}, {17, 0}, {20, 0}, {23, 0}}}),
    [](const testing::TestParamInfo<Ending>& info) { return info.param.name; });

TEST(SpeculatingCore, ATokenThatCannotBeDrawnFailsAfterThoseBeforeItWereTold) {
  SpeculatingCore core(Speculation::kNgram);
  core.exceptions_ = {{20, -1}};
  const RequestOutput answer = core.answer(TextPrompt{"dd"}, {.max_tokens = 60});
  ASSERT_TRUE(answer.error);
  EXPECT_EQ(answer.error->code, ErrorCode::kInvalidLogits);
  std::size_t num_told = 0;
  for (const TokensGenerated& generated : core.tokens_generated()) num_told += generated.token_ids.size();
  EXPECT_EQ(num_told, 20u);
}

TEST(SpeculatingCore, TheNextTurnResumesExactlyWhereTheOutputEnded) {
  for (const Speculation speculative : {Speculation::kOff, Speculation::kNgram}) {
    SpeculatingCore core(speculative);
    const RequestOutput first =
        core.answer(TextPrompt{"dd"}, {.max_tokens = 60, .min_tokens = 18, .stop_token_ids = {kA + 1}});
    TokenPrompt next{first.prompt_token_ids};
    const auto& said = first.outputs[0].token_ids;
    next.token_ids.insert(next.token_ids.end(), said.begin(), said.end());
    next.token_ids.push_back(kA + 5);
    const RequestOutput second = core.answer(next, {.max_tokens = 1});
    EXPECT_EQ(second.num_cached_tokens, std::ssize(next.token_ids) - 2)
        << "all but the last token that was said, which had no KV, and the new one";
  }
}

}  // namespace
}  // namespace octavo
