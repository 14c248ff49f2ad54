// How a request is decoded. vLLM's names, meanings and defaults (vllm/sampling_params.py).
//
// Order of application: logit_bias, min_tokens, repetition, frequency, presence penalty, temperature, min_p,
// top_k, top_p. Log-probabilities are the model's own: taken before all of these.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "engine/base/ids.h"
#include "engine/base/result.h"

namespace octavo {

struct SamplingParams {
  std::int32_t n = 1;        // outputs
  double temperature = 1.0;  // 0: greedy, ties to the lowest id
  double top_p = 1.0;
  std::int32_t top_k = 0;  // 0 or -1: off
  double min_p = 0.0;
  double presence_penalty = 0.0;
  double frequency_penalty = 0.0;
  double repetition_penalty = 1.0;
  std::optional<std::uint64_t> seed = {};  // none: the engine draws one and reports it
  std::int32_t max_tokens = 16;
  // EOS and stop tokens cannot be drawn before; stop strings do not end an output before
  std::int32_t min_tokens = 0;
  std::vector<std::string> stop = {};
  std::vector<TokenId> stop_token_ids = {};
  bool ignore_eos = false;    // continues past EOS; does not suppress it
  std::int32_t logprobs = 0;  // alternatives reported per generated token
  bool prompt_logprobs = false;
  std::map<TokenId, double> logit_bias = {};

  // Beam search: W outputs, best score first. n, seed, temperature, top_p, top_k and min_p do not apply.
  std::optional<std::int32_t> beam_width = {};
  double length_penalty = 1.0;  // score = cumulative log-probability / generated tokens ^ length_penalty
  bool early_stopping = false;  // ends with W finished hypotheses, whatever the beams could still reach

  std::int32_t num_outputs() const { return beam_width.value_or(n); }
};

// Ranges, and ids below the vocabulary size. One sentence that names the option.
Result<void> validate(const SamplingParams& params, std::int32_t vocabulary_size);

}  // namespace octavo
