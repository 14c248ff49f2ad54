// Which chat template a Hugging Face folder has, and which one an old folder without any means by its name.
#pragma once

#include <filesystem>
#include <string>

#include "engine/base/result.h"
#include "engine/model/hugging_face/vocabulary_json.h"
#include "engine/tokenizer/tokenizer.h"

namespace octavo::model::vocabulary {

// chat_template.jinja, chat_template.json, or that of tokenizer_config.json (of a list the one named
// "default"); else by name, with a notice. Nothing where there is none.
Result<void> read_chat_template(const std::filesystem::path& folder, const Json& tokenizer_config,
                                tokenizer::Vocabulary& vocabulary);

}  // namespace octavo::model::vocabulary
