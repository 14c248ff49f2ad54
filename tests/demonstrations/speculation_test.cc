// Guessing ahead changes no bit of any answer, and saves steps where a text comes again. On the default
// model.

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/demonstrations/mixed_requests.h"
#include "tests/engine/default_model.h"
#include "tests/support/sweep.h"

namespace octavo {
namespace {

constexpr int kLongestOutput = 40;

constexpr const char* kText =
    "The harbour of Ellingford was built in 1742 by a company of merchants who wanted to trade in salt, wool "
    "and "
    "timber. For nearly a hundred years it was the busiest port on that part of the coast. When the railway "
    "came "
    "in 1851 most of the trade moved inland, and the harbour slowly filled with sand.\n";

// Texts that come again, drawn in every way, among others that do not.
std::vector<GenerationRequest> requests() {
  std::vector<GenerationRequest> all = mixed_requests(5, test::is_full_sweep() ? 40 : 4, kLongestOutput);
  const std::string twice = std::string(kText) + kText;
  const std::vector<SamplingParams> samplings = {
      {.temperature = 0.0, .max_tokens = 120},
      {.temperature = 0.0, .max_tokens = 60, .min_tokens = 50, .stop = {"railway"}, .logprobs = 3},
      {.n = 3, .temperature = 0.7, .top_p = 0.9, .seed = 1, .max_tokens = 60},
      {.temperature = 1.0, .top_k = 20, .seed = 2, .max_tokens = 60},
      {.temperature = 0.8, .presence_penalty = 0.2, .frequency_penalty = 0.3, .seed = 3, .max_tokens = 60},
      {.temperature = 0.0, .repetition_penalty = 1.1, .max_tokens = 60},
      {.max_tokens = 30, .beam_width = 3},
      // Follows the text but for some words, where guesses are wrong; the last, so that it also runs alone.
      {.temperature = 0.0,
       .max_tokens = 120,
       .bad_words = {" salt", " wool", " hundred", " busiest", " railway", " trade", " inland", " sand"}}};
  for (const SamplingParams& sampling : samplings) {
    all.push_back(text_request(twice + std::string(kText).substr(0, 60), sampling));
  }
  return all;
}

struct Variant {
  std::string name;
  EngineOptions options;
};

class SpeculationOnARealModel : public testing::TestWithParam<Variant> {};

TEST_P(SpeculationOnARealModel, GivesTheSameBits) {
  OCTAVO_NEEDS_DEFAULT_MODEL();
  static const std::vector<RequestOutput> expected =
      run_together(*open_default_model({.num_kv_blocks = 4000}), requests());
  EngineOptions options = GetParam().options;
  options.speculative = Speculation::kNgram;
  const auto outputs = run_together(*open_default_model(options), requests());
  EXPECT_EQ(first_difference(outputs, expected), "");
  std::int32_t num_drafted = 0, num_accepted = 0;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    num_drafted += outputs[i].metrics.num_draft_tokens;
    num_accepted += outputs[i].metrics.num_accepted_tokens;
    EXPECT_EQ(expected[i].metrics.num_draft_tokens, 0);
    for (std::size_t k = 0; k < outputs[i].outputs.size(); ++k) {
      const auto &left = outputs[i].outputs[k].top_logprobs, &right = expected[i].outputs[k].top_logprobs;
      ASSERT_EQ(left.size(), right.size());
      for (std::size_t t = 0; t < left.size(); ++t) {
        EXPECT_TRUE(std::ranges::equal(left[t], right[t],
                                       [](const TokenLogprob& a, const TokenLogprob& b) {
                                         return a.token_id == b.token_id && a.logprob == b.logprob;
                                       }))
            << "request " << i << ", token " << t;
      }
    }
  }
  EXPECT_GT(num_accepted, 50);
  EXPECT_GT(num_drafted, num_accepted) << "some guesses are wrong";
}

// Few sequences at a time: larger batches do not guess.
INSTANTIATE_TEST_SUITE_P(
    Pools, SpeculationOnARealModel,
    testing::Values(
        Variant{"Roomy", {.num_kv_blocks = 4000, .max_num_seqs = 4}},
        Variant{"TightWithSmallBlocks", {.block_size = 8, .num_kv_blocks = 60, .max_num_seqs = 5}},
        Variant{"OneThreadUncached",
                {.threads = 1, .num_kv_blocks = 300, .max_num_seqs = 4, .enable_prefix_caching = false}}),
    [](const testing::TestParamInfo<Variant>& info) { return info.param.name; });

TEST(Speculation, ATextThatIsRepeatedTakesLessThanHalfTheSteps) {
  OCTAVO_NEEDS_DEFAULT_MODEL();
  const auto engine = open_default_model({.num_kv_blocks = 400, .speculative = Speculation::kNgram});
  const std::string twice = std::string(kText) + kText;
  const RequestOutput output =
      run_alone(*engine, text_request(twice, {.temperature = 0.0, .max_tokens = 200, .ignore_eos = true}));
  const RequestMetrics& metrics = output.metrics;
  EXPECT_GT(metrics.num_accepted_tokens, 0.7 * metrics.num_draft_tokens);
  EXPECT_LT(200 - metrics.num_accepted_tokens, 100) << "steps";
}

}  // namespace
}  // namespace octavo
