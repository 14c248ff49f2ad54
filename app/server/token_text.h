// Single tokens as clients are told of them: their text, bytes, places and log-probabilities.
//
// Pure; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "app/json/json_text.h"
#include "engine/api/request.h"
#include "engine/base/ids.h"
#include "engine/tokenizer/tokenizer.h"

namespace octavo::app {

// The lowest that is told: clients add log-probabilities up, and JSON has no infinity. vLLM's number.
inline constexpr double kLowestLogprob = -9999.0;

// Of one float always the same double, so that equal ones are printed alike.
double told_logprob(float logprob);

// Valid UTF-8: what is part of a character only becomes U+FFFD, so several tokens may have the same text.
std::string token_text(const tokenizer::Tokenizer& tokenizer, TokenId id);
// [226, 130, 172]
Json token_bytes_json(const tokenizer::Tokenizer& tokenizer, TokenId id);

std::int64_t count_characters(std::string_view text);

// Counts characters (code points) in bytes that come token by token.
class CharacterCounter {
 public:
  explicit CharacterCounter(std::int64_t num_before = 0) : num_before_(num_before) {}

  // The index of the character that these bytes begin or go on with; then goes past them.
  std::int64_t place_of(std::string_view bytes);

 private:
  std::int64_t num_before_;  // whole ones
  std::string begun_;        // the bytes so far of one that is not whole
};

// vLLM's `prompt_logprobs`: [null, {"123": {"logprob", "rank", "decoded_token"}, ...}, ...], of each position
// the prompt's own token first and then up to `most` of the likeliest. A rank is null where it is not known.
Json prompt_logprobs_json(const tokenizer::Tokenizer& tokenizer, std::span<const TokenId> prompt,
                          std::span<const std::optional<float>> logprobs,
                          std::span<const std::vector<TokenLogprob>> top_logprobs, std::size_t most);

}  // namespace octavo::app
