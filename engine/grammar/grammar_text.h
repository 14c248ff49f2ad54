// A grammar as people write it, in EBNF or llama.cpp's GBNF, as the compiler's EBNF; and what of any text
// that is to be compiled can be seen to be too much before it is.
//
// GBNF's `.`, `{,n}`, `\xHH`, `\[` and `\]` are translated. Refused in one sentence with the line: tokens by
// name or id (no control token is ever drawn within a grammar), the compiler's macros and options of rules,
// and \x with more than two digits, which EBNF and GBNF read differently.
//
// Any thread.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "engine/base/result.h"

namespace octavo {

inline constexpr std::size_t kMostRules = 20'000;
inline constexpr std::size_t kDeepestGroups = 128;
inline constexpr std::size_t kMostRepetitions = 100'000;  // in one {n}, of a grammar or pattern

Result<std::string> read_grammar_text(std::string_view text);

// Groups and counts of a regular expression.
Result<void> check_pattern(std::string_view pattern);

}  // namespace octavo
