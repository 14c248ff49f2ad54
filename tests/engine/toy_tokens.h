// Tokens of the toy tokenizer, as tests write them.
#pragma once

#include "engine/base/ids.h"
#include "tests/simulation/toy_tokenizer.h"

namespace octavo {

constexpr TokenId kA = 4, kB = 5, kC = 6, kAB = 9;  // "a", "b", "c", "ab"

inline const simulation::ToyTokenizer kToyTokenizer;

}  // namespace octavo
