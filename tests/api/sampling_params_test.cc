#include "engine/api/sampling_params.h"

#include <gtest/gtest.h>

#include <functional>
#include <limits>

namespace octavo {
namespace {

constexpr std::int32_t kVocabularySize = 100;

TEST(SamplingParams, DefaultsAreValid) { EXPECT_TRUE(validate(SamplingParams{}, kVocabularySize)); }

TEST(SamplingParams, AcceptsTheEndsOfEveryRange) {
  const std::vector<SamplingParams> accepted = {
      {.n = 1024},
      {.n = 4, .best_of = 4},
      {.best_of = 1024},
      {.allowed_token_ids = {{0, kVocabularySize - 1}}},
      {.bad_words = std::vector<std::string>(1024, std::string(1024, 'a'))},
      {.logprobs = 2, .logprob_token_ids = {0, kVocabularySize - 1}},
      {.logprob_token_ids = std::vector<TokenId>(128, 1)},
      {.prompt_logprobs = 0},
      {.prompt_logprobs = 1024},
      {.temperature = 0.0},
      {.temperature = 1e6},
      {.top_p = 1e-9},
      {.top_k = -1},
      {.top_k = 1'000'000},
      {.min_p = 1.0},
      {.presence_penalty = -2.0, .frequency_penalty = 2.0, .repetition_penalty = 1e-3},
      {.max_tokens = 1, .min_tokens = 1},
      {.stop = std::vector<std::string>(64, std::string(1024, 'a'))},
      {.stop_token_ids = {0, kVocabularySize - 1}},
      {.logprobs = 1024},
      {.logit_bias = {{0, -1e9}, {kVocabularySize - 1, 100.0}}},
  };
  for (std::size_t i = 0; i < accepted.size(); ++i) {
    const auto result = validate(accepted[i], kVocabularySize);
    EXPECT_TRUE(result) << i << ": " << result.error().message;
  }
}

TEST(SamplingParams, RefusesWhatIsOutOfRangeAndNamesTheOption) {
  constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  struct Case {
    std::string option;
    SamplingParams params;
  };
  const std::vector<Case> cases = {
      {"n", {.n = 0}},
      {"n", {.n = 1025}},
      {"best_of", {.n = 3, .best_of = 2}},
      {"best_of", {.best_of = 1025}},
      {"best_of", {.best_of = 2, .beam_width = 2}},
      {"allowed_token_ids", {.allowed_token_ids = std::vector<TokenId>()}},
      {"allowed_token_ids", {.allowed_token_ids = {{kVocabularySize}}}},
      {"bad_words", {.bad_words = {""}}},
      {"bad_words", {.bad_words = {std::string(1025, 'a')}}},
      {"bad_words", {.bad_words = std::vector<std::string>(1025, "a")}},
      {"logprob_token_ids", {.logprob_token_ids = {-1}}},
      {"logprob_token_ids", {.logprob_token_ids = std::vector<TokenId>(129, 1)}},
      {"logprobs", {.logprobs = 1, .logprob_token_ids = {1, 2}}},
      {"prompt_logprobs", {.prompt_logprobs = -1}},
      {"prompt_logprobs", {.prompt_logprobs = 1025}},
      {"temperature", {.temperature = -0.1}},
      {"temperature", {.temperature = kNaN}},
      {"temperature", {.temperature = kInfinity}},
      {"top_p", {.top_p = 0.0}},
      {"top_p", {.top_p = 1.0001}},
      {"top_p", {.top_p = kNaN}},
      {"top_k", {.top_k = -2}},
      {"min_p", {.min_p = -0.1}},
      {"min_p", {.min_p = 1.1}},
      {"presence_penalty", {.presence_penalty = 2.1}},
      {"presence_penalty", {.presence_penalty = kNaN}},
      {"frequency_penalty", {.frequency_penalty = -2.1}},
      {"repetition_penalty", {.repetition_penalty = 0.0}},
      {"repetition_penalty", {.repetition_penalty = kInfinity}},
      {"max_tokens", {.max_tokens = 0}},
      {"min_tokens", {.min_tokens = -1}},
      {"min_tokens", {.max_tokens = 4, .min_tokens = 5}},
      {"stop", {.stop = {""}}},
      {"stop", {.stop = std::vector<std::string>(65, "a")}},
      {"stop", {.stop = {std::string(1025, 'a')}}},
      {"stop_token_ids", {.stop_token_ids = {-1}}},
      {"stop_token_ids", {.stop_token_ids = {kVocabularySize}}},
      {"logprobs", {.logprobs = -1}},
      {"logprobs", {.logprobs = 1025}},
      {"logit_bias", {.logit_bias = {{kVocabularySize, 1.0}}}},
      {"logit_bias", {.logit_bias = {{-1, 1.0}}}},
      {"logit_bias", {.logit_bias = {{1, kNaN}}}},
      {"logit_bias", {.logit_bias = {{1, -kInfinity}}}},
      {"length_penalty", {.length_penalty = kNaN}},
  };
  for (const Case& c : cases) {
    const auto result = validate(c.params, kVocabularySize);
    ASSERT_FALSE(result) << c.option;
    EXPECT_EQ(result.error().code, ErrorCode::kInvalidArgument);
    EXPECT_EQ(result.error().subject, c.option);
    EXPECT_EQ(result.error().message.rfind(c.option, 0), 0u) << result.error().message;
    EXPECT_EQ(result.error().message.find('\n'), std::string::npos);
  }
}

TEST(SamplingParams, BoundsBeamsByTheVocabulary) {
  EXPECT_TRUE(validate({.beam_width = 4}, kVocabularySize));
  for (const std::int32_t width : {0, -1, kVocabularySize, 1'000'000}) {
    const auto result = validate({.beam_width = width}, kVocabularySize);
    ASSERT_FALSE(result) << width;
    EXPECT_EQ(result.error().code, ErrorCode::kInvalidArgument);
    EXPECT_EQ(result.error().subject, "beam_width");
  }
  EXPECT_EQ(SamplingParams({.n = 3}).num_outputs(), 3);
  EXPECT_EQ(SamplingParams({.n = 3, .beam_width = 4}).num_outputs(), 4);
  EXPECT_EQ(SamplingParams({.n = 3, .best_of = 5}).num_outputs(), 3);
  EXPECT_EQ(SamplingParams({.n = 3, .best_of = 5}).num_sequences(), 5);
}

}  // namespace
}  // namespace octavo
