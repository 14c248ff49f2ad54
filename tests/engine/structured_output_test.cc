// Outputs that must have a form, on the default model: valid whatever is drawn, and the same tokens whatever
// runs beside them.

#include <gtest/gtest.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "tests/engine/default_model.h"
#include "tests/grammar/random_schema.h"
#include "tests/grammar/schema_validator.h"

namespace octavo {
namespace {

using nlohmann::json;

GenerationRequest structured_request(StructuredOutput wanted, std::uint64_t seed,
                                     SamplingParams sampling = {}) {
  sampling.structured_output = std::move(wanted);
  sampling.seed = seed;
  if (sampling.max_tokens == 16) sampling.max_tokens = 160;
  return text_request("Here is the record as JSON:\n", std::move(sampling));
}

// How many ended; each of those is valid.
int count_valid(const RequestOutput& answer, const json& schema) {
  EXPECT_FALSE(answer.error) << answer.error->message;
  int num_ended = 0;
  for (const CompletionOutput& output : answer.outputs) {
    if (output.finish_reason != FinishReason::kStop) continue;
    ++num_ended;
    const json value = json::parse(output.text, nullptr, false);
    EXPECT_EQ(value.is_discarded() ? "no JSON" : testing::problem_of(value, schema, schema), "")
        << output.text;
  }
  return num_ended;
}

std::vector<std::vector<TokenId>> tokens_of(const std::vector<RequestOutput>& answers) {
  std::vector<std::vector<TokenId>> tokens;
  for (const RequestOutput& answer : answers) {
    EXPECT_FALSE(answer.error) << answer.error->message;
    for (const CompletionOutput& output : answer.outputs) tokens.push_back(output.token_ids);
  }
  return tokens;
}

std::vector<GenerationRequest> mixed_requests() {
  std::vector<GenerationRequest> requests;
  for (std::uint64_t seed = 0; seed < 6; ++seed) {
    const json schema = testing::SchemaDrawer(seed).draw();
    requests.push_back(
        structured_request(JsonSchema{schema.dump()}, seed, {.n = seed % 3 == 0 ? 3 : 1, .max_tokens = 60}));
  }
  requests.push_back(structured_request(JsonSchema{testing::SchemaDrawer(6).draw().dump()}, 7,
                                        {.max_tokens = 24, .beam_width = 3}));
  requests.push_back(structured_request(RegularExpression{"(ab|cd){3,9} [0-9]+\\."}, 8, {.max_tokens = 40}));
  return requests;
}

TEST(StructuredOutput, IsValidByItsSchemaWhateverIsDrawn) {
  OCTAVO_NEEDS_DEFAULT_MODEL();
  const auto engine = open_default_model({.num_kv_blocks = 2000, .max_num_seqs = 32});
  std::vector<GenerationRequest> requests;
  std::vector<json> schemas;
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    schemas.push_back(testing::SchemaDrawer(seed).draw());
    requests.push_back(structured_request(JsonSchema{schemas.back().dump()}, seed,
                                          {.n = 2, .temperature = seed % 3 == 0 ? 0.0 : 1.2}));
  }
  const auto answers = run_together(*engine, std::move(requests));
  int num_ended = 0;
  for (std::size_t i = 0; i < answers.size(); ++i) num_ended += count_valid(answers[i], schemas[i]);
  EXPECT_GT(num_ended, 12);
}

TEST(StructuredOutput, IsTheSameWhateverRunsBesideIt) {
  OCTAVO_NEEDS_DEFAULT_MODEL();
  std::vector<std::vector<TokenId>> alone;
  {
    const auto engine = open_default_model({.num_kv_blocks = 600});
    for (GenerationRequest& request : mixed_requests()) {
      for (auto& tokens : tokens_of({run_alone(*engine, std::move(request))}))
        alone.push_back(std::move(tokens));
    }
  }
  for (const PreemptionPolicy mode : {PreemptionPolicy::kSwap, PreemptionPolicy::kRecompute}) {
    const auto engine = open_default_model({.num_kv_blocks = 9,
                                            .max_model_len = 128,
                                            .preemption_mode = mode,
                                            .admission_reserve = AdmissionReserve::kOnePercent});
    EXPECT_EQ(tokens_of(run_together(*engine, mixed_requests())), alone);
    const KvTotals totals = engine->kv_totals();
    EXPECT_GT(totals.preempted_swap + totals.preempted_recompute, 0) << "the pool was large enough for all";
  }
  const auto engine = open_default_model({.num_kv_blocks = 600, .speculative = Speculation::kNgram});
  EXPECT_EQ(tokens_of(run_together(*engine, mixed_requests())), alone);
}

TEST(StructuredOutput, HoldsBeamsAndChoicesToTheirForm) {
  OCTAVO_NEEDS_DEFAULT_MODEL();
  const auto engine = open_default_model({.num_kv_blocks = 600});
  const RequestOutput beams = run_alone(
      *engine,
      structured_request(
          JsonSchema{R"({"type":"object","properties":{"ok":{"type":"boolean"}},"required":["ok"]})"}, 1,
          {.max_tokens = 24, .beam_width = 4}));
  ASSERT_FALSE(beams.error) << beams.error->message;
  for (const CompletionOutput& output : beams.outputs) {
    if (output.finish_reason != FinishReason::kStop) continue;
    const json value = json::parse(output.text, nullptr, false);
    ASSERT_TRUE(value.is_object()) << output.text;
    EXPECT_TRUE(value["ok"].is_boolean()) << output.text;
  }
  const RequestOutput choice =
      run_alone(*engine, structured_request(ChoiceOfTexts{{"positive", "negative"}}, 2, {.n = 8}));
  for (const CompletionOutput& output : choice.outputs) {
    EXPECT_TRUE(output.text == "positive" || output.text == "negative") << output.text;
    EXPECT_EQ(output.finish_reason, FinishReason::kStop);
  }
}

TEST(StructuredOutput, SaysWhatWins) {
  OCTAVO_NEEDS_DEFAULT_MODEL();
  const auto engine = open_default_model({.num_kv_blocks = 600});
  const RequestOutput short_form =
      run_alone(*engine, structured_request(RegularExpression{"[0-9]{2}"}, 1, {.min_tokens = 20}));
  ASSERT_FALSE(short_form.error);
  EXPECT_EQ(short_form.outputs.at(0).text.size(), 2u)
      << "min_tokens does not keep from ending what cannot go on";
  const RequestOutput stopped =
      run_alone(*engine, structured_request(RegularExpression{"ab[0-9]c[0-9]*"}, 1, {.stop = {"c"}}));
  EXPECT_EQ(stopped.outputs.at(0).text.size(), 3u) << stopped.outputs.at(0).text;
  EXPECT_EQ(std::get<std::string>(stopped.outputs.at(0).stop_reason), "c");
  const RequestOutput cut =
      run_alone(*engine, structured_request(RegularExpression{"(abcdefgh){9}"}, 1, {.max_tokens = 3}));
  EXPECT_EQ(cut.outputs.at(0).finish_reason, FinishReason::kLength);
  const std::vector<std::pair<SamplingParams, std::string>> contradictions = {
      {{.ignore_eos = true}, "ignore_eos"},
      {{.allowed_token_ids = {{500, 501}}}, "allowed_token_ids"},
      {{.allowed_token_ids = {{2}}}, "no token could come next"},
  };
  for (const auto& [sampling, part] : contradictions) {
    const RequestOutput refused =
        run_alone(*engine, structured_request(RegularExpression{"x+"}, 1, sampling));
    ASSERT_TRUE(refused.error);
    EXPECT_NE(refused.error->message.find(part), std::string::npos) << refused.error->message;
  }
}

// A grammar that takes the compiler all its time holds up nobody, nor the engine's end.
TEST(StructuredOutput, WaitsForItsGrammarAlone) {
  OCTAVO_NEEDS_DEFAULT_MODEL();
  const auto engine = open_default_model({.num_kv_blocks = 600});
  const std::string hostile = "((((a{1,99}b?){1,99}c?){1,99}){1,99})";
  const RequestId held_up = engine->submit(structured_request(RegularExpression{hostile}, 1));
  const RequestOutput plain =
      run_alone(*engine, text_request("Hello", {.temperature = 0.0, .max_tokens = 4}));
  EXPECT_FALSE(plain.error);
  const RequestOutput other = run_alone(*engine, structured_request(ChoiceOfTexts{{"yes", "no"}}, 1));
  EXPECT_FALSE(other.error);
  engine->cancel(held_up);
  OutputCollector collector;
  collector.expect(held_up, 1);
  while (!collector.done()) {
    for (const EngineEvent& event : engine->poll(std::chrono::seconds(1))) collector.add(event);
  }
  const RequestOutput cancelled = collector.take().front();
  EXPECT_TRUE(cancelled.error || cancelled.outputs.at(0).finish_reason == FinishReason::kAbort);
  engine->submit(structured_request(RegularExpression{hostile + "d"}, 1));
  engine->stop();
}

}  // namespace
}  // namespace octavo
