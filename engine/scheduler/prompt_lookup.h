// What may follow a token list, guessed from the list itself: where its newest tokens stand earlier, what
// came after them there may come again. After A. Saxena, "Prompt Lookup Decoding" (2023). Pure; any thread.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/base/ids.h"

namespace octavo::scheduler {

// Matches of fewer tokens are chance: with 2, free chat of the default model drafts a third more for the same
// gain. Matches of more than 5 tokens guess no better than the latest of 5.
inline constexpr std::int32_t kShortestMatch = 3;
inline constexpr std::int32_t kLongestMatch = 5;

// At most `most` tokens that followed the longest match, of equally long ones the latest; none without a
// match. A continuation that reaches the end of the list continues with itself, as a repetition would.
//
// One scan backwards, of 4 bytes a token: a thousandth of what attention reads of the same token.
std::vector<TokenId> guess_next(std::span<const TokenId> token_ids, std::int32_t most);

}  // namespace octavo::scheduler
