// Beams of whole engines on tiny models, against those of Hugging Face transformers on the same weights:
// tests/golden/beams.json, made by tests/golden/make_beams.py.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/engine/default_model.h"
#include "tests/support/paths.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/tiny_models.h"

namespace octavo {
namespace {

using nlohmann::json;

const json& golden() {
  static const json beams = [] {
    std::ifstream file(test::source_folder() / "tests/golden/beams.json");
    return json::parse(file);
  }();
  return beams;
}

json model_named(const std::string& name) {
  for (const json& model : golden()["models"]) {
    if (model["name"] == name) return model;
  }
  throw std::runtime_error("tests/golden/beams.json has no model " + name);
}

std::unique_ptr<Engine> open_exact(const std::filesystem::path& model) {
  auto engine = Engine::create({.model = model.string(),
                                .device = Device::kCpu,
                                .activation_dtype = ActivationType::kF32,
                                .kv_cache_dtype = KvCacheType::kF32,
                                .num_kv_blocks = 512});
  if (!engine) throw std::runtime_error(engine.error().message);
  return *std::move(engine);
}

// "never" is in the file only where it means what false does: for length penalties that are not above 0. We
// have no other "never".
SamplingParams sampling_of(const json& one) {
  SamplingParams sampling{.max_tokens = one["max_tokens"],
                          .beam_width = one["beam_width"].get<std::int32_t>(),
                          .length_penalty = one["length_penalty"],
                          .early_stopping = one["early_stopping"] == true};
  sampling.min_tokens = one.value("min_tokens", 0);
  sampling.repetition_penalty = one.value("repetition_penalty", 1.0);
  sampling.stop_token_ids = one.value("stop_token_ids", std::vector<TokenId>());
  if (!one.contains("logit_bias")) return sampling;
  for (const auto& [token_id, bias] : one["logit_bias"].items())
    sampling.logit_bias[std::stoi(token_id)] = bias;
  return sampling;
}

struct Beam {
  std::vector<TokenId> token_ids;
  double logprob = 0.0;
  double score = 0.0;
};

// Theirs, as we report them. Their score is that of the search; ours is of the model's own log-probabilities,
// and puts the answers in order. Only a bias or a repetition penalty tells the two apart.
std::vector<Beam> expected_beams(const json& one) {
  const bool is_adjusted = one.contains("logit_bias") || one.contains("repetition_penalty");
  std::vector<Beam> beams;
  for (const json& beam : one["beams"]) {
    const std::vector<TokenId> token_ids = beam[0];
    const double logprob = beam[2];
    const double own =
        logprob / std::pow(static_cast<double>(token_ids.size()), one["length_penalty"].get<double>());
    beams.push_back({token_ids, logprob, is_adjusted ? own : beam[1].get<double>()});
  }
  std::ranges::stable_sort(beams, std::greater(), &Beam::score);
  return beams;
}

bool ends_by_token(const json& one, TokenId last) {
  if (last == golden()["end_token_ids"][0]) return true;
  return std::ranges::count(one.value("stop_token_ids", std::vector<TokenId>()), last) == 1;
}

void expect_beams(const RequestOutput& output, const json& one) {
  const std::vector<Beam> expected = expected_beams(one);
  ASSERT_FALSE(output.error) << output.error->message;
  ASSERT_EQ(output.outputs.size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    SCOPED_TRACE("beam " + std::to_string(i));
    const CompletionOutput& beam = output.outputs[i];
    ASSERT_EQ(beam.token_ids, expected[i].token_ids);
    EXPECT_NEAR(beam.cumulative_logprob, expected[i].logprob, 5e-4);
    EXPECT_NEAR(*beam.score, expected[i].score,
                5e-4 * std::max(1.0, expected[i].score / expected[i].logprob));
    EXPECT_EQ(beam.finish_reason,
              ends_by_token(one, beam.token_ids.back()) ? FinishReason::kStop : FinishReason::kLength);
  }
}

class BeamsOfTransformers : public testing::TestWithParam<std::string> {};

TEST_P(BeamsOfTransformers, AreOurs) {
  const json model = model_named(GetParam());
  const test::TemporaryFolder folder;
  test::make_golden_llama(model, golden()["end_token_ids"], model["ends_by"]).write(folder / "model.gguf");
  const auto engine = open_exact(folder / "model.gguf");
  std::vector<json> cases;
  std::vector<GenerationRequest> requests;
  for (const json& one : golden()["cases"]) {
    if (one["model"] != GetParam()) continue;
    cases.push_back(one);
    const std::vector<TokenId> prompt = golden()["prompts"][one["prompt"].get<std::size_t>()];
    requests.push_back({.prompt = TokenPrompt{prompt}, .sampling = sampling_of(one)});
  }
  const std::vector<RequestOutput> outputs = run_together(*engine, std::move(requests));
  for (std::size_t i = 0; i < cases.size(); ++i) {
    SCOPED_TRACE(cases[i].dump());
    expect_beams(outputs[i], cases[i]);
  }
}

INSTANTIATE_TEST_SUITE_P(Models, BeamsOfTransformers,
                         testing::Values("plain", "head_size_apart_biases_untied"),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace octavo
