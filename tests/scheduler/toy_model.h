// A model whose next token is a hash of the tokens before it. What reads the wrong memory is found in
// tests/simulation; here it only has to give everybody something to say.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/base/ids.h"

namespace octavo::scheduler {

using Tokens = std::vector<TokenId>;

// Tokens from 0 to 999 that look random; the same seed gives the same ones, shorter or longer.
Tokens random_like_tokens(std::uint64_t seed, std::int32_t num_tokens);

std::uint64_t hash_of(std::span<const TokenId> token_ids);

// What comes after a prefix, given its hash. `period` above 0: so many tokens are repeated, but for one
// in 16.
TokenId draw(std::uint64_t prefix, std::uint64_t seed, std::uint32_t output_index, std::size_t position,
             std::int32_t period = 0);

struct Continuation {
  TokenId token_id = -1;
  double logprob = 0.0;
};
std::vector<Continuation> continuations(std::uint64_t prefix, std::int32_t num_candidates);  // best first

}  // namespace octavo::scheduler
