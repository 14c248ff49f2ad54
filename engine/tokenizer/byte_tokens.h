// Tokens that stand for one byte each, written like <0x0A>: what a character becomes that a vocabulary of
// characters does not have.
#pragma once

#include <cstddef>
#include <vector>

#include "engine/base/ids.h"
#include "engine/base/result.h"
#include "engine/tokenizer/tokenizer.h"

namespace octavo::tokenizer {

// Error: the token's kind is kByte, and its text names none.
Result<char> byte_of_token(const Vocabulary& vocabulary, std::size_t id);

// Of the 256 bytes, of equals the one with the highest id; or empty: there are none. Error: some are missing,
// or as above.
Result<std::vector<TokenId>> find_byte_tokens(const Vocabulary& vocabulary);

}  // namespace octavo::tokenizer
