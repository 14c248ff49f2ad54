// The same request gives the same bits on every instruction set and with every KV type, activation type,
// block size, chunk, pool, kind of preemption and number of threads, whatever else runs. On models of a few
// random layers, so that the combinations fit into a minute; equality_test.cc does a part of it on the
// default model.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "kernels/backends.h"
#include "tests/demonstrations/mixed_requests.h"
#include "tests/engine/default_model.h"
#include "tests/support/environment.h"
#include "tests/support/gguf_writer.h"
#include "tests/support/sweep.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/tiny_models.h"

namespace octavo {
namespace {

constexpr int kNumRequests = 48;
constexpr int kLongestOutput = 30;
constexpr TokenRange kWords = {3, static_cast<TokenId>(test::kTinyVocabularySize) - 1};

// A model with the grouping of heads of the default one, and 4-bit weights.
std::string tiny_model() {
  static const test::TemporaryFolder folder;
  static const std::string path = [] {
    const auto file = folder / "tiny.gguf";
    test::make_tiny_llama(11, {.weight_type = kernels::TensorType::kQ4_1,
                               .embedding_length = 96,
                               .feed_forward_length = 160,
                               .num_heads = 6,
                               .num_kv_heads = 2})
        .write(file);
    return file.string();
  }();
  return path;
}

// Of tests/golden/tiny_models.json, with 4-bit weights and a context that holds the requests. Windows of 90
// tokens begin and end inside of blocks and ranges of positions.
std::string tiny_model_of(const std::string& name, std::int32_t window = 90) {
  static const test::TemporaryFolder folder;
  const auto file = folder / (name + "_" + std::to_string(window) + ".gguf");
  const nlohmann::json model = test::tiny_model(name);
  test::TinyModelOptions options{.weight_type = kernels::TensorType::kQ4_1, .context_length = 512};
  if (model["keys"].contains("attention.sliding_window")) options.window = window;
  test::make_tiny_model(model, options).write(file);
  return file.string();
}

std::unique_ptr<Engine> open_tiny(EngineOptions options, const std::string& instruction_set,
                                  const std::string& model = tiny_model()) {
  const test::EnvironmentVariable forced("OCTAVO_CPU_ISA", instruction_set);
  options.model = model;
  return open_untimed(std::move(options));
}

// A prompt that reaches into the second range of positions; the first 280 tokens are those of all such.
GenerationRequest long_request(simulation::Random& random) {
  TokenPrompt prompt;
  for (int i = 0; i < 280; ++i)
    prompt.token_ids.push_back(kWords.first + i * i % (kWords.last - kWords.first));
  for (int i = random.between(1, 40); i > 0; --i) {
    prompt.token_ids.push_back(random.between(kWords.first, kWords.last));
  }
  GenerationRequest request{.prompt = std::move(prompt)};
  request.sampling.n = random.between(1, 2);
  request.sampling.seed = 5;
  request.sampling.max_tokens = kLongestOutput;
  return request;
}

// Every logit shows in the log-probabilities of all tokens.
std::vector<GenerationRequest> requests() {
  simulation::Random random(3);
  auto requests = mixed_requests(5, kNumRequests, kLongestOutput, kWords);
  for (std::size_t index : {7, 8, 20, 40, 41}) requests[index] = long_request(random);
  for (GenerationRequest& request : requests) {
    if (!request.sampling.beam_width) request.sampling.logprobs = test::kTinyVocabularySize;
  }
  return requests;
}

// What one number is made with. Nothing else may show in a result.
struct Arithmetic {
  KvCacheType kv_cache_dtype;
  ActivationType activation_dtype;
};

EngineOptions with(Arithmetic arithmetic, EngineOptions options) {
  options.kv_cache_dtype = arithmetic.kv_cache_dtype;
  options.activation_dtype = arithmetic.activation_dtype;
  return options;
}

const char* name_of(KvCacheType type) {
  switch (type) {
    case KvCacheType::kAuto: return "auto";
    case KvCacheType::kF32: return "f32";
    case KvCacheType::kF16: return "f16";
    case KvCacheType::kBf16: return "bf16";
    case KvCacheType::kFp8E4m3: return "e4m3";
    case KvCacheType::kFp8E5m2: return "e5m2";
    case KvCacheType::kInt8: return "int8";
  }
  return "";
}

const char* name_of(ActivationType type) {
  switch (type) {
    case ActivationType::kAuto: return "auto";
    case ActivationType::kF32: return "f32";
    case ActivationType::kInt16: return "int16";
    case ActivationType::kInt8: return "int8";
  }
  return "";
}

struct Conditions {
  const char* name;
  EngineOptions options;
  bool preempts;
};

std::vector<Conditions> all_conditions() {
  return {
      {"small blocks, chunks of 7",
       {.threads = 1, .block_size = 8, .num_kv_blocks = 4000, .max_num_batched_tokens = 7},
       false},
      {"blocks of 16, swapping",
       {.threads = 2,
        .num_kv_blocks = 26,
        .num_states = 12,  // of recurrent layers: hardly one for each that runs
        .preemption_mode = PreemptionPolicy::kSwap,
        .admission_reserve = AdmissionReserve::kOnePercent},
       true},
      {"blocks of 32, recomputing, nothing cached",
       {.threads = 3,
        .block_size = 32,
        .num_kv_blocks = 14,
        .max_num_batched_tokens = 50,
        .enable_prefix_caching = false,
        .preemption_mode = PreemptionPolicy::kRecompute,
        .admission_reserve = AdmissionReserve::kOnePercent},
       true},
      {"blocks of 5, few at once, guessing ahead",
       {.threads = 1,
        .block_size = 5,
        .num_kv_blocks = 4000,
        .max_num_seqs = 4,
        .speculative = Speculation::kNgram},
       false},
  };
}

// Where layers with a window of 20 have a pool of their own, for four sequences and a few parts more.
std::vector<Conditions> conditions_of_windows() {
  return {
      {"window parts of 8 tokens, swapping",
       {.threads = 2,
        .block_size = 8,
        .num_kv_blocks = 52,
        .num_window_blocks = 30,
        .max_num_batched_tokens = 20,
        .preemption_mode = PreemptionPolicy::kSwap,
        .admission_reserve = AdmissionReserve::kOnePercent},
       true},
      {"window parts of 16 tokens, recomputing",
       {.threads = 1,
        .num_kv_blocks = 26,
        .num_window_blocks = 22,
        .max_num_batched_tokens = 16,
        .preemption_mode = PreemptionPolicy::kRecompute,
        .admission_reserve = AdmissionReserve::kOnePercent},
       true},
      {"window parts of 5 tokens, guessing ahead",
       {.threads = 3,
        .block_size = 5,
        .num_kv_blocks = 4000,
        .num_window_blocks = 200,
        .speculative = Speculation::kNgram},
       false},
      {"window parts of 16 tokens, in the pool that has the others without being asked",
       {.threads = 1, .num_kv_blocks = 4000},
       false},
  };
}

// Every instruction set, each in one of the conditions: with the next `turn` in the next one, so that four
// turns see every pair. A full sweep takes all pairs every time.
std::vector<std::pair<std::string, Conditions>> cases(std::size_t turn, const std::vector<Conditions>& all) {
  std::vector<std::pair<std::string, Conditions>> cases;
  for (const std::string& instruction_set : kernels::usable_instruction_sets()) {
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (test::is_full_sweep() || i == turn % all.size()) cases.emplace_back(instruction_set, all[i]);
    }
    ++turn;
  }
  return cases;
}

void expect_identity(const std::string& model, Arithmetic arithmetic, std::size_t turn,
                     const std::vector<Conditions>& all = all_conditions(), bool has_windows = false) {
  const auto plain = open_tiny(
      with(arithmetic, {.threads = 1, .num_kv_blocks = 4000, .num_window_blocks = 0}), "portable", model);
  const auto expected = run_together(*plain, requests());
  ASSERT_EQ(first_difference(expected, expected), "") << "no request may fail";
  for (const auto& [instruction_set, conditions] : cases(turn, all)) {
    SCOPED_TRACE(instruction_set + ", " + conditions.name);
    const auto engine = open_tiny(with(arithmetic, conditions.options), instruction_set, model);
    ASSERT_EQ(engine->description().isa, instruction_set);
    EXPECT_EQ(first_difference(run_together(*engine, requests()), expected), "");
    const KvTotals totals = engine->kv_totals();
    EXPECT_EQ(totals.preempted_swap + totals.preempted_recompute > 0, conditions.preempts);
    EXPECT_TRUE(!has_windows || totals.windows.num_left > 100) << totals.windows.num_left;
  }
}

class Identity : public testing::TestWithParam<std::tuple<KvCacheType, ActivationType>> {};

TEST_P(Identity, HoldsOnEveryInstructionSetInAllConditions) {
  const auto [kv_cache_dtype, activation_dtype] = GetParam();
  expect_identity(tiny_model(), {kv_cache_dtype, activation_dtype},
                  static_cast<std::size_t>(kv_cache_dtype) + static_cast<std::size_t>(activation_dtype));
}

class IdentityOfArchitecture : public testing::TestWithParam<std::tuple<const char*, std::size_t>> {};

TEST_P(IdentityOfArchitecture, HoldsOnEveryInstructionSetInAllConditions) {
  const auto [name, turn] = GetParam();
  expect_identity(tiny_model_of(name), {KvCacheType::kF16, ActivationType::kAuto}, turn);
}

INSTANTIATE_TEST_SUITE_P(Architectures, IdentityOfArchitecture,
                         testing::ValuesIn(test::some_of<std::tuple<const char*, std::size_t>>(
                             {{"gemma2", 0},         {"gemma3", 1},
                              {"gpt2", 2},           {"qwen3moe", 3},
                              {"glm4moe", 4},        {"gpt-oss", 5},
                              {"qwen35", 1},         {"qwen35moe", 2},
                              {"qwen3next", 3},      {"lfm2", 4},
                              {"lfm2moe", 5},        {"granitehybrid", 1},
                              {"nemotron_h", 2},     {"falcon-h1", 3},
                              {"gemma4", 6},         {"gemma4_embedded", 7},
                              {"gemma4_experts", 8}, {"deepseek2_groups", 1},
                              {"deepseek2_lite", 2}, {"muse-glimmer", 0},
                              {"llama4", 3},         {"olmo2", 1},
                              {"nemotron_h_moe", 2}, {"command-r", 5},
                              {"phimoe", 4}},
                             3)),
                         [](const auto& info) {
                           std::string name = std::get<0>(info.param);
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

class IdentityOfWindows : public testing::TestWithParam<std::tuple<const char*, std::size_t>> {};

TEST_P(IdentityOfWindows, HoldsWhatTheyHaveLeftBehind) {
  const auto [name, turn] = GetParam();
  expect_identity(tiny_model_of(name, 20), {KvCacheType::kF16, ActivationType::kAuto}, turn,
                  conditions_of_windows(), /*has_windows=*/true);
}

INSTANTIATE_TEST_SUITE_P(Architectures, IdentityOfWindows,
                         testing::Values(std::tuple{"gemma2", 0}, std::tuple{"gemma3", 1},
                                         std::tuple{"gpt-oss", 2}, std::tuple{"llama_with_window", 3},
                                         std::tuple{"gemma4", 0}, std::tuple{"gemma4_embedded", 1},
                                         std::tuple{"muse-glimmer", 2}, std::tuple{"olmo2_windows", 3}),
                         [](const auto& info) {
                           std::string name = std::get<0>(info.param);
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

std::string name_of_parameters(const testing::TestParamInfo<Identity::ParamType>& info) {
  return std::string("Kv_") + name_of(std::get<0>(info.param)) + "_activations_" +
         name_of(std::get<1>(info.param));
}

INSTANTIATE_TEST_SUITE_P(KvTypes, Identity,
                         testing::Combine(testing::Values(KvCacheType::kF32, KvCacheType::kF16,
                                                          KvCacheType::kBf16, KvCacheType::kInt8,
                                                          KvCacheType::kFp8E4m3, KvCacheType::kFp8E5m2),
                                          testing::Values(ActivationType::kAuto)),
                         name_of_parameters);
INSTANTIATE_TEST_SUITE_P(Activations, Identity,
                         testing::Combine(testing::Values(KvCacheType::kF16),
                                          testing::Values(ActivationType::kF32, ActivationType::kInt8)),
                         name_of_parameters);

// Four outputs in a pool for three: nobody ends early, and nobody sees it.
TEST(Identity, AGroupThatOutgrowsThePoolGivesWhatItGivesInALargeOne) {
  GenerationRequest request = mixed_requests(9, 2, 10, kWords)[1];
  std::get<TokenPrompt>(request.prompt).token_ids.resize(40, kWords.first);
  request.sampling.max_tokens = 41;
  request.sampling.ignore_eos = true;
  request.sampling.logprobs = test::kTinyVocabularySize;
  ASSERT_EQ(request.sampling.n, 4);
  const std::string isa = kernels::usable_instruction_sets().front();
  const auto expected = run_together(*open_tiny({.num_kv_blocks = 400}, isa), {request, request});
  for (const auto mode : {PreemptionPolicy::kSwap, PreemptionPolicy::kRecompute, PreemptionPolicy::kAuto}) {
    for (const bool caches : {true, false}) {
      SCOPED_TRACE(testing::Message() << static_cast<int>(mode) << caches);
      // Two full blocks of the prompt, and three for each of three outputs.
      const auto engine =
          open_tiny({.num_kv_blocks = 11, .enable_prefix_caching = caches, .preemption_mode = mode}, isa);
      const auto outputs = run_together(*engine, {request, request});
      EXPECT_EQ(first_difference(outputs, expected), "");
      for (const RequestOutput& answer : outputs) {
        for (const CompletionOutput& output : answer.outputs) {
          EXPECT_EQ(output.token_ids.size(), 41u);
          EXPECT_EQ(output.finish_detail, "");
        }
      }
      const KvTotals totals = engine->kv_totals();
      EXPECT_GE(totals.preempted_swap + totals.preempted_recompute, 2);
      if (mode == PreemptionPolicy::kSwap) {
        EXPECT_EQ(totals.preempted_recompute, 0);
      }
      if (mode == PreemptionPolicy::kRecompute) {
        EXPECT_EQ(totals.preempted_swap, 0);
      }
    }
  }
}

// The request that is run a thousand times, in the middle of others that are never the same.
TEST(Identity, AThousandRunsOfARequestGiveOneOutput) {
  const auto engine = open_tiny(
      {.num_kv_blocks = 20, .max_num_batched_tokens = 48, .admission_reserve = AdmissionReserve::kOnePercent},
      kernels::usable_instruction_sets().front());
  simulation::Random random(8);
  GenerationRequest request = mixed_requests(9, 4, 10, kWords)[3];
  request.sampling.max_tokens = 8;
  request.sampling.ignore_eos = true;
  request.sampling.logprobs = test::kTinyVocabularySize;
  const RequestOutput first = run_alone(*engine, request);
  ASSERT_FALSE(first.error);
  for (std::uint64_t run = 0; run < 1000; ++run) {
    std::vector<GenerationRequest> together = mixed_requests(run, random.between(0, 6), 24, kWords);
    const auto place = together.begin() + random.between(0, static_cast<int>(together.size()));
    const auto index = static_cast<std::size_t>(place - together.begin());
    together.insert(place, request);
    if (random.chance(0.1)) engine->reset_prefix_cache();
    const auto outputs = run_together(*engine, std::move(together));
    ASSERT_EQ(first_difference({outputs[index]}, {first}), "") << "run " << run;
  }
  const KvTotals totals = engine->kv_totals();
  EXPECT_GT(totals.preempted_swap + totals.preempted_recompute, 50);
  EXPECT_GT(totals.prefix_hit_tokens, 1000);
}

}  // namespace
}  // namespace octavo
