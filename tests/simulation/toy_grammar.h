// A grammar without texts: what may follow is a hash of what came before. The engine asks it through its
// matchers, which hold no tokens but that hash for each, so that a matcher which missed a fork, a rollback or
// a token allows others; what is expected asks `toy_allows` with all tokens.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "engine/base/check.h"
#include "engine/base/hash.h"
#include "engine/base/ids.h"
#include "engine/grammar/token_grammar.h"
#include "tests/simulation/toy_tokenizer.h"

namespace octavo::simulation {

inline constexpr std::uint64_t kBeforeGrammar = 0x6772616d6d6172u;

inline bool ends_text(TokenId token) {
  return token == ToyTokenizer::kEos || token == ToyTokenizer::kFurtherEos;
}

// Some three of four tokens, one always, and an end now and then.
inline bool toy_allows_behind(std::uint64_t hash, TokenId token) {
  if (ends_text(token)) return mix64(hash) % 4 == 0;
  if (token < ToyTokenizer::kNumSpecial) return false;
  constexpr auto kNumTexts =
      static_cast<std::uint64_t>(ToyTokenizer::kVocabularySize - ToyTokenizer::kNumSpecial);
  const auto always =
      static_cast<TokenId>(ToyTokenizer::kNumSpecial + static_cast<TokenId>(mix64(hash + 1) % kNumTexts));
  return token == always || hash_combine(hash, static_cast<std::uint64_t>(token)) % 4 != 0;
}

inline std::uint64_t toy_behind(std::uint64_t hash, TokenId token) {
  return hash_combine(hash, static_cast<std::uint64_t>(token));
}

inline bool toy_allows(std::span<const TokenId> output, TokenId token) {
  std::uint64_t hash = kBeforeGrammar;
  for (const TokenId one : output) {
    if (ends_text(one)) return false;
    hash = toy_behind(hash, one);
  }
  return toy_allows_behind(hash, token);
}

// The token itself, or the next one that is allowed; `may_come`: of a token.
template <class MayCome>
TokenId allowed_from(TokenId token, MayCome may_come) {
  for (TokenId i = 0; i < ToyTokenizer::kVocabularySize; ++i) {
    const TokenId next = (token + i) % ToyTokenizer::kVocabularySize;
    if (may_come(next)) return next;
  }
  return -1;
}

class ToyMatcher final : public TokenMatcher {
 public:
  bool fill_mask(std::span<std::uint32_t> mask) override {
    std::ranges::fill(mask, 0u);
    if (has_ended_) return false;
    for (TokenId token = 0; token < ToyTokenizer::kVocabularySize; ++token) {
      if (toy_allows_behind(hashes_.back(), token)) mask[0] |= 1u << static_cast<unsigned>(token);
    }
    return true;
  }
  bool accept(TokenId token) override {
    if (has_ended_ || !toy_allows_behind(hashes_.back(), token)) return false;
    hashes_.push_back(toy_behind(hashes_.back(), token));
    has_ended_ = ends_text(token);
    return true;
  }
  void roll_back(std::int32_t num_tokens) override {
    OCTAVO_CHECK(num_tokens >= 0 && static_cast<std::size_t>(num_tokens) < hashes_.size(), "%d of %zu tokens",
                 num_tokens, hashes_.size() - 1);
    if (num_tokens > 0) has_ended_ = false;
    hashes_.resize(hashes_.size() - static_cast<std::size_t>(num_tokens));
  }
  std::unique_ptr<TokenMatcher> fork() const override { return std::make_unique<ToyMatcher>(*this); }

 private:
  std::vector<std::uint64_t> hashes_ = {kBeforeGrammar};  // behind each token
  bool has_ended_ = false;
};

class ToyGrammar final : public TokenGrammar {
 public:
  std::unique_ptr<TokenMatcher> start() const override { return std::make_unique<ToyMatcher>(); }
};

}  // namespace octavo::simulation
