#include "tests/scheduler/toy_model.h"

#include <algorithm>
#include <functional>

#include "engine/base/hash.h"

namespace octavo::scheduler {

Tokens random_like_tokens(std::uint64_t seed, std::int32_t num_tokens) {
  Tokens tokens;
  for (std::int32_t i = 0; i < num_tokens; ++i) {
    tokens.push_back(static_cast<TokenId>(hash_combine(seed, static_cast<std::uint64_t>(i)) % 1000));
  }
  return tokens;
}

std::uint64_t hash_of(std::span<const TokenId> token_ids) {
  std::uint64_t prefix = 0;
  for (const TokenId token_id : token_ids) {
    prefix = hash_combine(prefix, static_cast<std::uint64_t>(token_id));
  }
  return prefix;
}

TokenId draw(std::uint64_t prefix, std::uint64_t seed, std::uint32_t output_index, std::size_t position,
             std::int32_t period) {
  const std::uint64_t hash = hash_combine(hash_combine(prefix, seed), hash_combine(output_index, position));
  const bool repeats = period > 0 && hash / 1000 % 16 != 0;
  return repeats ? static_cast<TokenId>(position) % period : static_cast<TokenId>(hash % 1000);
}

std::vector<Continuation> continuations(std::uint64_t prefix, std::int32_t num_candidates) {
  std::vector<Continuation> all;
  for (std::int32_t i = 0; i < num_candidates; ++i) {
    const std::uint64_t hash = hash_combine(prefix, static_cast<std::uint64_t>(i));
    all.push_back({.token_id = static_cast<TokenId>((prefix + static_cast<std::uint64_t>(37 * i)) % 1000),
                   .logprob = -static_cast<double>(hash % 256) / 64.0});  // exact in a sum, and ties occur
  }
  std::ranges::stable_sort(all, std::ranges::greater(), &Continuation::logprob);
  return all;
}

}  // namespace octavo::scheduler
