// normalizer, pre_tokenizer and decoder of a tokenizer.json as the tokenizer takes them. What it does not
// have is refused by its name in the file.
#pragma once

#include "engine/base/result.h"
#include "engine/model/hugging_face/vocabulary_json.h"
#include "engine/tokenizer/text_pipeline.h"

namespace octavo::model::vocabulary {

Result<tokenizer::TextPipeline> read_pipeline(const Json& tokenizer);

}  // namespace octavo::model::vocabulary
