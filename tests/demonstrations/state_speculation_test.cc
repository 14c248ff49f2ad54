// Guessing ahead on models that keep states, and by models that guess themselves: the same bits as without,
// whatever the pool does, and a turn that ends within a draft is gone on from exactly. On tiny models whose
// texts can be guessed.
#include <gtest/gtest.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "engine/engine.h"
#include "tests/demonstrations/mixed_requests.h"
#include "tests/engine/default_model.h"
#include "tests/support/environment.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/tiny_models.h"

namespace octavo {
namespace {

constexpr TokenRange kWords = {3, static_cast<TokenId>(test::kTinyVocabularySize) - 1};

bool is_any_of(const std::string& name, std::initializer_list<const char*> ends) {
  return std::ranges::any_of(ends, [&](const char* end) { return name.ends_with(end); });
}

// Layers add little to a token's row, so that the next one follows from it most of the time, and texts come
// round again. What guesses next tokens passes the last one's row on.
test::GgufWriter make_predictable_model(nlohmann::json model) {
  const std::size_t width = model["keys"]["embedding_length"];
  std::vector<std::string> passing_on;
  nlohmann::json tensors = nlohmann::json::array();
  for (nlohmann::json& tensor : model["tensors"]) {
    const std::string name = tensor[0];
    if (is_any_of(name, {"attn_output.weight", "ffn_down.weight", "ssm_out.weight", "out_proj.weight"}))
      tensor[4] = tensor[4].get<float>() / 8.0f;
    if (is_any_of(name, {"ffn_down_exps.weight", "ffn_down_shexp.weight"}))
      tensor[4] = tensor[4].get<float>() / 64.0f;
    if (name.ends_with("nextn.eh_proj.weight")) passing_on.push_back(name);
    if (!is_any_of(name,
                   {"nextn.eh_proj.weight", "nextn.embed_tokens.weight", "nextn.shared_head_head.weight"}))
      tensors.push_back(tensor);
  }
  model["tensors"] = tensors;
  test::GgufWriter writer = test::make_tiny_model(model, {.context_length = 512});
  for (const std::string& name : passing_on) {
    std::vector<float> identity(2 * width * width);
    for (std::size_t i = 0; i < width; ++i) identity[i * 2 * width + i] = 1.0f;
    writer.add_tensor_f32(name, {2 * width, width}, identity);
  }
  return writer;
}

std::unique_ptr<Engine> open(const std::string& name, EngineOptions options) {
  static const test::TemporaryFolder folder;
  const auto file = folder / (name + ".gguf");
  if (!std::filesystem::exists(file)) make_predictable_model(test::tiny_model(name)).write(file);
  options.model = file.string();
  return open_untimed(std::move(options));
}

std::vector<TokenId> text(int num_tokens, std::uint64_t seed) {
  simulation::Random random(seed);
  std::vector<TokenId> tokens;
  for (int i = 0; i < num_tokens; ++i) tokens.push_back(random.between(kWords.first, kWords.last));
  return tokens;
}

std::vector<TokenId> joined(std::vector<TokenId> first, const std::vector<TokenId>& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

// A beginning, what the model goes on with, and the last token of the beginning again: from there it mostly
// goes the same way.
std::vector<TokenId> text_that_comes_again(Engine& engine) {
  GenerationRequest request{.prompt = TokenPrompt{text(30, 1)}};
  request.sampling.temperature = 0.0;
  request.sampling.max_tokens = 30;
  request.sampling.ignore_eos = true;
  const RequestOutput output = run_alone(engine, request);
  return joined(joined(text(30, 1), output.outputs.at(0).token_ids), {text(30, 1).back()});
}

// Of every kind, and some whose texts were there before.
std::vector<GenerationRequest> requests(const std::vector<TokenId>& again) {
  std::vector<GenerationRequest> all = mixed_requests(5, 16, 40, kWords);
  const std::vector<SamplingParams> samplings = {
      {.temperature = 0.0, .max_tokens = 80, .ignore_eos = true, .logprobs = 3},
      {.n = 3, .temperature = 0.6, .seed = 1, .max_tokens = 40, .ignore_eos = true},
      {.temperature = 0.4, .presence_penalty = 0.2, .seed = 3, .max_tokens = 60, .ignore_eos = true},
      {.temperature = 0.0, .max_tokens = 60, .min_tokens = 20},
      {.max_tokens = 20, .beam_width = 3}};
  for (const SamplingParams& sampling : samplings)
    all.push_back({.prompt = TokenPrompt{again}, .sampling = sampling});
  return all;
}

struct Guessing {
  const char* model;
  Speculation speculative;
};

std::string name_of(const testing::TestParamInfo<Guessing>& info) {
  std::string name = std::string(info.param.model) +
                     (info.param.speculative == Speculation::kMtp ? "_by_itself" : "_by_its_text");
  std::ranges::replace(name, '-', '_');
  return name;
}

class GuessingAhead : public testing::TestWithParam<Guessing> {};

INSTANTIATE_TEST_SUITE_P(Models, GuessingAhead,
                         testing::Values(Guessing{"qwen35_odd_sizes", Speculation::kNgram},
                                         Guessing{"qwen35_odd_sizes", Speculation::kMtp},
                                         Guessing{"qwen35moe", Speculation::kNgram},
                                         Guessing{"qwen35moe", Speculation::kMtp},
                                         Guessing{"glm4moe_predicts", Speculation::kMtp},
                                         Guessing{"qwen3next_packed", Speculation::kNgram},
                                         Guessing{"granitehybrid_with_experts", Speculation::kNgram},
                                         Guessing{"falcon-h1", Speculation::kNgram},
                                         Guessing{"nemotron_h", Speculation::kNgram},
                                         Guessing{"lfm2_odd_sizes", Speculation::kNgram}),
                         name_of);

TEST_P(GuessingAhead, GivesTheSameBitsWhateverThePoolDoes) {
  const auto [model, speculative] = GetParam();
  const auto plain = open(model, {.threads = 1, .num_kv_blocks = 1000, .max_num_seqs = 4});
  const std::vector<GenerationRequest> asked = requests(text_that_comes_again(*plain));
  const std::vector<RequestOutput> expected = run_together(*plain, asked);
  const std::vector<EngineOptions> conditions = {
      {.threads = 1, .num_kv_blocks = 1000, .max_num_seqs = 4},
      {.threads = 2,
       .block_size = 8,
       .num_kv_blocks = 40,
       .num_states = 6,
       .max_num_seqs = 4,
       .max_num_batched_tokens = 7,
       .preemption_mode = PreemptionPolicy::kSwap},
      {.threads = 2,
       .block_size = 4,
       .num_kv_blocks = 70,
       .swap_space = 0.0,
       .num_states = 4,
       .max_num_seqs = 4,
       .max_num_batched_tokens = 64,
       .preemption_mode = PreemptionPolicy::kRecompute},
      {.threads = 1, .num_kv_blocks = 60, .max_num_seqs = 4, .enable_prefix_caching = false}};
  std::int32_t num_drafted = 0, num_accepted = 0;
  for (std::size_t i = 0; i < conditions.size(); ++i) {
    EngineOptions options = conditions[i];
    options.speculative = speculative;
    const std::vector<RequestOutput> outputs = run_together(*open(model, options), asked);
    EXPECT_EQ(first_difference(outputs, expected), "") << "condition " << i;
    for (const RequestOutput& output : outputs) {
      num_drafted += output.metrics.num_draft_tokens;
      num_accepted += output.metrics.num_accepted_tokens;
    }
  }
  EXPECT_GT(num_accepted, 10);
  EXPECT_GT(num_drafted, num_accepted) << "some guesses are wrong";
}

// The end may be a guess, with others behind it that came true, too: none of them is in what is gone on from.
TEST_P(GuessingAhead, ATurnThatEndsWithinADraftIsResumedExactly) {
  const auto [model, speculative] = GetParam();
  const auto plain = open(model, {.threads = 1, .num_kv_blocks = 200, .max_num_seqs = 2});
  const std::vector<TokenId> prompt = text_that_comes_again(*plain);
  GenerationRequest question{.prompt = TokenPrompt{prompt}};
  question.sampling.temperature = 0.0;
  question.sampling.ignore_eos = true;
  question.sampling.max_tokens = 30;
  const RequestOutput whole = run_alone(*plain, question);
  ASSERT_FALSE(whole.error);
  std::int32_t num_accepted = 0;
  for (std::int32_t length = 1; length < 30; length += 3) {
    const auto engine =
        open(model, {.threads = 1, .num_kv_blocks = 200, .max_num_seqs = 2, .speculative = speculative});
    GenerationRequest turn = question;
    turn.sampling.stop_token_ids = {whole.outputs[0].token_ids[static_cast<std::size_t>(length)]};
    const RequestOutput first = run_alone(*engine, turn);
    ASSERT_FALSE(first.error);
    num_accepted += first.metrics.num_accepted_tokens;
    const auto num_computed = static_cast<std::int32_t>(prompt.size()) +
                              static_cast<std::int32_t>(first.outputs[0].token_ids.size()) - 1;
    GenerationRequest next = question;
    next.prompt = TokenPrompt{joined(
        joined(std::get<TokenPrompt>(question.prompt).token_ids, first.outputs[0].token_ids), text(20, 2))};
    const RequestOutput second = run_alone(*engine, next);
    EXPECT_EQ(second.num_cached_tokens, num_computed) << "stopped at token " << length;
    EXPECT_EQ(first_difference({second}, {run_alone(*plain, next)}), "") << "stopped at token " << length;
  }
  EXPECT_GT(num_accepted, 5);
}

TEST(GuessingAhead, AModelThatCannotGuessItselfIsRefusedInOneSentence) {
  EXPECT_THROW(
      {
        try {
          open("qwen35", {.num_kv_blocks = 64, .speculative = Speculation::kMtp});
        } catch (const std::runtime_error& error) {
          EXPECT_EQ(
              std::string(error.what()),
              "speculative is mtp, but this model has no layer that predicts further tokens; use ngram, or "
              "choose a file that has one");
          throw;
        }
      },
      std::runtime_error);
}

TEST(GuessingAhead, ALayerForItIsMoreWeightsAndALayerMoreOfKeysAndValues) {
  const auto plain = open("qwen35_odd_sizes", {.num_kv_blocks = 64});
  const auto guessing = open("qwen35_odd_sizes", {.num_kv_blocks = 64, .speculative = Speculation::kMtp});
  EXPECT_GT(guessing->description().weight_bytes, plain->description().weight_bytes);
  EXPECT_EQ(guessing->description().bytes_per_block, 2 * plain->description().bytes_per_block)
      << "one of its layers has attention";
  EXPECT_GT(guessing->description().working_bytes, plain->description().working_bytes);
}

}  // namespace
}  // namespace octavo
