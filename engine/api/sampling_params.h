// How a request is decoded. vLLM's names, meanings and defaults (vllm/sampling_params.py).
//
// Order of application: structured_output, allowed_token_ids, bad_words, logit_bias, min_tokens, repetition,
// frequency, presence penalty, temperature, min_p, top_k, top_p. Log-probabilities are the model's own: taken
// before all of these.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/api/structured_output.h"
#include "engine/base/ids.h"
#include "engine/base/result.h"

namespace octavo {

class TokenGrammar;  // engine/grammar/token_grammar.h

struct SamplingParams {
  std::int32_t n = 1;  // outputs
  // As many are generated, and the n of the highest cumulative log-probability are the answer, best first;
  // they are told when all have ended. None: n.
  std::optional<std::int32_t> best_of = {};
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
  bool include_stop_str_in_output =
      false;                        // whether the text ends with the stop string or token that ended it
  bool ignore_eos = false;          // continues past EOS; does not suppress it
  bool skip_special_tokens = true;  // whether the text leaves out control tokens; never that of the end
  std::int32_t logprobs = 0;        // alternatives reported per generated token, the likeliest
  // Reported of each generated token instead: these, in this order.
  std::vector<TokenId> logprob_token_ids = {};
  // Alternatives reported per prompt token, beside its own log-probability; none: not even that.
  std::optional<std::int32_t> prompt_logprobs = {};
  std::map<TokenId, double> logit_bias = {};
  std::optional<std::vector<TokenId>> allowed_token_ids = {};  // no others are drawn; none: all are allowed
  // Texts that are not generated: the last token of each cannot be drawn where the output ends with the
  // others. As written and after a space, where that is as many tokens; another spelling is another text.
  std::vector<std::string> bad_words = {};
  std::vector<std::vector<TokenId>> bad_word_token_ids = {};  // of bad_words; the engine fills it in
  // Only what leads to an output of this form is drawn, and where the form is complete, the end. It stands
  // above min_tokens, which does not keep an output from ending that cannot go on. No control token is drawn
  // but the end. What allowed_token_ids, bad_words or a stop string cut off is not put back.
  std::optional<StructuredOutput> structured_output = {};
  std::shared_ptr<const TokenGrammar> grammar = {};  // of structured_output; the engine fills it in

  // Beam search: W outputs, best score first. n, seed, temperature, top_p, top_k and min_p do not apply.
  std::optional<std::int32_t> beam_width = {};
  double length_penalty = 1.0;  // score = cumulative log-probability / generated tokens ^ length_penalty
  bool early_stopping = false;  // ends with W finished hypotheses, whatever the beams could still reach

  std::int32_t num_outputs() const { return beam_width.value_or(n); }
  std::int32_t num_sequences() const { return beam_width.value_or(best_of.value_or(n)); }  // that run
  std::int32_t num_top_logprobs() const {
    return logprob_token_ids.empty() ? logprobs : static_cast<std::int32_t>(logprob_token_ids.size());
  }
};

// Ranges, and ids below the vocabulary size. One sentence that names the option.
Result<void> validate(const SamplingParams& params, std::int32_t vocabulary_size);

}  // namespace octavo
