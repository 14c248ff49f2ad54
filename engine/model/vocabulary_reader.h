// The vocabulary and chat template in a model's metadata, as the tokenizer wants them. What the tokens mean
// is the tokenizer's business; here types, counts and ids are checked.
#pragma once

#include "engine/base/result.h"
#include "engine/model/metadata.h"
#include "engine/tokenizer/tokenizer.h"

namespace octavo::model {

// Errors: kDamagedFile for a key that is missing, of the wrong type or length, and for an id outside the
// vocabulary.
Result<tokenizer::Vocabulary> read_vocabulary(const Metadata& metadata);

}  // namespace octavo::model
