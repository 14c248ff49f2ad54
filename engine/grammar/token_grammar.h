// What may follow, token by token: the seam between whoever compiles grammars (grammar_compiler.h, or a toy
// of the simulation) and whoever draws tokens.
//
// What a matcher allows depends on the grammar and on the tokens that it has accepted, and on nothing else.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "engine/base/ids.h"

namespace octavo {

// Where one text stands in its grammar. A value behind a pointer: fork() copies. One thread at a time.
class TokenMatcher {
 public:
  virtual ~TokenMatcher() = default;

  // A bit for each token of the vocabulary, 32 to a word, the lowest id in the lowest bit: 1 may come. Where
  // the grammar is complete, tokens that end a sequence may; behind one of those nothing may. REQUIRES:
  // num_mask_words(vocabulary size) words. False: nothing could be said, and all bits are 0.
  virtual bool fill_mask(std::span<std::uint32_t> mask) = 0;

  // False: the token cannot come here, and nothing has changed.
  virtual bool accept(TokenId token_id) = 0;
  // Takes back the newest tokens.  REQUIRES: so many were accepted
  virtual void roll_back(std::int32_t num_tokens) = 0;
  virtual std::unique_ptr<TokenMatcher> fork() const = 0;
};

// A compiled grammar. Immutable; any thread.
class TokenGrammar {
 public:
  virtual ~TokenGrammar() = default;
  virtual std::unique_ptr<TokenMatcher> start() const = 0;  // before any token
};

constexpr std::size_t num_mask_words(std::size_t vocabulary_size) { return (vocabulary_size + 31) / 32; }

inline bool allows(std::span<const std::uint32_t> mask, TokenId token_id) {
  const auto id = static_cast<std::uint32_t>(token_id);
  return ((mask[id / 32] >> (id % 32)) & 1u) != 0;
}

}  // namespace octavo
