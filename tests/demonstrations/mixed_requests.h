// Requests of every kind, from one seed: greedy, sampled, four samples, beams of four,
// with shared and unshared starts. And what must come back equal, bit for bit, whatever the pool does.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "engine/api/request.h"
#include "tests/simulation/random.h"

namespace octavo {

// What prompts are made of.
struct TokenRange {
  TokenId first = 1000, last = 40000;  // of the default model: words
};

// REQUIRES: longest_output >= 1
inline std::vector<GenerationRequest> mixed_requests(std::uint64_t seed, int count, int longest_output,
                                                     TokenRange range = {}) {
  simulation::Random random(seed);
  const auto draw_tokens = [&](int length) {
    std::vector<TokenId> tokens;
    for (int i = 0; i < length; ++i) tokens.push_back(random.between(range.first, range.last));
    return tokens;
  };
  std::vector<std::vector<TokenId>> starts;
  for (const int length : {20, 33, 50, 64, 90}) starts.push_back(draw_tokens(length));

  std::vector<GenerationRequest> requests;
  for (int index = 0; index < count; ++index) {
    TokenPrompt prompt;
    if (random.chance(0.6)) {
      const auto& start = starts[static_cast<std::size_t>(random.between(0, 4))];
      prompt.token_ids.assign(start.begin(),
                              start.begin() + random.between(1, static_cast<int>(start.size())));
    }
    const std::vector<TokenId> rest = draw_tokens(random.between(1, 40));
    prompt.token_ids.insert(prompt.token_ids.end(), rest.begin(), rest.end());
    SamplingParams sampling{.seed = static_cast<std::uint64_t>(index),
                            .max_tokens = random.between(1, longest_output),
                            .ignore_eos = random.chance(0.5)};
    switch (index % 4) {
      case 0: sampling.temperature = 0.0; break;
      case 1: sampling.n = 4; break;
      case 2: sampling.beam_width = 4; break;
      default:
        sampling.temperature = 0.8;
        sampling.top_p = 0.9;
        sampling.repetition_penalty = 1.2;
    }
    requests.push_back({.prompt = std::move(prompt), .sampling = std::move(sampling)});
  }
  return requests;
}

inline bool same_alternatives(const std::vector<std::vector<TokenLogprob>>& a,
                              const std::vector<std::vector<TokenLogprob>>& b) {
  const auto same = [](const TokenLogprob& x, const TokenLogprob& y) {
    return x.token_id == y.token_id && x.logprob == y.logprob;
  };
  return std::ranges::equal(a, b,
                            [&](const auto& x, const auto& y) { return std::ranges::equal(x, y, same); });
}

// Empty when every output of the two is the same, else what differs.
inline std::string first_difference(const std::vector<RequestOutput>& a,
                                    const std::vector<RequestOutput>& b) {
  for (std::size_t i = 0; i < a.size(); ++i) {
    const std::string where = "request " + std::to_string(i);
    if (a[i].error || b[i].error) {
      return where + ": " + (a[i].error ? a[i].error->message : b[i].error->message);
    }
    if (a[i].prompt_logprobs != b[i].prompt_logprobs)
      return where + ": other log-probabilities of the prompt";
    if (!same_alternatives(a[i].prompt_top_logprobs, b[i].prompt_top_logprobs))
      return where + ": other alternatives of the prompt";
    if (a[i].embedding != b[i].embedding) return where + ": another embedding";
    if (a[i].outputs.size() != b[i].outputs.size()) return where + ": another number of outputs";
    for (std::size_t k = 0; k < a[i].outputs.size(); ++k) {
      const CompletionOutput &left = a[i].outputs[k], &right = b[i].outputs[k];
      const std::string output = where + ", output " + std::to_string(k);
      if (left.token_ids != right.token_ids) return output + ": other tokens";
      if (left.logprobs != right.logprobs) return output + ": other log-probabilities";
      if (!same_alternatives(left.top_logprobs, right.top_logprobs)) return output + ": other alternatives";
      if (left.score != right.score) return output + ": another score";
      if (left.finish_reason != right.finish_reason) return output + ": another end";
      if (left.text != right.text) return output + ": another text";
    }
  }
  return "";
}

}  // namespace octavo
