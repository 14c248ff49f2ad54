// Beam search on the default model against the float32 reference, tests/golden.

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>

#include <nlohmann/json.hpp>

#include "tests/engine/default_model.h"
#include "tests/support/paths.h"

namespace octavo {
namespace {

TEST(Beams, AreThoseOfTheReference) {
  OCTAVO_NEEDS_DEFAULT_MODEL();
  std::ifstream file(test::source_folder() / "tests/golden/smollm2-135m-instruct-q4_1.json");
  const auto entries = nlohmann::json::parse(file);
  const auto engine = open_default_model({.activation_dtype = ActivationType::kF32, .num_kv_blocks = 200});
  int num_entries = 0;
  for (const auto& entry : entries) {
    if (!entry.contains("beams")) continue;
    ++num_entries;
    SamplingParams sampling{.max_tokens = 16, .ignore_eos = true, .beam_width = entry["beam_width"]};
    const RequestOutput output = run_alone(
        *engine,
        {.prompt = TokenPrompt{entry["token_ids"].get<std::vector<TokenId>>()}, .sampling = sampling});
    ASSERT_EQ(output.outputs.size(), entry["beams"].size());
    for (std::size_t i = 0; i < output.outputs.size(); ++i) {
      const CompletionOutput& beam = output.outputs[i];
      EXPECT_EQ(beam.token_ids, entry["beams"][i][0].get<std::vector<TokenId>>()) << "beam " << i;
      EXPECT_NEAR(beam.cumulative_logprob, entry["beams"][i][1].get<double>(), 0.05) << "beam " << i;
      EXPECT_DOUBLE_EQ(*beam.score, beam.cumulative_logprob / 16.0);
    }
    EXPECT_EQ(output.beam_steps.size(), 16u);
  }
  EXPECT_GE(num_entries, 1);
}

TEST(Beams, EndWhereTheModelEnds) {
  OCTAVO_NEEDS_DEFAULT_MODEL();
  const auto engine = open_default_model({.num_kv_blocks = 200});
  SamplingParams sampling{.max_tokens = 48, .beam_width = 3, .length_penalty = 0.7};
  const GenerationRequest chat{.prompt = ChatPrompt{{{Role::kUser, "Say yes or no.", {}}}},
                               .sampling = sampling};
  const RequestOutput output = run_alone(*engine, chat);
  constexpr TokenId kImEnd = 2;  // <|im_end|>
  ASSERT_EQ(output.outputs.size(), 3u);
  int num_ended = 0;
  for (const CompletionOutput& beam : output.outputs) {
    const bool has_ended = beam.token_ids.back() == kImEnd;
    EXPECT_EQ(beam.finish_reason, has_ended ? FinishReason::kStop : FinishReason::kLength);
    EXPECT_EQ(std::ranges::count(beam.token_ids, kImEnd), has_ended ? 1 : 0);
    EXPECT_TRUE(has_ended || beam.token_ids.size() == 48) << beam.text;
    num_ended += has_ended ? 1 : 0;
  }
  EXPECT_GE(num_ended, 1);
}

}  // namespace
}  // namespace octavo
