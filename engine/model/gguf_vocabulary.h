// A vocabulary in the terms in which a GGUF file can say it: "gpt2" with the name of a split pattern, "llama"
// with scores, or "gemma4" with merges over characters.
#pragma once

#include <string_view>

#include "engine/base/result.h"
#include "engine/tokenizer/tokenizer.h"

namespace octavo::model {

// The same vocabulary without a pipeline, as vocabulary_reader.h would read it from a file. Texts of every
// kind are encoded by both, and must give the same ids. `architecture`: that of the model.
//
// What a file does not say is left out where it rarely matters, and then in `notice`: NFC, and what an added
// token does to the white space beside it. Errors: kUnsupported with what cannot be said; those of
// Tokenizer::create.
Result<tokenizer::Vocabulary> gguf_vocabulary(const tokenizer::Vocabulary& vocabulary,
                                              std::string_view architecture);

}  // namespace octavo::model
