// The vocabulary and chat template of a model file, as the tokenizer wants them. What the tokens mean is the
// tokenizer's business; here types, counts and ids are checked.
#pragma once

#include "engine/base/result.h"
#include "engine/model/gguf_file.h"
#include "engine/tokenizer/tokenizer.h"

namespace octavo::model {

// Errors: kDamagedFile for a key that is missing, of the wrong type or length, and for an id outside the
// vocabulary.
Result<tokenizer::Vocabulary> read_vocabulary(const GgufHeader& header);

inline Result<tokenizer::Vocabulary> read_vocabulary(const GgufFile& file) {
  return read_vocabulary(file.header());
}

}  // namespace octavo::model
