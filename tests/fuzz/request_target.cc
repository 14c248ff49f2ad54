// A line of a requests file: JSON to a request that is checked, or to one line that says why not.
#include <cmath>
#include <nlohmann/json.hpp>
#include <string>

#include "app/commands/request_json.h"
#include "tests/fuzz/json_mutation.h"
#include "tests/fuzz/target.h"

namespace octavo::fuzz {
namespace {

constexpr std::int32_t kVocabularySize = 1'000;

constexpr std::string_view kDictionary[] = {"{\"prompt\": \"a\"}",
                                            "\"prompt\": ",
                                            "\"messages\": [",
                                            "{\"role\": \"user\", \"content\": \"a\"}",
                                            "\"prompt_token_ids\": [1, 2]",
                                            "\"cache_salt\": \"x\"",
                                            "\"sampling\": {",
                                            "\"n\": 2",
                                            "\"temperature\": 0.5",
                                            "\"top_p\": 0.9",
                                            "\"top_k\": 5",
                                            "\"min_p\": 0.1",
                                            "\"presence_penalty\": 1",
                                            "\"frequency_penalty\": 1",
                                            "\"repetition_penalty\": 1.1",
                                            "\"max_tokens\": 9",
                                            "\"min_tokens\": 1",
                                            "\"logprobs\": 3",
                                            "\"length_penalty\": 1",
                                            "\"ignore_eos\": true",
                                            "\"prompt_logprobs\": true",
                                            "\"early_stopping\": false",
                                            "\"stop\": [\"a\"]",
                                            "\"stop_token_ids\": [1]",
                                            "\"logit_bias\": {\"1\": 2}",
                                            "\"seed\": 7",
                                            "\"beam_width\": 2",
                                            "null",
                                            "true",
                                            "-1",
                                            "1e308",
                                            "1e999",
                                            "4294967296",
                                            "18446744073709551615",
                                            "18446744073709551616",
                                            "0.5",
                                            "[",
                                            "]",
                                            "{",
                                            "}",
                                            ",",
                                            ":",
                                            "\"",
                                            "\\u0000",
                                            "\\ud800",
                                            "\\\"",
                                            "\xff",
                                            "\n",
                                            "\x1b[2J"};

void check_error(const Error& error) {
  const std::string line = error.message;
  require(!line.empty(), "an error says something");
  require(line.find('\n') == std::string::npos && line.find('\x1b') == std::string::npos,
          "an error is one printable line");
}

void check_sampling(const SamplingParams& sampling) {
  if (const auto valid = validate(sampling, kVocabularySize); !valid) return check_error(valid.error());
  require(std::isfinite(sampling.temperature) && sampling.temperature >= 0.0,
          "a temperature that is let through is a number");
  require(sampling.n >= 1 && sampling.max_tokens >= 1, "counts that are let through are positive");
  for (const auto& [token_id, bias] : sampling.logit_bias)
    require(token_id >= 0 && token_id < kVocabularySize && std::isfinite(bias),
            "biases that are let through are numbers for tokens");
}

void run(std::span<const std::uint8_t> input) {
  const std::string_view text(reinterpret_cast<const char*>(input.data()), input.size());
  const auto json = app::parse_json(text, "line 1");
  if (!json) return check_error(json.error());
  const std::string dumped = app::dump(*json);
  require(dumped.find('\n') == std::string::npos, "JSON is one line");
  require(app::parse_json(dumped, "line 1").has_value(), "what was written can be read");
  if (const auto messages = app::messages_from_json(*json, "messages"); !messages)
    check_error(messages.error());
  const auto request = app::request_from_json(*json, SamplingParams{}, /*parse_special=*/false, "line 1");
  if (!request) return check_error(request.error());
  check_sampling(request->sampling);
}

void mutate(Bytes& input, std::size_t max_size, Random& random, const MutateBytes& mutate_bytes) {
  static const JsonMutator mutator(kDictionary);
  mutator.mutate(input, /*begin=*/0, max_size, random, mutate_bytes);
}

std::vector<Bytes> no_seeds() { return {}; }

}  // namespace

const Target kRequestTarget = {"request", 1024, run, mutate, no_seeds};

}  // namespace octavo::fuzz
