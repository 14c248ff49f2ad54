#include "engine/api/sampling_params.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string_view>

#include "engine/api/option_error.h"

namespace octavo {
namespace {

constexpr std::int32_t kMaxOutputs = 1024;
constexpr std::int32_t kMaxLogprobs = 1024;
// Every stop string is searched in every output after every token.
constexpr std::size_t kMaxStopStrings = 64;
constexpr std::size_t kMaxStopStringBytes = 1024;

Result<void> check_integers(const SamplingParams& params) {
  if (params.n < 1 || params.n > kMaxOutputs) {
    return option_out_of_range("n", "1 to " + std::to_string(kMaxOutputs), std::to_string(params.n));
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
  for (const auto& [id, bias] : params.logit_bias) {
    if (!is_token(id))
      return option_out_of_range("logit_bias", "given for ids of " + rule, std::to_string(id));
    if (!std::isfinite(bias))
      return option_out_of_range("logit_bias", "a finite number for each id", option_number_text(bias));
  }
  return {};
}

Result<void> check_stop_strings(const SamplingParams& params) {
  if (params.stop.size() > kMaxStopStrings) {
    return option_out_of_range("stop", "at most " + std::to_string(kMaxStopStrings) + " strings",
                               std::to_string(params.stop.size()));
  }
  for (const std::string& stop : params.stop) {
    if (stop.empty()) return option_out_of_range("stop", "strings of at least one character", "empty");
    if (stop.size() > kMaxStopStringBytes) {
      return option_out_of_range("stop",
                                 "strings of at most " + std::to_string(kMaxStopStringBytes) + " bytes",
                                 std::to_string(stop.size()) + " bytes long");
    }
  }
  return {};
}

Result<void> check_beams(const SamplingParams& params, std::int32_t vocabulary_size) {
  if (!std::isfinite(params.length_penalty)) {
    return option_out_of_range("length_penalty", "a finite number",
                               option_number_text(params.length_penalty));
  }
  if (!params.beam_width) return {};
  // Half of the vocabulary: what ends a beam takes the place of what goes on.
  const std::int32_t most = std::min(kMaxOutputs, std::max(1, vocabulary_size / 2));
  if (*params.beam_width >= 1 && *params.beam_width <= most) return {};
  return option_out_of_range("beam_width", "1 to " + std::to_string(most),
                             std::to_string(*params.beam_width));
}

}  // namespace

Result<void> validate(const SamplingParams& params, std::int32_t vocabulary_size) {
  OCTAVO_TRY_VOID(check_integers(params));
  OCTAVO_TRY_VOID(check_numbers(params));
  OCTAVO_TRY_VOID(check_token_ids(params, vocabulary_size));
  OCTAVO_TRY_VOID(check_stop_strings(params));
  OCTAVO_TRY_VOID(check_beams(params, vocabulary_size));
  return {};
}

}  // namespace octavo
