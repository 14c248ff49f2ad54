// What grammars cost those who generate within them:
//   octavo_mask_bench [rounds [sequences [tokens [threads]]]]       (9 rounds of 16 sequences of 96 tokens)
// Default model. Each round generates so many tokens for so many sequences, plain and within a grammar that
// they cannot leave (a list of records without an end), greedy and at temperature 1, in turns. Told: tokens a
// second from the last first token to the end, medians over the rounds, and the median of the rounds' ratios.
// The bar: 0.95. Exit status 1 when it is missed.

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "engine/engine.h"
#include "engine/model/model_files.h"

namespace octavo {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kLeastRatio = 0.95;
constexpr const char* kRecords =
    R"({"type":"array","minItems":1000,"items":{"type":"object","properties":{"name":{"type":"string","minLength":3,"maxLength":24},)"
    R"("age":{"type":"integer","minimum":0,"maximum":120},"tags":{"type":"array","minItems":1,"items":{"type":"string"}},)"
    R"("kind":{"enum":["person","place","thing"]}},"required":["name","age","tags","kind"]}})";

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

// Tokens a second of all together, once each has its first.
double tokens_per_s(Engine& engine, int num_sequences, int num_tokens, double temperature,
                    bool is_structured) {
  std::vector<GenerationRequest> requests;
  for (int i = 0; i < num_sequences; ++i) {
    GenerationRequest request{.prompt = TextPrompt{"List " + std::to_string(i) + " of records as JSON: "}};
    request.sampling = {
        .temperature = temperature, .seed = static_cast<std::uint64_t>(i), .max_tokens = num_tokens};
    if (is_structured) {
      request.sampling.structured_output = JsonSchema{kRecords};
    } else {
      request.sampling.ignore_eos = true;
    }
    requests.push_back(std::move(request));
  }
  const std::vector<RequestId> ids = engine.submit_all(std::move(requests));
  std::set<RequestId> begun;
  std::size_t num_finished = 0, num_counted = 0;
  Clock::time_point begin;
  while (num_finished < ids.size()) {
    for (const EngineEvent& event : engine.poll(std::chrono::seconds(1))) {
      if (const auto* const tokens = std::get_if<TokensGenerated>(&event)) {
        if (begun.size() == ids.size()) num_counted += tokens->token_ids.size();
        if (begun.insert(tokens->request_id).second && begun.size() == ids.size()) begin = Clock::now();
      }
      if (const auto* const failed = std::get_if<RequestFailed>(&event)) {
        std::fprintf(stderr, "octavo_mask_bench: %s\n", failed->error.message.c_str());
        std::exit(2);
      }
      num_finished += std::holds_alternative<RequestFinished>(event);
    }
  }
  return static_cast<double>(num_counted) / std::chrono::duration<double>(Clock::now() - begin).count();
}

int number_of(int argc, char** argv, int index, int otherwise) {
  int number = otherwise;
  if (index < argc) std::from_chars(argv[index], argv[index] + std::string_view(argv[index]).size(), number);
  return std::max(number, 1);
}

int measure(int argc, char** argv) {
  const int rounds = number_of(argc, argv, 1, 9), num_sequences = number_of(argc, argv, 2, 16),
            num_tokens = number_of(argc, argv, 3, 96);
  EngineOptions options{.model = model::default_model_path().string()};
  if (argc > 4) options.threads = number_of(argc, argv, 4, 1);
  auto engine = Engine::create(options);
  if (!engine) {
    std::fprintf(stderr, "octavo_mask_bench: %s\n", engine.error().message.c_str());
    return 2;
  }
  bool holds = true;
  for (const double temperature : {0.0, 1.0}) {
    tokens_per_s(**engine, num_sequences, 8, temperature, true);  // compiles the grammar
    std::vector<double> plain, structured, ratios;
    for (int round = 0; round < rounds; ++round) {
      plain.push_back(tokens_per_s(**engine, num_sequences, num_tokens, temperature, false));
      structured.push_back(tokens_per_s(**engine, num_sequences, num_tokens, temperature, true));
      ratios.push_back(structured.back() / plain.back());
    }
    std::printf(
        "%d sequences, temperature %.0f: plain %.1f tokens/s, structured %.1f tokens/s, ratio %.3f (%.3f to "
        "%.3f)\n",
        num_sequences, temperature, median(plain), median(structured), median(ratios),
        *std::ranges::min_element(ratios), *std::ranges::max_element(ratios));
    holds = holds && median(ratios) >= kLeastRatio;
  }
  return holds ? 0 : 1;
}

}  // namespace
}  // namespace octavo

int main(int argc, char** argv) { return octavo::measure(argc, argv); }
