// tokenizer.model: sentencepiece's vocabulary as a serialised message of protocol buffers. Of it only the
// pieces and a dozen settings count, so it is read here, field by field, with each length checked against
// what is left: the library does not see it.
#pragma once

#include <string_view>

#include "engine/base/result.h"
#include "engine/tokenizer/tokenizer.h"

namespace octavo::model::vocabulary {

// BPE as the vocabulary of model "llama", Unigram as that of a tokenizer.json; others are refused by name.
Result<tokenizer::Vocabulary> read_sentencepiece(std::string_view bytes);

}  // namespace octavo::model::vocabulary
