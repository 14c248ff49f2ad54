#include "engine/api/sampling_params.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>
#include <string_view>

#include "engine/api/option_error.h"

namespace octavo {
namespace {

constexpr std::int32_t kMaxOutputs = 1024;
constexpr std::int32_t kMaxLogprobs = 1024;
constexpr std::size_t kMaxLogprobTokenIds = 128;
// Every stop string is searched in every output after every token.
constexpr std::size_t kMaxStopStrings = 64;
// Every bad word is compared with the end of every output before every token.
constexpr std::size_t kMaxBadWords = 1024;
constexpr std::size_t kMaxTextBytes = 1024;  // of a stop string or bad word

Result<void> check_integers(const SamplingParams& params) {
  if (params.n < 1 || params.n > kMaxOutputs) {
    return option_out_of_range("n", "1 to " + std::to_string(kMaxOutputs), std::to_string(params.n));
  }
  if (params.best_of && (*params.best_of < params.n || *params.best_of > kMaxOutputs)) {
    return option_out_of_range("best_of",
                               "n (" + std::to_string(params.n) + ") to " + std::to_string(kMaxOutputs),
                               std::to_string(*params.best_of));
  }
  if (params.top_k < -1)
    return option_out_of_range("top_k", "at least 1, or 0 or -1 for off", std::to_string(params.top_k));
  if (params.max_tokens < 1)
    return option_out_of_range("max_tokens", "at least 1", std::to_string(params.max_tokens));
  if (params.min_tokens < 0)
    return option_out_of_range("min_tokens", "at least 0", std::to_string(params.min_tokens));
  if (params.min_tokens > params.max_tokens) {
    return option_out_of_range("min_tokens", "at most max_tokens (" + std::to_string(params.max_tokens) + ")",
                               std::to_string(params.min_tokens));
  }
  if (params.logprobs < 0 || params.logprobs > kMaxLogprobs) {
    return option_out_of_range("logprobs", "0 to " + std::to_string(kMaxLogprobs),
                               std::to_string(params.logprobs));
  }
  const std::int32_t prompt_logprobs = params.prompt_logprobs.value_or(0);
  if (prompt_logprobs < 0 || prompt_logprobs > kMaxLogprobs) {
    return option_out_of_range("prompt_logprobs", "0 to " + std::to_string(kMaxLogprobs),
                               std::to_string(prompt_logprobs));
  }
  return {};
}

// Written so that a NaN fails every rule.
Result<void> check_numbers(const SamplingParams& params) {
  if (!(params.temperature >= 0.0 && std::isfinite(params.temperature))) {
    return option_out_of_range("temperature", "a number of at least 0",
                               option_number_text(params.temperature));
  }
  if (!(params.top_p > 0.0 && params.top_p <= 1.0)) {
    return option_out_of_range("top_p", "above 0 and at most 1", option_number_text(params.top_p));
  }
  if (!(params.min_p >= 0.0 && params.min_p <= 1.0))
    return option_out_of_range("min_p", "0 to 1", option_number_text(params.min_p));
  if (!(std::abs(params.presence_penalty) <= 2.0)) {
    return option_out_of_range("presence_penalty", "-2 to 2", option_number_text(params.presence_penalty));
  }
  if (!(std::abs(params.frequency_penalty) <= 2.0)) {
    return option_out_of_range("frequency_penalty", "-2 to 2", option_number_text(params.frequency_penalty));
  }
  if (!(params.repetition_penalty > 0.0 && std::isfinite(params.repetition_penalty))) {
    return option_out_of_range("repetition_penalty", "a number above 0",
                               option_number_text(params.repetition_penalty));
  }
  if (!std::isfinite(params.length_penalty)) {
    return option_out_of_range("length_penalty", "a finite number",
                               option_number_text(params.length_penalty));
  }
  return {};
}

Result<void> check_token_ids(const SamplingParams& params, std::int32_t vocabulary_size) {
  const std::string rule = "0 to " + std::to_string(vocabulary_size - 1) + ", the model's token ids";
  const auto is_token = [&](TokenId id) { return id >= 0 && id < vocabulary_size; };
  for (const TokenId id : params.stop_token_ids) {
    if (!is_token(id)) return option_out_of_range("stop_token_ids", rule, std::to_string(id));
  }
  if (params.allowed_token_ids && params.allowed_token_ids->empty())
    return option_out_of_range("allowed_token_ids", "at least one token id", "empty");
  for (const TokenId id : params.allowed_token_ids.value_or(std::vector<TokenId>())) {
    if (!is_token(id)) return option_out_of_range("allowed_token_ids", rule, std::to_string(id));
  }
  for (const TokenId id : params.logprob_token_ids) {
    if (!is_token(id)) return option_out_of_range("logprob_token_ids", rule, std::to_string(id));
  }
  for (const auto& [id, bias] : params.logit_bias) {
    if (!is_token(id))
      return option_out_of_range("logit_bias", "given for ids of " + rule, std::to_string(id));
    if (!std::isfinite(bias))
      return option_out_of_range("logit_bias", "a finite number for each id", option_number_text(bias));
  }
  return {};
}

Result<void> check_texts(std::string_view option, std::span<const std::string> texts, std::size_t most) {
  if (texts.size() > most) {
    return option_out_of_range(option, "at most " + std::to_string(most) + " strings",
                               std::to_string(texts.size()));
  }
  for (const std::string& text : texts) {
    if (text.empty()) return option_out_of_range(option, "strings of at least one character", "empty");
    if (text.size() > kMaxTextBytes) {
      return option_out_of_range(option, "strings of at most " + std::to_string(kMaxTextBytes) + " bytes",
                                 std::to_string(text.size()) + " bytes long");
    }
  }
  return {};
}

Result<void> check_logprob_token_ids(const SamplingParams& params) {
  const std::size_t count = params.logprob_token_ids.size();
  if (count > kMaxLogprobTokenIds) {
    return option_out_of_range("logprob_token_ids",
                               "at most " + std::to_string(kMaxLogprobTokenIds) + " token ids",
                               std::to_string(count));
  }
  if (count > 0 && params.logprobs > 0 && params.logprobs != params.num_top_logprobs()) {
    return option_out_of_range("logprobs",
                               "left out, or the number of logprob_token_ids (" + std::to_string(count) + ")",
                               std::to_string(params.logprobs));
  }
  return {};
}

Result<void> check_beams(const SamplingParams& params, std::int32_t vocabulary_size) {
  if (!std::isfinite(params.length_penalty)) {
    return option_out_of_range("length_penalty", "a finite number",
                               option_number_text(params.length_penalty));
  }
  if (!params.beam_width) return {};
  if (params.best_of) {
    return option_out_of_range("best_of", "left out with beam_width, which returns its best outputs anyway",
                               std::to_string(*params.best_of));
  }
  // Half of the vocabulary: what ends a beam takes the place of what goes on.
  const std::int32_t most = std::min(kMaxOutputs, std::max(1, vocabulary_size / 2));
  if (*params.beam_width >= 1 && *params.beam_width <= most) return {};
  return option_out_of_range("beam_width", "1 to " + std::to_string(most),
                             std::to_string(*params.beam_width));
}

Result<void> check_structure(const SamplingParams& params) {
  if (!params.structured_output) return {};
  if (params.ignore_eos) {
    return option_out_of_range("ignore_eos", "false with structured output, which ends where its form does",
                               "true");
  }
  return validate(*params.structured_output);
}

}  // namespace

Result<void> validate(const SamplingParams& params, std::int32_t vocabulary_size) {
  OCTAVO_TRY_VOID(check_integers(params));
  OCTAVO_TRY_VOID(check_numbers(params));
  OCTAVO_TRY_VOID(check_token_ids(params, vocabulary_size));
  OCTAVO_TRY_VOID(check_logprob_token_ids(params));
  OCTAVO_TRY_VOID(check_texts("stop", params.stop, kMaxStopStrings));
  OCTAVO_TRY_VOID(check_texts("bad_words", params.bad_words, kMaxBadWords));
  OCTAVO_TRY_VOID(check_beams(params, vocabulary_size));
  OCTAVO_TRY_VOID(check_structure(params));
  return {};
}

}  // namespace octavo
