#include "engine/tokenizer/vocabulary_check.h"

#include <limits>
#include <string>

#include "engine/tokenizer/vocabulary_error.h"

namespace octavo::tokenizer {
namespace {

Result<void> check_kinds(const Vocabulary& vocabulary) {
  if (vocabulary.kinds.empty()) return {};
  if (vocabulary.kinds.size() != vocabulary.tokens.size()) {
    return damaged_vocabulary("tokenizer.ggml.token_type",
                              "has " + std::to_string(vocabulary.kinds.size()) + " entries for " +
                                  std::to_string(vocabulary.tokens.size()) + " tokens");
  }
  for (std::size_t i = 0; i < vocabulary.kinds.size(); ++i) {
    const auto kind = static_cast<std::int32_t>(vocabulary.kinds[i]);
    if (kind < static_cast<std::int32_t>(TokenKind::kNormal) ||
        kind > static_cast<std::int32_t>(TokenKind::kByte)) {
      return damaged_vocabulary(
          "tokenizer.ggml.token_type",
          "says " + std::to_string(kind) + " for token " + std::to_string(i) + "; known types are 1 to 6");
    }
  }
  return {};
}

Result<void> check_id(std::string_view key, std::optional<TokenId> id, std::size_t num_tokens) {
  if (!id || (*id >= 0 && static_cast<std::size_t>(*id) < num_tokens)) return {};
  return damaged_vocabulary(key, "is " + std::to_string(*id) + ", but the vocabulary has " +
                                     std::to_string(num_tokens) + " tokens");
}

}  // namespace

Result<void> validate(const Vocabulary& vocabulary) {
  const std::size_t num_tokens = vocabulary.tokens.size();
  if (num_tokens == 0) return damaged_vocabulary("tokenizer.ggml.tokens", "is empty");
  if (num_tokens > static_cast<std::size_t>(std::numeric_limits<TokenId>::max())) {
    return damaged_vocabulary("tokenizer.ggml.tokens",
                              "has " + std::to_string(num_tokens) + " entries, more than ids can address");
  }
  OCTAVO_TRY_VOID(check_kinds(vocabulary));
  OCTAVO_TRY_VOID(check_id("tokenizer.ggml.bos_token_id", vocabulary.bos_token_id, num_tokens));
  OCTAVO_TRY_VOID(check_id("tokenizer.ggml.eos_token_id", vocabulary.eos_token_id, num_tokens));
  OCTAVO_TRY_VOID(check_id("tokenizer.ggml.unknown_token_id", vocabulary.unknown_token_id, num_tokens));
  for (const TokenId id : vocabulary.further_eos_token_ids) {
    OCTAVO_TRY_VOID(check_id("tokenizer.ggml.eot_token_id", id, num_tokens));
  }
  return {};
}

}  // namespace octavo::tokenizer
