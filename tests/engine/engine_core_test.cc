#include <algorithm>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "tests/engine/core_on_script.h"

namespace octavo {
namespace {

using simulation::ToyTokenizer;

TEST_F(EngineCoreTest, AnswersWithTheScriptedTokens) {
  submit(TextPrompt{"abc"}, {.max_tokens = 3});
  const auto answers = run();
  EXPECT_EQ(answers[0].prompt_token_ids, (std::vector<TokenId>{ToyTokenizer::kBos, 4, 5, 6}));
  EXPECT_EQ(answers[0].outputs[0].token_ids, (std::vector<TokenId>{kA, kA, kA}));
  EXPECT_EQ(answers[0].outputs[0].text, "aaa");
  EXPECT_EQ(answers[0].outputs[0].finish_reason, FinishReason::kLength);
  EXPECT_DOUBLE_EQ(answers[0].outputs[0].cumulative_logprob, -1.5);
  expect_pool_is_whole();
}

TEST_F(EngineCoreTest, EndsAtTheModelsLength) {
  submit(TokenPrompt{std::vector<TokenId>(90, kB)}, {.max_tokens = 1000});
  const auto answers = run();
  EXPECT_EQ(answers[0].outputs[0].token_ids.size(), 10u);
  EXPECT_EQ(answers[0].outputs[0].finish_reason, FinishReason::kLength);
}

TEST_F(EngineCoreTest, RefusesWhatCannotBeDoneAndGoesOnWithTheRest) {
  submit(TextPrompt{""});
  submit(TokenPrompt{{kA, 1000}});
  submit(TokenPrompt{{kA, -1}});
  submit(ChatPrompt{});
  submit(TextPrompt{"a"}, {.temperature = -1.0});
  submit(TextPrompt{"a"}, {.stop = {"\xc3"}});
  submit(TokenPrompt{std::vector<TokenId>(100, kB)});
  submit(TextPrompt{"a"}, {.max_tokens = 2});
  const auto answers = run();
  for (std::size_t index = 0; index < 6; ++index) {
    ASSERT_TRUE(answers[index].error) << index;
    EXPECT_EQ(answers[index].error->code, ErrorCode::kInvalidArgument);
    EXPECT_EQ(answers[index].error->message.find('\n'), std::string::npos);
    EXPECT_TRUE(answers[index].outputs.empty());
  }
  ASSERT_TRUE(answers[6].error);
  EXPECT_EQ(answers[6].error->code, ErrorCode::kTooLong);
  EXPECT_NE(answers[6].error->message.find("100"), std::string::npos) << answers[6].error->message;
  ASSERT_FALSE(answers[7].error);
  EXPECT_EQ(answers[7].outputs[0].text, "aa");
}

TEST_F(EngineCoreTest, ParsesSpecialTokensOnlyWhenAsked) {
  submit(TextPrompt{.text = "a<s>", .parse_special = true}, {.max_tokens = 1});
  submit(TextPrompt{.text = "a<s>", .parse_special = false}, {.max_tokens = 1});
  const auto answers = run();
  EXPECT_EQ(answers[0].prompt_token_ids,
            (std::vector<TokenId>{ToyTokenizer::kBos, kA, ToyTokenizer::kSpecial}));
  EXPECT_TRUE(answers[1].error);  // the toy tokenizer has no letter "<"
}

TEST_F(EngineCoreTest, DrawsASeedOnlyWhenNoneIsGivenAndReportsIt) {
  submit(TextPrompt{"a"}, {.seed = 7, .max_tokens = 1});
  submit(TextPrompt{"a"}, {.max_tokens = 1});
  const auto answers = run();
  EXPECT_EQ(answers[0].seed, 7u);
  EXPECT_EQ(answers[1].seed, 1001u);
  EXPECT_EQ(num_seeds_drawn_, 1u);
}

TEST_F(EngineCoreTest, CancelEndsAWaitingAndARunningRequestWithinTheStep) {
  const RequestId running = submit(TextPrompt{"abc"}, {.n = 2, .max_tokens = 50});
  step();
  step();
  const RequestId waiting = submit(TextPrompt{"abc"});
  commands_.push_back(CancelRequest{waiting});
  commands_.push_back(CancelRequest{running});
  commands_.push_back(CancelRequest{running});
  commands_.push_back(CancelRequest{RequestId{99}});
  step();
  EXPECT_TRUE(collector_.done());
  EXPECT_FALSE(core_.has_work());
  const auto answers = collector_.take();
  for (const CompletionOutput& output : answers[0].outputs) {
    EXPECT_EQ(output.finish_reason, FinishReason::kAbort);
    EXPECT_EQ(output.text, "aa");
  }
  EXPECT_EQ(answers[1].outputs[0].finish_reason, FinishReason::kAbort);
  EXPECT_TRUE(answers[1].outputs[0].token_ids.empty());
  expect_pool_is_whole();
}

TEST_F(EngineCoreTest, OneOutputIsCancelledAndTheOthersGoOn) {
  const RequestId id = submit(TextPrompt{"abc"}, {.n = 3, .max_tokens = 6});
  step();
  step();
  commands_.push_back(CancelOutput{id, 1});
  commands_.push_back(CancelOutput{id, 1});  // it has ended
  commands_.push_back(CancelOutput{id, 3});
  commands_.push_back(CancelOutput{id, -1});
  commands_.push_back(CancelOutput{RequestId{99}, 0});
  const auto answers = run();
  for (const CompletionOutput& output : answers[0].outputs) {
    const bool was_cancelled = output.index == 1;
    EXPECT_EQ(output.finish_reason, was_cancelled ? FinishReason::kAbort : FinishReason::kLength);
    EXPECT_EQ(output.text, was_cancelled ? "aa" : "aaaaaa");
  }
  expect_pool_is_whole();
}

TEST_F(EngineCoreTest, AnOutputThatIsCancelledWhileItsPromptIsComputedHasNoToken) {
  const RequestId id = submit(TokenPrompt{std::vector<TokenId>(40, kB)}, {.n = 3, .max_tokens = 4});
  step();
  commands_.push_back(CancelOutput{id, 0});
  const auto events = step();
  ASSERT_EQ(
      std::ranges::count_if(
          events, [](const EngineEvent& event) { return std::holds_alternative<OutputFinished>(event); }),
      1)
      << "it is told at once";
  const auto answers = run();
  EXPECT_EQ(answers[0].outputs[0].finish_reason, FinishReason::kAbort);
  EXPECT_TRUE(answers[0].outputs[0].token_ids.empty());
  EXPECT_EQ(answers[0].outputs[1].token_ids.size(), 4u);
  EXPECT_EQ(answers[0].outputs[2].token_ids.size(), 4u);
  expect_pool_is_whole();
}

TEST_F(EngineCoreTest, WithItsLastOutputARequestIsCancelled) {
  const RequestId id = submit(TextPrompt{"abc"}, {.n = 2, .max_tokens = 50});
  step();
  commands_.push_back(CancelOutput{id, 0});
  commands_.push_back(CancelOutput{id, 1});
  step();
  EXPECT_TRUE(collector_.done());
  EXPECT_FALSE(core_.has_work());
  expect_pool_is_whole();
}

TEST_F(EngineCoreTest, OutputsThatAreChosenAmongEachOtherCannotBeCancelledAlone) {
  const RequestId best = submit(TextPrompt{"abc"}, {.best_of = 2, .max_tokens = 5});
  const RequestId searched = submit(TextPrompt{"abc"}, {.max_tokens = 5, .beam_width = 2});
  step();
  commands_.push_back(CancelOutput{best, 0});
  commands_.push_back(CancelOutput{searched, 0});
  for (const RequestOutput& answer : run()) {
    for (const CompletionOutput& output : answer.outputs)
      EXPECT_EQ(output.finish_reason, FinishReason::kLength);
  }
}

// ---- what else is told of a prompt

TEST_F(EngineCoreTest, TheProgressOfAPromptIsToldToWhoAsks) {
  const std::vector<TokenId> prompt(40, kB);
  submit(TokenPrompt{prompt}, {.max_tokens = 2});
  for (const EngineEvent& event : step()) EXPECT_FALSE(std::holds_alternative<PromptProgress>(event));
  run();
  GenerationRequest asked{.prompt = TokenPrompt{prompt}, .sampling = {.max_tokens = 2}};
  asked.reports_prompt_progress = true;
  asked.cache_salt = "other";
  submit(std::move(asked));
  std::vector<std::int32_t> told;
  while (told.empty() || core_.has_work()) {
    for (const EngineEvent& event : step()) {
      const auto* const progress = std::get_if<PromptProgress>(&event);
      if (progress == nullptr) continue;
      EXPECT_EQ(progress->num_prompt_tokens, 40);
      EXPECT_EQ(progress->num_cached_tokens, 0);
      told.push_back(progress->num_computed_tokens);
    }
  }
  EXPECT_EQ(told, (std::vector<std::int32_t>{16, 32, 40}));
}

TEST_F(EngineCoreTest, WhatWasFoundIsPartOfTheProgress) {
  const std::vector<TokenId> prompt(40, kB);
  submit(TokenPrompt{prompt}, {.max_tokens = 2});
  run();
  GenerationRequest asked{.prompt = TokenPrompt{prompt}, .sampling = {.max_tokens = 1}};
  asked.reports_prompt_progress = true;
  submit(std::move(asked));
  std::optional<PromptProgress> told;
  for (const EngineEvent& event : step()) {
    if (const auto* const progress = std::get_if<PromptProgress>(&event)) told = *progress;
  }
  ASSERT_TRUE(told);
  EXPECT_GE(told->num_cached_tokens, 36);
  EXPECT_EQ(told->num_computed_tokens, 40);
}

GenerationRequest embedding_of(std::size_t num_tokens, Pooling pooling) {
  GenerationRequest request{.prompt = TokenPrompt{std::vector<TokenId>(num_tokens, kB)}};
  request.embedding = {.pooling = pooling, .normalise = false};
  return request;
}

TEST_F(EngineCoreTest, AnEmbeddingIsMadeOfAllChunksOrOfTheLastToken) {
  submit(embedding_of(40, Pooling::kMean));
  submit(embedding_of(40, Pooling::kLast));
  submit(embedding_of(1, Pooling::kLast));
  const auto answers = run();
  EXPECT_EQ(answers[0].embedding, (std::vector<float>{1.0f, 19.5f}));
  EXPECT_EQ(answers[1].embedding, (std::vector<float>{1.0f, 39.0f}));
  EXPECT_EQ(answers[2].embedding, (std::vector<float>{1.0f, 0.0f}));
  for (const RequestOutput& answer : answers) EXPECT_TRUE(answer.outputs.empty() && !answer.error);
  EXPECT_EQ(runner_.num_drawn(), 0) << "nothing is generated";
  expect_pool_is_whole();
}

// A mean needs every row, so that nothing of it can be found; the last token's does.
TEST_F(EngineCoreTest, OnlyAnEmbeddingOfTheLastTokenReadsTheCache) {
  submit(embedding_of(40, Pooling::kLast));
  run();
  for (const Pooling pooling : {Pooling::kMean, Pooling::kLast}) {
    submit(embedding_of(40, pooling));
    const RequestOutput answer = run()[0];
    EXPECT_EQ(answer.num_cached_tokens > 0, pooling == Pooling::kLast);
    EXPECT_EQ(answer.metrics.prompt.num_computed,
              pooling == Pooling::kMean ? 40 : 40 - answer.num_cached_tokens);
    EXPECT_EQ(answer.metrics.prefix_miss.cause == MissCause::kNotRead, pooling == Pooling::kMean);
  }
}

TEST_F(EngineCoreTest, ACancelledEmbeddingEndsWithoutOne) {
  const RequestId id = submit(embedding_of(40, Pooling::kMean));
  step();
  commands_.push_back(CancelRequest{id});
  step();
  ASSERT_TRUE(collector_.done());
  EXPECT_TRUE(collector_.take()[0].embedding.empty());
  EXPECT_FALSE(core_.has_work());
  expect_pool_is_whole();
}

TEST_F(EngineCoreTest, FailingDeviceEndsTheRequestsOfItsStepOnly) {
  submit(TokenPrompt{std::vector<TokenId>(16, kB)}, {.max_tokens = 3});  // takes all rows of the first step
  submit(TextPrompt{"abc"}, {.max_tokens = 3});
  runner_.fail_next();
  step();
  const auto answers = run();
  ASSERT_TRUE(answers[0].error);
  EXPECT_EQ(answers[0].error->code, ErrorCode::kDevice);
  EXPECT_EQ(answers[0].error->message, "the device fell over");
  ASSERT_FALSE(answers[1].error);
  EXPECT_EQ(answers[1].outputs[0].text, "aaa");
  expect_pool_is_whole();
}

TEST_F(EngineCoreTest, InvalidLogitsFailTheirRequestOnly) {
  script_ = [](RequestId id, std::size_t position) { return id.value == 1 && position == 1 ? -1 : kA; };
  submit(TextPrompt{"abc"}, {.n = 2, .max_tokens = 3});
  submit(TextPrompt{"abc"}, {.max_tokens = 3});
  const auto answers = run();
  ASSERT_TRUE(answers[0].error);
  EXPECT_EQ(answers[0].error->code, ErrorCode::kInvalidLogits);
  for (const CompletionOutput& output : answers[0].outputs) {
    EXPECT_EQ(output.finish_reason, FinishReason::kError);
    EXPECT_EQ(output.text, "a");  // what was streamed stays
  }
  EXPECT_EQ(answers[1].outputs[0].text, "aaa");
  expect_pool_is_whole();
}

TEST_F(EngineCoreTest, OutputsOfOneRequestEndEachForItself) {
  script_ = [count = 0](RequestId, std::size_t position) mutable {
    return position == 1 && count++ == 0 ? ToyTokenizer::kEos : kA;
  };
  submit(TextPrompt{"abc"}, {.n = 2, .max_tokens = 4});
  const auto answers = run();
  EXPECT_EQ(answers[0].outputs[0].token_ids, (std::vector<TokenId>{kA, ToyTokenizer::kEos}));
  EXPECT_EQ(answers[0].outputs[0].finish_reason, FinishReason::kStop);
  EXPECT_EQ(answers[0].outputs[0].text, "a");
  EXPECT_EQ(answers[0].outputs[1].text, "aaaa");
}

TEST_F(EngineCoreTest, ReportsPromptLogprobsOfEveryPositionAcrossChunks) {
  submit(TokenPrompt{std::vector<TokenId>(40, kB)}, {.max_tokens = 1, .prompt_logprobs = 0});
  const auto answers = run();
  ASSERT_EQ(answers[0].prompt_logprobs.size(), 40u);
  EXPECT_FALSE(answers[0].prompt_logprobs[0]);
  for (std::size_t position = 1; position < 40; ++position) {
    EXPECT_EQ(answers[0].prompt_logprobs[position], -static_cast<float>(position));
  }
}

TEST_F(EngineCoreTest, ReportsAlternativesOfPromptTokensWhenAsked) {
  submit(TokenPrompt{std::vector<TokenId>(40, kB)}, {.max_tokens = 1, .prompt_logprobs = 2});
  submit(TokenPrompt{std::vector<TokenId>(40, kA)}, {.max_tokens = 1, .prompt_logprobs = 0});
  const auto answers = run();
  ASSERT_EQ(answers[0].prompt_top_logprobs.size(), 40u);
  EXPECT_TRUE(answers[0].prompt_top_logprobs[0].empty());
  for (std::size_t position = 1; position < 40; ++position) {
    ASSERT_EQ(answers[0].prompt_top_logprobs[position].size(), 2u);
    EXPECT_EQ(answers[0].prompt_top_logprobs[position][1].token_id, static_cast<TokenId>(position));
  }
  EXPECT_TRUE(answers[1].prompt_top_logprobs.empty());
}

TEST_F(EngineCoreTest, OfBestOfTheLikeliestAreTheAnswer) {
  // Of -0.5 for each token: the shorter an output, the likelier it is.
  script_ = [count = 0](RequestId, std::size_t position) mutable {
    static constexpr int kLengths[] = {4, 2, 3, 2};
    const int output = count++ % 4;
    return static_cast<int>(position) + 1 >= kLengths[output] ? ToyTokenizer::kEos : kA + output;
  };
  const RequestId id = submit(TextPrompt{"abc"}, {.n = 2, .best_of = 4, .max_tokens = 9});
  std::vector<EngineEvent> events;
  bool has_ended = false;
  for (auto step_events = step(); core_.has_work() || !has_ended; step_events = step()) {
    for (EngineEvent& event : step_events) {
      has_ended |= std::holds_alternative<RequestFinished>(event);
      events.push_back(std::move(event));
    }
    if (has_ended) break;
  }
  std::vector<std::int32_t> indices;
  for (const EngineEvent& event : events) {
    if (const auto* finished = std::get_if<OutputFinished>(&event)) indices.push_back(finished->output_index);
    if (const auto* tokens = std::get_if<TokensGenerated>(&event)) {
      EXPECT_EQ(tokens->request_id, id);
    }
  }
  EXPECT_EQ(indices, (std::vector<std::int32_t>{0, 1})) << "two of the four are told";
  const auto answers = collector_.take();
  ASSERT_EQ(answers[0].outputs.size(), 2u);
  EXPECT_EQ(answers[0].outputs[0].cumulative_logprob, -1.0);
  EXPECT_EQ(answers[0].outputs[1].cumulative_logprob, -1.0);
  EXPECT_NE(answers[0].outputs[0].text, answers[0].outputs[1].text);
  expect_pool_is_whole();
}

TEST_F(EngineCoreTest, ACancelTellsTheBestOfWhatThereIs) {
  const RequestId id = submit(TextPrompt{"abc"}, {.best_of = 3, .max_tokens = 50});
  step();
  step();
  step();
  commands_.push_back(CancelRequest{id});
  step();
  ASSERT_TRUE(collector_.done());
  const auto answers = collector_.take();
  ASSERT_EQ(answers[0].outputs.size(), 1u);
  EXPECT_EQ(answers[0].outputs[0].finish_reason, FinishReason::kAbort);
  EXPECT_FALSE(answers[0].outputs[0].token_ids.empty());
  expect_pool_is_whole();
}

TEST_F(EngineCoreTest, SaysThatARequestForbidsAllThatCouldCome) {
  script_ = [](RequestId, std::size_t) { return -1; };
  submit(TextPrompt{"a"}, {.max_tokens = 4, .allowed_token_ids = {{kA}}});
  EXPECT_EQ(run()[0].error->message,
            "no token could come next: structured_output, allowed_token_ids, bad_words, logit_bias and "
            "min_tokens together forbid all that the "
            "model finds possible; allow more");
}

TEST_F(EngineCoreTest, GivesTopLogprobsOnlyWhenAsked) {
  submit(TextPrompt{"a"}, {.max_tokens = 2, .logprobs = 1});
  submit(TextPrompt{"a"}, {.max_tokens = 2});
  const auto answers = run();
  EXPECT_EQ(answers[0].outputs[0].top_logprobs.size(), 2u);
  EXPECT_TRUE(answers[1].outputs[0].top_logprobs.empty());
}

TEST_F(EngineCoreTest, MeasuresFromSubmit) {
  submit(TokenPrompt{std::vector<TokenId>(32, kB)}, {.max_tokens = 4});  // two chunks of 16
  const auto answers = run();
  const RequestMetrics& metrics = answers[0].metrics;
  EXPECT_EQ(metrics.queue_us, 1000);
  EXPECT_EQ(metrics.ttft_us, 2000);
  EXPECT_EQ(metrics.tpot_us, 1000);
  EXPECT_EQ(metrics.e2e_us, 5000);
  EXPECT_EQ(metrics.num_preemptions, 0);
}

TEST_F(EngineCoreTest, LeavesOneRecordForEachStepAndNoneWithoutWork) {
  step();
  submit(TokenPrompt{std::vector<TokenId>(20, kB)}, {.max_tokens = 2});
  run();
  const metrics::Trace trace = core_.recorder()->read_since(0, 0);
  ASSERT_EQ(trace.steps.size(), 3u);
  EXPECT_EQ(trace.steps[0].num_prefill_tokens, 16);
  EXPECT_EQ(trace.steps[1].num_prefill_tokens + trace.steps[1].num_decode_tokens, 4);
  EXPECT_EQ(trace.steps[2].num_decode_tokens, 1);
  for (const StepRecord& record : trace.steps) {
    EXPECT_EQ(record.used_blocks + record.cached_blocks + record.free_blocks, 64);
  }
  ASSERT_FALSE(trace.block_events.empty());
  for (const BlockEvent& event : trace.block_events) EXPECT_GT(event.time_us, 0);
}

// ---- beams

SamplingParams beam_params(std::int32_t width, std::int32_t max_tokens) {
  return {.max_tokens = max_tokens, .beam_width = width};
}

TEST_F(EngineCoreTest, ABeamSearchGivesItsBestHypothesesBestFirst) {
  submit(TextPrompt{"abc"}, beam_params(3, 4));
  const auto answers = run();
  ASSERT_EQ(answers[0].outputs.size(), 3u);
  EXPECT_EQ(answers[0].outputs[0].text, "aaaa");
  EXPECT_EQ(answers[0].outputs[0].token_ids, (std::vector<TokenId>{kA, kA, kA, kA}));
  EXPECT_DOUBLE_EQ(*answers[0].outputs[0].score, -0.5);
  for (const CompletionOutput& output : answers[0].outputs) {
    EXPECT_EQ(output.finish_reason, FinishReason::kLength);
    EXPECT_EQ(output.token_ids.size(), 4u);
    EXPECT_EQ(output.logprobs.size(), 4u);
    EXPECT_LE(*output.score, *answers[0].outputs[0].score);
  }
  EXPECT_EQ(answers[0].beam_steps.size(), 4u);
  EXPECT_EQ(answers[0].metrics.prompt.num_computed, 4);
  expect_pool_is_whole();
}

// After one beam three ends come before the next token that goes on.
TEST_F(EngineCoreTest, ABeamSearchHasBeamsHoweverManyEndsStandBeforeThem) {
  SamplingParams sampling = beam_params(2, 10);
  sampling.stop_token_ids = {kA + 1, kA + 2, kA + 3};
  submit(TextPrompt{"abc"}, sampling);
  for (const EngineEvent& event : step()) {
    const auto* told = std::get_if<BeamsAdvanced>(&event);
    if (told == nullptr) continue;
    ASSERT_EQ(told->steps[0].live.size(), 2u);
    EXPECT_EQ(told->steps[0].nodes[static_cast<std::size_t>(told->steps[0].live[1])].token_id, kA + 4);
    return;
  }
  ADD_FAILURE() << "the search did not advance";
}

TEST_F(EngineCoreTest, ABeamSearchTellsEachStepOfItsTree) {
  submit(TextPrompt{"abc"}, beam_params(2, 10));
  for (std::int32_t i = 0; i < 3; ++i) {
    int num_told = 0;
    for (const EngineEvent& event : step()) {
      const auto* told = std::get_if<BeamsAdvanced>(&event);
      if (told == nullptr) continue;
      ++num_told;
      ASSERT_EQ(told->steps.size(), 1u);
      EXPECT_EQ(told->steps[0].live.size(), 2u);
      EXPECT_EQ(told->steps[0].first_node, 2 * i);
    }
    EXPECT_EQ(num_told, 1);
  }
}

TEST_F(EngineCoreTest, ACancelledBeamSearchGivesWhatWasUnderWay) {
  const RequestId request_id = submit(TextPrompt{"abc"}, beam_params(3, 50));
  step();
  step();
  commands_.push_back(CancelRequest{request_id});
  step();
  ASSERT_TRUE(collector_.done());
  const auto answers = collector_.take();
  ASSERT_EQ(answers[0].outputs.size(), 3u);
  for (const CompletionOutput& output : answers[0].outputs) {
    EXPECT_EQ(output.finish_reason, FinishReason::kAbort);
    EXPECT_EQ(output.token_ids.size(), 2u);
    EXPECT_TRUE(output.score.has_value());
  }
  expect_pool_is_whole();
}

TEST_F(EngineCoreTest, ABeamSearchCancelledBeforeItBeganGivesEmptyOutputs) {
  const RequestId request_id = submit(TextPrompt{"abc"}, beam_params(2, 50));
  commands_.push_back(CancelRequest{request_id});
  step();
  ASSERT_TRUE(collector_.done());
  const auto answers = collector_.take();
  ASSERT_EQ(answers[0].outputs.size(), 2u);
  for (const CompletionOutput& output : answers[0].outputs) {
    EXPECT_EQ(output.finish_reason, FinishReason::kAbort);
    EXPECT_TRUE(output.token_ids.empty());
    EXPECT_FALSE(output.score.has_value());
  }
}

TEST_F(EngineCoreTest, AHypothesisThatStopsKeepsItsOwnReason) {
  submit(TextPrompt{"abc"}, {.max_tokens = 10, .stop = {"aaa"}, .beam_width = 2, .early_stopping = true});
  const auto answers = run();
  const CompletionOutput& best = answers[0].outputs[0];
  EXPECT_EQ(best.finish_reason, FinishReason::kStop);
  EXPECT_EQ(best.stop_reason, StopReason("aaa"));
  EXPECT_EQ(best.text, "");
  EXPECT_TRUE(best.finish_detail.empty());
}

TEST_F(EngineCoreTest, BeamsAndSamplesRunInOneBatch) {
  submit(TextPrompt{"abc"}, beam_params(4, 5));
  submit(TextPrompt{"d"}, {.n = 2, .max_tokens = 5});
  submit(TextPrompt{"e"}, {.max_tokens = 5});
  step();
  EXPECT_EQ(core_.scheduler().num_running(), 3);
  const auto answers = run();
  EXPECT_EQ(answers[0].outputs[0].text, "aaaaa");
  EXPECT_EQ(answers[1].outputs[1].text, "aaaaa");
  EXPECT_EQ(answers[2].outputs[0].text, "aaaaa");
  expect_pool_is_whole();
}

TEST_F(EngineCoreTest, ADeviceThatFailsEndsABeamSearch) {
  submit(TextPrompt{"abc"}, beam_params(3, 10));
  step();
  runner_.fail_next();
  const auto answers = run();
  ASSERT_TRUE(answers[0].error);
  EXPECT_EQ(answers[0].error->code, ErrorCode::kDevice);
  expect_pool_is_whole();
}

TEST_F(EngineCoreTest, InvalidLogitsEndABeamSearchAndNobodyElse) {
  script_ = [](RequestId id, std::size_t position) { return id.value == 1 && position == 2 ? -1 : kA; };
  submit(TextPrompt{"abc"}, beam_params(3, 10));
  submit(TextPrompt{"abc"}, {.max_tokens = 3});
  const auto answers = run();
  ASSERT_TRUE(answers[0].error);
  EXPECT_EQ(answers[0].error->code, ErrorCode::kInvalidLogits);
  EXPECT_EQ(answers[1].outputs[0].text, "aaa");
  expect_pool_is_whole();
}

// ---- want of memory

class EngineCoreOnASmallPool : public EngineCoreTest {
 protected:
  EngineCoreOnASmallPool()
      : EngineCoreTest({.block_size = 4,
                        .num_blocks = 8,
                        .bytes_per_block = 1,
                        .max_num_seqs = 8,
                        .max_num_batched_tokens = 32,
                        .max_model_len = 100,
                        .num_host_blocks = 8,
                        .preemption_mode = PreemptionPolicy::kSwap,
                        .admission_reserve = AdmissionReserve::kOnePercent}) {}
};

TEST_F(EngineCoreOnASmallPool, WhatOutgrowsThePoolEndsWithLengthAndSaysWhy) {
  submit(TextPrompt{"abc"}, {.n = 2, .max_tokens = 90});
  submit(TextPrompt{"abc"}, {.n = 4, .max_tokens = 29});  // each alone fits exactly
  const auto answers = run();
  for (const CompletionOutput& output : answers[0].outputs) {
    EXPECT_EQ(output.finish_reason, FinishReason::kLength);
    EXPECT_NE(output.finish_detail.find("the KV pool of 8 blocks of 4 tokens"), std::string::npos);
    EXPECT_EQ(output.token_ids.size(), 29u) << "what fits the pool with the prompt, and the token after it";
  }
  for (const CompletionOutput& output : answers[1].outputs) {
    EXPECT_EQ(output.token_ids.size(), 29u);
    EXPECT_EQ(output.finish_detail, "");
  }
  expect_pool_is_whole();
}

TEST_F(EngineCoreOnASmallPool, ABeamSearchThatOutgrowsThePoolGivesItsBestAndSaysWhy) {
  submit(TextPrompt{"abc"}, beam_params(3, 90));
  const auto answers = run();
  ASSERT_EQ(answers[0].outputs.size(), 3u);
  for (const CompletionOutput& output : answers[0].outputs) {
    EXPECT_EQ(output.finish_reason, FinishReason::kLength);
    EXPECT_NE(output.finish_detail.find("raise --num-kv-blocks"), std::string::npos);
    EXPECT_GT(output.token_ids.size(), 4u);
  }
  expect_pool_is_whole();
}

TEST_F(EngineCoreOnASmallPool, SwappedRequestsGoOnAndTheTimesAreKept) {
  submit(TextPrompt{"aaaaaaaaaaa"}, {.max_tokens = 12});
  submit(TextPrompt{"bbbbbbbbbbb"}, {.max_tokens = 12});
  int num_preempted = 0;
  for (step(); core_.has_work();) {
    for (const EngineEvent& event : step()) {
      if (const auto* preempted = std::get_if<RequestPreempted>(&event)) {
        ++num_preempted;
        EXPECT_EQ(preempted->num_tokens_dropped, 0);
      }
    }
  }
  const auto answers = collector_.take();
  EXPECT_GT(num_preempted, 0);
  EXPECT_EQ(answers[1].metrics.num_preemptions, num_preempted);
  EXPECT_EQ(answers[1].outputs[0].text, "aaaaaaaaaaaa");
  const KvTotals& totals = core_.totals();
  EXPECT_EQ(totals.swap_out_us, 10 * totals.swapped_out_blocks);
  EXPECT_EQ(totals.swap_in_us, 20 * totals.swapped_in_blocks);
  EXPECT_GT(totals.swapped_in_blocks, 0);
  expect_pool_is_whole();
}

// A step whose chunks nobody waits for seems to take no time; the next one that draws takes it.
TEST_F(EngineCoreTest, LearnsWhatATokenOfAPromptCostsOfADeviceThatRunsBehind) {
  runner_.run_behind(clock_, 30);
  submit(TokenPrompt{std::vector<TokenId>(70, kA)}, {.max_tokens = 3});  // five steps of at most 16 rows
  for (int i = 0; i < 4; ++i) {
    step();
    EXPECT_FALSE(core_.costs().steps.is_known()) << i;
  }
  const auto us_of_100_rows = [&] { return core_.costs().steps.us_of({.num_rows = 100}); };
  step();
  EXPECT_NEAR(us_of_100_rows(), 3000.0, 1e-9);
  run();
  EXPECT_NEAR(us_of_100_rows(), 3000.0, 1e-9);
  submit(TokenPrompt{std::vector<TokenId>(33, kB)}, {.max_tokens = 1});
  run();
  EXPECT_NEAR(us_of_100_rows(), 3000.0, 1e-9);
}

TEST_F(EngineCoreTest, PinnedContentsStayUntilTheyAreReleased) {
  submit(TokenPrompt{std::vector<TokenId>(16, kB)}, {.max_tokens = 1});
  run();
  const auto num_pinned = [&] {
    return std::ranges::count(core_.snapshot().blocks, RetentionClass::kPinned, &BlockSnapshot::retention);
  };
  EXPECT_EQ(num_pinned(), 0);
  const RequestId request_id{++num_submitted_};
  collector_.expect(request_id, 1);
  commands_.push_back(intake_.prepare({request_id,
                                       {.prompt = TokenPrompt{std::vector<TokenId>(16, kA)},
                                        .sampling = {.max_tokens = 1},
                                        .retention = RetentionClass::kPinned},
                                       clock_.now_us()}));
  run();
  EXPECT_EQ(num_pinned(), 4);
  commands_.push_back(ReleasePins{});
  step();
  EXPECT_EQ(num_pinned(), 0);
}

}  // namespace
}  // namespace octavo
