// What a request must give, from the request alone: the simulated model as a pure function of a token prefix,
// and the rules for ends and text spelled out in the most direct way. Knows nothing of blocks, steps or other
// requests.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "engine/api/request.h"
#include "engine/base/ids.h"
#include "engine/tokenizer/tokenizer.h"

namespace octavo::simulation {

// The simulated model. Its "KV" of a token is the hash of the prefix that ends with it.
struct ToyModel {
  std::int32_t vocabulary_size = 0;
  std::uint32_t eos_period = 32;            // one token in so many ends the sequence
  std::uint32_t invalid_logits_period = 0;  // one in so many cannot be drawn; 0: none

  static std::uint64_t root_of(std::uint64_t salt);
  static std::uint64_t extend(std::uint64_t prefix_hash, TokenId token);

  // What attention makes of all slots that it reads, folded one by one.
  static std::uint64_t fold(std::uint64_t folded, std::uint64_t slot);

  struct Draw {
    TokenId token = -1;
    float logprob = 0.0f;
    bool invalid_logits = false;
  };
  Draw draw(std::uint64_t folded, const SamplingParams& sampling, std::uint64_t seed,
            std::uint32_t output_index, std::size_t position) const;

  static float prompt_logprob(std::uint64_t prefix_hash, TokenId token);
};

struct ExpectedOutput {
  std::vector<TokenId> token_ids;
  std::vector<float> logprobs;
  std::string text;
  FinishReason finish_reason = FinishReason::kLength;
  StopReason stop_reason = {};
  bool fails = false;  // the next token cannot be drawn
};

struct RequestAlone {
  std::vector<TokenId> prompt_token_ids;
  SamplingParams sampling;
  std::uint64_t seed = 0;
  std::uint64_t salt = 0;
};

ExpectedOutput expected_output(const ToyModel& model, const tokenizer::Tokenizer& tokenizer,
                               const RequestAlone& request, std::uint32_t output_index,
                               std::int32_t max_model_len);

std::vector<std::optional<float>> expected_prompt_logprobs(const RequestAlone& request);

}  // namespace octavo::simulation
