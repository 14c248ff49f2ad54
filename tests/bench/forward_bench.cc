// How fast the forward pass and the sampler are by themselves, without scheduler and engine:
//   octavo_forward_bench [threads] [f32|int16|int8]
// Prefill: one step of 512 random tokens. Decode: one token a step, greedy. Medians of several runs. The
// sampler draws from the rows that decoding gave.

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string_view>

#include "tests/runner/direct_steps.h"
#include "tests/runner/row_sampler.h"
#include "tests/support/model_files.h"

namespace octavo::runner {
namespace {

constexpr std::size_t kPromptTokens = 512;
constexpr std::size_t kOutputTokens = 64;
constexpr int kRepeats = 5;

double seconds_of(const std::function<void()>& work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

std::vector<TokenId> random_prompt(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<TokenId> token_ids(kPromptTokens);
  for (TokenId& id : token_ids) id = static_cast<TokenId>(random() % 49152);
  return token_ids;
}

void advance(ModelRunner& runner, DirectSequence& sequence) {
  scheduler::SchedulerOutput step;
  step.sequences.push_back(scheduled(sequence, sequence.token_ids.size() - sequence.num_computed_tokens));
  const RunnerOutput output = execute(runner, step);
  sequence.num_computed_tokens = sequence.token_ids.size();
  sequence.token_ids.push_back(output.tokens.at(0).token_id);
}

void measure_forward(ModelRunner& runner) {
  std::vector<double> prefill, decode;
  for (int repeat = 0; repeat < kRepeats; ++repeat) {
    DirectSequence sequence{.sequence_id = {1},
                            .token_ids = random_prompt(static_cast<std::uint64_t>(repeat)),
                            .num_prompt_tokens = kPromptTokens,
                            .sampling = {.temperature = 0.0}};
    sequence.block_table = BlockDealer(64, 16, 1).take_for(kPromptTokens + kOutputTokens);
    prefill.push_back(kPromptTokens / seconds_of([&] { advance(runner, sequence); }));
    decode.push_back(kOutputTokens / seconds_of([&] {
                       for (std::size_t i = 0; i < kOutputTokens; ++i) advance(runner, sequence);
                     }));
  }
  std::printf("prefill %zu tokens: %.0f tokens/s\n", kPromptTokens, median(prefill));
  std::printf("decode after %zu tokens: %.1f tokens/s\n", kPromptTokens, median(decode));
}

// A row of log-probabilities, as a shape of the model's own.
std::vector<float> log_probabilities_after(ModelRunner& runner, std::vector<TokenId> prompt) {
  DirectSequence sequence{.sequence_id = {1}, .token_ids = std::move(prompt)};
  sequence.num_prompt_tokens = sequence.token_ids.size();
  sequence.sampling.logprobs = 49152;
  sequence.block_table = BlockDealer(64, 16, 1).take_for(sequence.token_ids.size());
  scheduler::SchedulerOutput step;
  step.sequences.push_back(scheduled(sequence, sequence.token_ids.size()));
  const RunnerOutput output = execute(runner, step);
  std::vector<float> row(49152);
  for (const TokenLogprob& entry : output.tokens.at(0).top_logprobs) {
    row[static_cast<std::size_t>(entry.token_id)] = entry.logprob;
  }
  return row;
}

void measure_sampler(std::string_view name, const std::vector<float>& row) {
  RowSampler sampler(49152, {2});
  const std::vector<TokenId> prompt = random_prompt(1), output(prompt.begin(), prompt.begin() + 100);
  struct Case {
    const char* name;
    SamplingParams params;
  };
  for (const Case& c :
       {Case{"greedy", {.temperature = 0.0}}, Case{"temperature 1", {}},
        Case{"top_p 0.9", {.temperature = 0.8, .top_p = 0.9}},
        Case{"top_p 0.99", {.temperature = 1.0, .top_p = 0.99}},
        Case{"top_k 40, top_p 0.95", {.top_p = 0.95, .top_k = 40}}, Case{"min_p 0.05", {.min_p = 0.05}},
        Case{"repetition 1.1, greedy", {.temperature = 0.0, .repetition_penalty = 1.1}}}) {
    std::vector<double> runs;
    for (std::uint64_t i = 0; i < 200; ++i) {
      sampler.set_row(row, 0.0f);
      runs.push_back(seconds_of([&] {
        sampler.sample(c.params, prompt, {.sequence_id = {1}, .seed = i, .output_token_ids = output});
      }));
    }
    std::printf("sampler, %.*s row, %s: %.0f us\n", static_cast<int>(name.size()), name.data(), c.name,
                median(runs) * 1e6);
  }
}

constexpr ActivationType kActivations[] = {ActivationType::kF32, ActivationType::kInt16,
                                           ActivationType::kInt8};

const char* name_of(ActivationType activation) {
  if (activation == ActivationType::kF32) return "f32";
  return activation == ActivationType::kInt16 ? "int16" : "int8";
}

ActivationType activation_from(std::string_view name) {
  for (const ActivationType activation : kActivations) {
    if (name == name_of(activation)) return activation;
  }
  return ActivationType::kAuto;
}

int run(std::int32_t threads, ActivationType activation) {
  const auto runner = load_runner(model::default_model_path(),
                                  {.threads = threads, .activation_dtype = activation, .num_kv_blocks = 64});
  EngineDescription description;
  runner->describe(description);
  std::printf("%s, %d threads, %s, weights %.1f MiB\n", description.isa.c_str(), description.threads,
              name_of(description.activation_dtype),
              static_cast<double>(description.weight_bytes) / (1 << 20));
  measure_forward(*runner);
  measure_sampler("flat", log_probabilities_after(*runner, random_prompt(9)));
  measure_sampler("peaked", log_probabilities_after(*runner, {504, 3575, 282, 4649, 314}));
  return 0;
}

}  // namespace
}  // namespace octavo::runner

int main(int argc, char** argv) {
  const std::string missing = octavo::test::missing_default_model();
  if (!missing.empty()) {
    std::fprintf(stderr, "%s\n", missing.c_str());
    return 1;
  }
  const int threads = argc > 1 ? std::atoi(argv[1]) : 0;
  const std::string_view activation = argc > 2 ? argv[2] : "";
  return octavo::runner::run(threads, octavo::runner::activation_from(activation));
}
