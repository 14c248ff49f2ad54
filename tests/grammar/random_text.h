// Texts that a grammar allows, drawn token by token, as from a model of which nothing is known.
#pragma once

#include <optional>
#include <random>
#include <string>
#include <vector>

#include "engine/grammar/token_grammar.h"
#include "engine/tokenizer/tokenizer.h"

namespace octavo::testing {

inline std::vector<TokenId> allowed_tokens(TokenMatcher& matcher, std::int32_t vocabulary_size) {
  std::vector<std::uint32_t> mask(num_mask_words(static_cast<std::size_t>(vocabulary_size)));
  matcher.fill_mask(mask);
  std::vector<TokenId> ids;
  for (TokenId id = 0; id < vocabulary_size; ++id) {
    if (allows(mask, id)) ids.push_back(id);
  }
  return ids;
}

// Tokens up to an end; ends as soon as it may once there are `most` tokens, and gives up after four times as
// many.
inline std::optional<std::vector<TokenId>> random_tokens(const TokenGrammar& grammar,
                                                         const tokenizer::Tokenizer& tokenizer,
                                                         std::mt19937_64& random, std::size_t most) {
  const auto matcher = grammar.start();
  std::vector<TokenId> ids;
  while (ids.size() < 4 * most) {
    const std::vector<TokenId> allowed = allowed_tokens(*matcher, tokenizer.vocabulary_size());
    if (allowed.empty()) return std::nullopt;
    TokenId id = allowed[random() % allowed.size()];
    for (const TokenId one : allowed) {
      if (tokenizer.is_end_of_sequence(one) && (ids.size() >= most || random() % 2 == 0)) id = one;
    }
    // Behind the length that is wanted, what closes is likelier.
    for (const TokenId one : allowed) {
      const std::string_view text = tokenizer.token_bytes(one);
      const bool closes = text == "\"" || text == "}" || text == "]" || text == ",";
      if (closes && ids.size() >= most && random() % 3 == 0) id = one;
    }
    if (!matcher->accept(id)) return std::nullopt;
    if (tokenizer.is_end_of_sequence(id)) return ids;
    ids.push_back(id);
  }
  return std::nullopt;
}

// Whether the grammar allows the text, written byte by byte, and an end behind it.
inline bool accepts(const TokenGrammar& grammar, const tokenizer::Tokenizer& tokenizer,
                    std::string_view text) {
  const auto matcher = grammar.start();
  const auto ids = tokenizer.encode(text, false, false, {});
  for (const TokenId id : *ids) {
    if (!matcher->accept(id)) return false;
  }
  for (const TokenId id : allowed_tokens(*matcher, tokenizer.vocabulary_size())) {
    if (tokenizer.is_end_of_sequence(id)) return true;
  }
  return false;
}

}  // namespace octavo::testing
