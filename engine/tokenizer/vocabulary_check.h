// What must hold before anything is built from a vocabulary: nothing that a model file says is trusted.
#pragma once

#include "engine/base/result.h"
#include "engine/tokenizer/tokenizer.h"

namespace octavo::tokenizer {

// As many kinds as tokens and only known ones, special ids inside the vocabulary, sizes that fit an id.
// Merges are checked where they are read (merge_table.h), texts of special tokens where they are indexed
// (special_tokens.h).
Result<void> validate(const Vocabulary& vocabulary);

}  // namespace octavo::tokenizer
