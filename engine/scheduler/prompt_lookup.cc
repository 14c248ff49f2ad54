#include "engine/scheduler/prompt_lookup.h"

#include <algorithm>
#include <cstddef>

namespace octavo::scheduler {
namespace {

// How many tokens before `end`, at most kLongestMatch, are the newest ones.
std::size_t match_length(std::span<const TokenId> token_ids, std::size_t end) {
  const std::size_t most = std::min<std::size_t>(kLongestMatch, end);
  std::size_t length = 0;
  while (length < most && token_ids[end - 1 - length] == token_ids[token_ids.size() - 1 - length]) ++length;
  return length;
}

// Where the continuation of the best match begins; the list's size without one.
std::size_t find_continuation(std::span<const TokenId> token_ids) {
  std::size_t best = token_ids.size();
  std::size_t best_length = kShortestMatch - 1;
  for (std::size_t end = token_ids.size() - 1; end >= kShortestMatch; --end) {
    if (token_ids[end - 1] != token_ids.back()) continue;
    const std::size_t length = match_length(token_ids, end);
    if (length <= best_length) continue;
    best = end;
    best_length = length;
    if (length == kLongestMatch) break;
  }
  return best;
}

}  // namespace

std::vector<TokenId> guess_next(std::span<const TokenId> token_ids, std::int32_t most) {
  std::vector<TokenId> guesses;
  if (most <= 0 || token_ids.size() <= kShortestMatch) return guesses;
  const std::size_t begin = find_continuation(token_ids);
  if (begin == token_ids.size()) return guesses;
  const std::size_t period = token_ids.size() - begin;
  for (std::size_t i = 0; i < static_cast<std::size_t>(most); ++i) {
    guesses.push_back(token_ids[begin + i % period]);
  }
  return guesses;
}

}  // namespace octavo::scheduler
